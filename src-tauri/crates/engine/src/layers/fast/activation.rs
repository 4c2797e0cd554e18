//! Gated activations in one launch.

use mlx::fused::GateActivation;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::kernels::kernels;

/// `activation(gate) · up`, with both side by side in the last axis of `x` `[…, 2 · width]`.
pub fn gated(activation: Option<GateActivation>, x: &Tensor) -> Result<Option<Tensor>> {
    match activation {
        Some(activation) => kernels().gate(activation, x, None),
        None => Ok(None),
    }
}

/// The activation of every element times `other`, both `[length, width]`.
pub fn times(activation: GateActivation, x: &Tensor, other: &Tensor) -> Result<Option<Tensor>> {
    kernels().gate(activation, x, Some(other))
}
