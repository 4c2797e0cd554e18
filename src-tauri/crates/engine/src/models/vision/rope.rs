//! Rotary positions of patches: half of a head's pairs turn by the row, half by the column.

use crate::error::Result;
use crate::ops::concatenate;
use crate::tensor::Tensor;

/// How fast pairs turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Turning {
    /// Rows and columns by the same periods (Qwen, GLM, PaddleOCR).
    Alike(f32),
    /// Rows by every second period from the first, columns by the others (Pixtral).
    Alternating(f32),
}

/// Cosines and signed sines of the patches of a picture, `[patches, head width]`, in 32 bit floats.
pub struct PatchRope {
    cos: Tensor,
    sin: Tensor,
}

impl PatchRope {
    /// The turning of patches at these rows and columns, for heads of this width.
    pub fn new(turning: Turning, width: i32, places: &[(u32, u32)]) -> Self {
        let quarter = width as usize / 4;
        let period = |pair: usize, of_column: bool| match turning {
            Turning::Alike(theta) => theta.powf(-4.0 * pair as f32 / width as f32),
            Turning::Alternating(theta) => theta.powf(-(4.0 * pair as f32 + if of_column { 2.0 } else { 0.0 }) / width as f32),
        };
        let [rows, columns] = [false, true].map(|of_column| (0..quarter).map(|pair| period(pair, of_column)).collect::<Vec<_>>());
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for (row, column) in places {
            let by_row = rows.iter().map(|speed| *row as f32 * speed);
            let angles: Vec<f32> = by_row.chain(columns.iter().map(|speed| *column as f32 * speed)).collect();
            cos.extend(angles.iter().chain(&angles).map(|angle| angle.cos()));
            // The first half of a head takes the second one's numbers away from its own, the second half adds the first one's.
            sin.extend(angles.iter().map(|angle| -angle.sin()));
            sin.extend(angles.iter().map(|angle| angle.sin()));
        }
        let shape = [places.len() as i32, width];
        Self {
            cos: Tensor::from_f32(&cos, &shape),
            sin: Tensor::from_f32(&sin, &shape),
        }
    }

    /// Turns heads `[1, heads, patches, width]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (width, half) = (x.dim(3), x.dim(3) / 2);
        let exchanged = concatenate(&[&x.slice(3, half, width)?, &x.slice(3, 0, half)?], 3)?;
        x.mul(&self.cos)?.add(&exchanged.mul(&self.sin)?)?.astype(x.dtype())
    }
}

/// Row and column of each patch of a grid, row after row.
pub fn in_rows((rows, columns): (u32, u32)) -> Vec<(u32, u32)> {
    (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).collect()
}

/// The same with the `merge` × `merge` patches that become one token next to each other.
pub fn in_blocks((rows, columns): (u32, u32), merge: u32) -> Vec<(u32, u32)> {
    let inside = in_rows((merge, merge));
    let blocks = in_rows((rows / merge, columns / merge));
    let of_block = |(row, column): (u32, u32)| {
        let place = move |(y, x): &(u32, u32)| (row * merge + y, column * merge + x);
        inside.iter().map(place).collect::<Vec<_>>()
    };
    blocks.into_iter().flat_map(of_block).collect()
}

#[cfg(test)]
mod tests {
    use super::in_blocks;

    #[test]
    fn patches_of_a_block_follow_each_other() {
        let places = in_blocks((2, 4), 2);
        assert_eq!(places[..5], [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]);
    }
}
