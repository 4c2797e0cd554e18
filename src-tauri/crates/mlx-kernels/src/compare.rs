//! Numbers to compare a kernel on, before it is used the first time.

use mlx::fused::{Norm, ResidualInput};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// Numbers between -1 and 1 to compare with; other ones for each seed.
pub fn noise(shape: &[i32], dtype: Dtype, seed: u32) -> Result<Tensor> {
    let count: i32 = shape.iter().product();
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let numbers: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_f32(&numbers, shape).astype(dtype)
}

/// The largest difference between two tensors as a part of the largest number; infinite if something is not finite.
pub fn difference(made: &Tensor, wanted: &Tensor) -> Result<f32> {
    let (made, wanted) = (made.to_f32()?, wanted.to_f32()?);
    if made.len() != wanted.len() || made.iter().any(|number| !number.is_finite()) {
        return Ok(f32::INFINITY);
    }
    let largest = wanted
        .iter()
        .fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs()));
    let apart = made
        .iter()
        .zip(&wanted)
        .fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
    Ok(apart / largest)
}

/// Rows of noise for a kernel that reads the residual stream.
pub struct NoiseRows {
    h: Tensor,
    x: Tensor,
    inner: Tensor,
    factor: Tensor,
    outer: Tensor,
}

impl NoiseRows {
    /// This many rows.
    pub fn new(rows: i32, width: i32, dtype: Dtype, seed: u32) -> Result<Self> {
        Ok(Self {
            h: noise(&[rows, width], dtype, seed)?,
            x: noise(&[rows, width], dtype, seed + 1)?,
            factor: noise(&[1], dtype, seed + 2)?,
            inner: noise(&[width], dtype, seed + 4)?,
            outer: noise(&[width], dtype, seed + 5)?,
        })
    }

    /// The input with the parts that `like` has.
    pub fn like(&self, like: ResidualInput<'_>) -> ResidualInput<'_> {
        ResidualInput {
            h: &self.h,
            x: &self.x,
            inner: like.inner.map(|(_, eps)| (&self.inner, eps)),
            factor: like.factor.map(|_| &self.factor),
            outer: like.outer.map(|(_, eps)| (&self.outer, eps)),
        }
    }
}

/// The sum that the stream becomes, and that sum normed, by MLX's own operations.
pub fn added(row: ResidualInput<'_>) -> Result<(Tensor, Tensor)> {
    let normed = |x: &Tensor, norm: Option<Norm<'_>>| match norm {
        Some((weight, eps)) => x.fast_rms_norm(Some(weight), eps),
        None => Ok(x.clone()),
    };
    let mut sum = row.h.add(&normed(row.x, row.inner)?)?;
    if let Some(factor) = row.factor {
        sum = sum.mul(factor)?;
    }
    let outer = normed(&sum, row.outer)?;
    Ok((sum, outer))
}

/// The bits of the epsilon that the norms of a row have in common, 0 if it has none; `None` if they differ, or the row
/// or one of `others` has numbers of another type.
pub fn common_eps(row: ResidualInput<'_>, others: [Option<&Tensor>; 2]) -> Option<i32> {
    let mut eps = [row.inner, row.outer]
        .into_iter()
        .flatten()
        .map(|(_, eps)| eps.to_bits() as i32);
    let first = eps.next().unwrap_or(0);
    let parts = [
        Some(row.x),
        row.inner.map(|norm| norm.0),
        row.factor,
        row.outer.map(|norm| norm.0),
    ];
    let mut all = parts.into_iter().chain(others).flatten();
    let alike = eps.all(|eps| eps == first) && all.all(|part| part.dtype() == row.h.dtype());
    alike.then_some(first)
}
