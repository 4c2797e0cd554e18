//! The rotation of heads by rows and columns of patches.

use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// The angles of a view's patches, computed on the host, once for all layers.
pub struct PatchRotation {
    /// Parts of a head that turn by themselves, each half against half.
    parts: i32,
    /// `[patches, 1, parts, pairs]`.
    cos: Tensor,
    sin: Tensor,
}

impl PatchRotation {
    /// Angles `[patches, parts · pairs]`; each pair is the same place of both halves of its part.
    pub fn new(angles: &[f32], patches: usize, parts: i32) -> Self {
        let pairs = (angles.len() / patches.max(1)) as i32 / parts;
        let shape = [patches as i32, 1, parts, pairs];
        let of =
            |of: fn(f32) -> f32| Tensor::from_f32(&angles.iter().map(|angle| of(*angle)).collect::<Vec<_>>(), &shape);
        Self {
            parts,
            cos: of(f32::cos),
            sin: of(f32::sin),
        }
    }

    /// Turns heads `[patches, heads, width]` in 32 bit floats and gives them back in their own type.
    pub fn forward(&self, heads: &Tensor) -> Result<Tensor> {
        let &[patches, count, width] = heads.shape() else {
            unreachable!("heads stand in the second of three axes")
        };
        let part = width / self.parts;
        let split = heads
            .astype(Dtype::Float32)?
            .reshape(&[patches, count, self.parts, part])?;
        let (one, other) = (split.slice(3, 0, part / 2)?, split.slice(3, part / 2, part)?);
        let turned = concatenate(
            &[
                &one.mul(&self.cos)?.sub(&other.mul(&self.sin)?)?,
                &other.mul(&self.cos)?.add(&one.mul(&self.sin)?)?,
            ],
            3,
        )?;
        turned.reshape(heads.shape())?.astype(heads.dtype())
    }
}

/// The angles of positions (row, column) for the periods `theta^(2·pair/dims)`: those of the first axis of `by`, then
/// those of the second.
pub fn angles(positions: &[(u32, u32)], dims: u32, theta: f32, columns_first: bool) -> Vec<f32> {
    let periods: Vec<f32> = (0..dims / 2)
        .map(|pair| theta.powf(2.0 * pair as f32 / dims as f32))
        .collect();
    let of = |position: u32| {
        periods
            .iter()
            .map(move |period| position as f32 / period)
            .collect::<Vec<_>>()
    };
    let both = positions.iter().flat_map(|(row, column)| match columns_first {
        true => [of(*column), of(*row)].concat(),
        false => [of(*row), of(*column)].concat(),
    });
    both.collect()
}

/// Rows and columns of patches, square after square.
pub fn in_squares(rows: u32, columns: u32, merge: u32) -> Vec<(u32, u32)> {
    let squares = (0..rows / merge).flat_map(|row| (0..columns / merge).map(move |column| (row, column)));
    let patches = squares.flat_map(|(row, column)| {
        (0..merge).flat_map(move |down| (0..merge).map(move |across| (row * merge + down, column * merge + across)))
    });
    patches.collect()
}
