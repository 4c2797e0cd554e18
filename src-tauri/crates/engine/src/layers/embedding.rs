//! Tables of token vectors.

use mlx::device::{device, Device};
use mlx::fused::Rows;
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::kernels::kernels;
use crate::layers::product::computed;
use crate::layers::Linear;
use crate::weights::{Matrix, Weights};

/// A table with one row per token.
#[derive(Parameters)]
pub enum Embedding {
    /// Plain numbers.
    Plain(Tensor),
    /// Quantized rows; those that are asked for are dequantized.
    Quantized(QuantizedTensor),
}

impl Embedding {
    /// Loads `path.weight` `[tokens, width]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, tokens: i32, width: i32) -> error::Result<Self> {
        let embedding = match weights.take_matrix(path, tokens, width)? {
            Matrix::Plain(rows) => Self::Plain(rows),
            Matrix::Quantized(rows) => Self::Quantized(rows),
        };
        weights.materialize(embedding.tensors())?;
        Ok(embedding)
    }

    /// The rows of `ids` `[length]`, as `[length, width]`.
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let table = match self {
            Self::Plain(rows) => Rows::Plain(rows),
            Self::Quantized(rows) => Rows::Quantized(rows),
        };
        match (kernels().embedding(table, ids)?, self) {
            (Some(rows), _) => Ok(rows),
            (None, Self::Plain(rows)) => computed(rows.take(ids, 0)?),
            (None, Self::Quantized(rows)) => numbers(rows.map(|part| part.take(ids, 0))?),
        }
    }

    /// All rows.
    pub fn into_numbers(self) -> Result<Tensor> {
        match self {
            Self::Plain(rows) => computed(rows),
            Self::Quantized(rows) => numbers(rows),
        }
    }

    /// The projection back to the vocabulary.
    pub fn as_linear(&self, weights: &mut Weights<'_>) -> error::Result<Linear> {
        match self {
            Self::Plain(rows) => Ok(Linear::from_rows(rows)?),
            Self::Quantized(quantized) => Linear::from_quantized(quantized.clone(), weights),
        }
    }
}

/// The same for quantized rows.
fn numbers(rows: QuantizedTensor) -> Result<Tensor> {
    match device() {
        Device::Cpu => rows.dequantize_to_f32(),
        Device::Metal | Device::Cuda => rows.dequantize(),
    }
}
