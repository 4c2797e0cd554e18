//! Projections together with what comes before and after them, in one launch.

use mlx::fused::{Epilogue, GateActivation, PointwiseActivation, Rows};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::kernels::kernels;
use crate::layers::{Activation, ResidualStream, RmsNorm};

/// The projection of the normed stream by a matrix as it is stored, without a bias, if there is one.
pub fn forward_normed(
    matrix: Option<Rows<'_>>,
    stream: &mut ResidualStream<'_>,
    norm: Option<&RmsNorm>,
) -> Result<Option<Tensor>> {
    norm_linear(matrix, stream, norm, Epilogue::Plain)
}

/// `activation(gate) · up` of that.
pub fn gated_normed(
    matrix: Option<Rows<'_>>,
    stream: &mut ResidualStream<'_>,
    norm: Option<&RmsNorm>,
    activation: &Activation,
) -> Result<Option<Tensor>> {
    match activation.fusible() {
        Some(activation) => norm_linear(matrix, stream, norm, Epilogue::Gated(activation)),
        None => Ok(None),
    }
}

/// GELU of the stream's projection times `other`.
pub fn gelu_times(matrix: Option<Rows<'_>>, stream: &mut ResidualStream<'_>, other: &Tensor) -> Result<Option<Tensor>> {
    norm_linear(matrix, stream, None, Epilogue::Times(GateActivation::Gelu, other))
}

/// `activation(gate) · up` of an input.
pub fn gated(matrix: Option<Rows<'_>>, x: &Tensor, activation: &Activation) -> Result<Option<Tensor>> {
    match (matrix, activation.fusible()) {
        (Some(matrix), Some(activation)) => kernels().linear(x, matrix, Some(activation)),
        _ => Ok(None),
    }
}

/// The activation of the projection by a matrix as it is stored, with a bias, if there is one.
pub fn biased(
    matrix: Option<Rows<'_>>,
    x: &Tensor,
    bias: Option<&Tensor>,
    activation: Option<PointwiseActivation>,
) -> Result<Option<Tensor>> {
    match (matrix, bias) {
        (Some(matrix), Some(bias)) => kernels().biased_linear(x, matrix, bias, activation),
        _ => Ok(None),
    }
}

fn norm_linear(
    matrix: Option<Rows<'_>>,
    stream: &mut ResidualStream<'_>,
    norm: Option<&RmsNorm>,
    after: Epilogue<'_>,
) -> Result<Option<Tensor>> {
    match matrix {
        Some(matrix) => stream.fuse(norm, |row| kernels().norm_linear(row, matrix, after)),
        None => Ok(None),
    }
}
