//! Matrices in the form in which rows are multiplied with them.

use mlx::device::{device, Device};
use mlx::fused::Rows;
use mlx::ops::{concatenate, join};
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::products::product_check::Layout;
use crate::weights::{join_quantized, Matrix, Storage, Weights};

/// A matrix, or a stack of such with one for each expert.
#[derive(Parameters)]
pub enum Product {
    /// Plain numbers, turned so that outputs are last.
    Plain(Tensor),
    /// Plain numbers as they are stored, one row per output, on a CPU.
    Stored(Tensor),
    /// Quantized rows, one per output.
    Quantized(QuantizedTensor),
    /// Projections of one input in different number formats, which cannot become one matrix.
    Split(Vec<Product>),
}

/// Numbers in the type that the device computes in.
pub fn computed(rows: Tensor) -> Result<Tensor> {
    match device() {
        Device::Cpu => rows.astype(Dtype::Float32),
        Device::Metal | Device::Cuda => Ok(rows),
    }
}

/// How matrices are joined and turned.
#[derive(Clone, Copy)]
pub struct Form {
    /// How they are multiplied.
    pub layout: Layout,
    /// The axis of the outputs in the checkpoint.
    pub outputs: i32,
    /// Joins plain numbers along the outputs and turns them.
    pub turn: fn(&[&Tensor]) -> Result<Tensor>,
}

impl Product {
    /// Joins matrices of one input along their outputs if their formats agree.
    pub fn join(matrices: Vec<Matrix>, form: Form) -> Result<Self> {
        match Storage::of(&matrices) {
            Storage::Plain(parts) => return Self::plain(&parts, form),
            Storage::Quantized(parts) => return Ok(Self::Quantized(join_quantized(&parts, form.outputs)?)),
            Storage::Mixed => {}
        }
        let parts = matrices.into_iter().map(|matrix| Self::join(vec![matrix], form));
        Ok(Self::Split(parts.collect::<Result<_>>()?))
    }

    /// The same matrices, as numbers if this device multiplies them wrongly as they are.
    pub fn checked(self, form: Form, weights: &mut Weights<'_>) -> error::Result<Self> {
        Ok(match self {
            Self::Plain(_) | Self::Stored(_) => self,
            Self::Quantized(matrix) => match weights.replacement(&matrix, form.layout)? {
                Some(numbers) => Self::plain(&[&numbers], form)?,
                None => Self::Quantized(matrix),
            },
            Self::Split(parts) => {
                let parts = parts.into_iter().map(|part| part.checked(form, weights));
                Self::Split(parts.collect::<error::Result<_>>()?)
            }
        })
    }

    /// Plain numbers joined along their outputs.
    pub fn plain(parts: &[&Tensor], form: Form) -> Result<Self> {
        match device() {
            // Kernels read rows that lie in one piece.
            Device::Cpu => join(parts.iter().copied(), form.outputs)?
                .contiguous()
                .map(Self::Stored),
            Device::Metal | Device::Cuda => (form.turn)(parts).map(Self::Plain),
        }
    }

    /// The matrix as it is stored, if it is.
    pub fn rows(&self) -> Option<Rows<'_>> {
        match self {
            Self::Stored(numbers) => Some(Rows::Plain(numbers)),
            Self::Quantized(matrix) => Some(Rows::Quantized(matrix)),
            Self::Plain(_) | Self::Split(_) => None,
        }
    }

    /// The rows `[outputs, inputs]` in 32 bit floats.
    pub fn rows_f32(&self) -> Result<Tensor> {
        match self {
            Self::Plain(numbers) => numbers.swapaxes(-1, -2)?.astype(Dtype::Float32),
            Self::Stored(numbers) => numbers.astype(Dtype::Float32),
            Self::Quantized(matrix) => matrix.dequantize_to_f32(),
            Self::Split(parts) => {
                let parts = parts.iter().map(Self::rows_f32).collect::<Result<Vec<_>>>()?;
                concatenate(&parts.iter().collect::<Vec<_>>(), -2)
            }
        }
    }

    /// The outputs of all parts side by side.
    pub fn forward(
        &self,
        plain: &dyn Fn(&Tensor) -> Result<Tensor>,
        stored: &dyn Fn(Rows<'_>) -> Result<Tensor>,
    ) -> Result<Tensor> {
        match self {
            Self::Plain(numbers) => plain(numbers),
            Self::Stored(numbers) => stored(Rows::Plain(numbers)),
            Self::Quantized(matrix) => stored(Rows::Quantized(matrix)),
            Self::Split(parts) => {
                let outputs = parts.iter().map(|part| part.forward(plain, stored));
                let outputs = outputs.collect::<Result<Vec<_>>>()?;
                concatenate(&outputs.iter().collect::<Vec<_>>(), -1)
            }
        }
    }
}
