//! Numbers to compare a kernel on, before it is used the first time.

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
