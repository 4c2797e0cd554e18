//! Tables of token vectors.

use std::rc::Rc;

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
use crate::weights::{AdapterPart, AdapterPlace, Matrix, PlaceKind, Weights};

/// A table with one row per token.
#[derive(Parameters)]
pub struct Embedding {
    rows: Matrix,
    /// The place at which adapters add to the rows.
    #[parameters(skip)]
    adapters: Option<Rc<AdapterPlace>>,
}

impl Embedding {
    /// Loads `path.weight` `[tokens, width]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, tokens: i32, width: i32) -> error::Result<Self> {
        let part = AdapterPart {
            path: path.to_owned(),
            aliases: Vec::new(),
            outputs: width,
            order: None,
        };
        let embedding = Self {
            rows: weights.take_matrix(path, tokens, width)?,
            adapters: weights.adapter_place(PlaceKind::Table, vec![part], tokens),
        };
        weights.materialize(embedding.tensors())?;
        Ok(embedding)
    }

    /// The rows of `ids` `[length]`, as `[length, width]`.
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let table = match &self.rows {
            Matrix::Plain(rows) => Rows::Plain(rows),
            Matrix::Quantized(rows) => Rows::Quantized(rows),
        };
        let rows = match (kernels().embedding(table, ids)?, &self.rows) {
            (Some(rows), _) => rows,
            (None, Matrix::Plain(rows)) => computed(rows.take(ids, 0)?)?,
            (None, Matrix::Quantized(rows)) => numbers(rows.map(|part| part.take(ids, 0))?)?,
        };
        match self.adapters.as_ref().and_then(|place| place.addition()) {
            Some(addition) => addition.add_rows(ids, &rows),
            None => Ok(rows),
        }
    }

    /// All rows.
    pub fn into_numbers(self) -> Result<Tensor> {
        match self.rows {
            Matrix::Plain(rows) => computed(rows),
            Matrix::Quantized(rows) => numbers(rows),
        }
    }

    /// The projection back to the vocabulary.
    pub fn as_linear(&self, weights: &mut Weights<'_>) -> error::Result<Linear> {
        let linear = match &self.rows {
            Matrix::Plain(rows) => Linear::from_rows(rows)?,
            Matrix::Quantized(quantized) => Linear::from_quantized(quantized.clone(), weights)?,
        };
        Ok(linear.tied_to(self.adapters.clone()))
    }
}

/// The same for quantized rows.
fn numbers(rows: QuantizedTensor) -> Result<Tensor> {
    match device() {
        Device::Cpu => rows.dequantize_to_f32(),
        Device::Metal | Device::Cuda => rows.dequantize(),
    }
}
