//! Quantized matrices and the products with them.
#![allow(unsafe_code)]

#[cfg(feature = "test-support")]
use std::cell::Cell;
use std::ffi::CStr;

use mlx_rs::Dtype;

use crate::device::stream;
use crate::error::{Error, Result};
use crate::ops::{maybe, op, some, AUTOMATIC};
use crate::parameters::Parameters;
use crate::tensor::Tensor;

#[cfg(feature = "test-support")]
thread_local! {
    static WRONG_INPUTS: Cell<i32> = const { Cell::new(0) };
}

/// The number format of a quantized matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizationFormat {
    /// Weights that share a scale.
    pub group_size: i32,
    /// Bits of a weight.
    pub bits: i32,
    /// MLX's name of the format.
    pub mode: &'static CStr,
}

/// A quantized matrix, or a stack of such: `weight` holds 32 bit words full of small numbers, one row per output.
#[derive(Debug, Clone, Parameters)]
pub struct QuantizedTensor {
    /// The words.
    pub weight: Tensor,
    /// One scale per group.
    pub scales: Tensor,
    /// One bias per group, in the affine format.
    pub biases: Option<Tensor>,
    /// The format.
    #[parameters(skip)]
    pub format: QuantizationFormat,
}

impl QuantizedTensor {
    /// How many numbers it stands for.
    pub fn numbers(&self) -> usize {
        self.scales.size() * self.format.group_size as usize
    }

    /// The type of the numbers that it stands for.
    pub fn dtype(&self) -> Dtype {
        match self.scales.dtype() {
            dtype if dtype.is_float() => dtype,
            _ => Dtype::Bfloat16,
        }
    }

    /// The same operation on all its parts, which leaves the last axis alone.
    pub fn map(&self, part: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Self {
            weight: part(&self.weight)?,
            scales: part(&self.scales)?,
            biases: self.biases.as_ref().map(&part).transpose()?,
            format: self.format,
        })
    }

    /// A copy of what lies from `start` up to `stop` along an axis before the last one.
    pub fn slice(&self, axis: usize, start: i32, stop: i32) -> Result<Self> {
        // MLX has kernels for gathered products of contiguous matrices alone.
        self.map(|part| part.slice(axis, start, stop)?.contiguous())
    }

    /// Packs numbers, whose last axis is a multiple of the group.
    pub fn quantize(numbers: &Tensor, format: QuantizationFormat) -> Result<Self> {
        // Formats of floats have no biases.
        let count = if format.mode == c"affine" { 3 } else { 2 };
        let parts = Tensor::make_several(count, |parts| {
            // SAFETY: the handles are borrowed from living tensors, the mode is a terminated string, MLX checks the
            // shape.
            unsafe {
                mlx_sys::mlx_quantize(
                    parts,
                    numbers.raw(),
                    some(format.group_size),
                    some(format.bits),
                    format.mode.as_ptr(),
                    maybe(None),
                    stream(),
                )
            }
        });
        let mut parts = parts?.into_iter();
        let (weight, scales, biases) = (parts.next(), parts.next(), parts.next());
        match (weight, scales) {
            (Some(weight), Some(scales)) => Ok(Self {
                weight,
                scales,
                biases,
                format,
            }),
            _ => Err(Error::Failed("a quantization gave no result".into())),
        }
    }

    /// The numbers it stands for as 32 bit floats. Scales and biases are converted first: the product is then exact,
    /// which rounding it to the scales' 16 bits would undo.
    pub fn dequantize_to_f32(&self) -> Result<Tensor> {
        let wide = |part: &Tensor| match part.dtype() {
            dtype if dtype.is_float() => part.astype(Dtype::Float32),
            _ => Ok(part.clone()),
        };
        self.map(wide)?.dequantize()?.astype(Dtype::Float32)
    }

    /// The numbers it stands for, in the type of its scales (16 bit for formats without such).
    pub fn dequantize(&self) -> Result<Tensor> {
        let (weight, scales, format) = (&self.weight, &self.scales, &self.format);
        op!(
            mlx_dequantize,
            weight.raw(),
            scales.raw(),
            maybe(self.biases.as_ref()),
            some(format.group_size),
            some(format.bits),
            format.mode.as_ptr(),
            maybe(None),
            AUTOMATIC
        )
    }
}

impl Tensor {
    /// As [`Tensor::gather_mm`], with the transposes of a quantized stack `[count, outputs, words]`.
    pub fn gather_qmm(&self, stack: &QuantizedTensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        let format = &stack.format;
        op!(
            mlx_gather_qmm,
            self.raw(),
            stack.weight.raw(),
            stack.scales.raw(),
            maybe(stack.biases.as_ref()),
            maybe(None),
            indices.raw(),
            true,
            some(format.group_size),
            some(format.bits),
            format.mode.as_ptr(),
            sorted
        )
    }

    /// `self` times a quantized matrix, or times its transpose. Leading axes of one are stretched.
    pub fn quantized_matmul(&self, matrix: &QuantizedTensor, transpose: bool) -> Result<Tensor> {
        let format = &matrix.format;
        let product = op!(
            mlx_quantized_matmul,
            self.raw(),
            matrix.weight.raw(),
            matrix.scales.raw(),
            maybe(matrix.biases.as_ref()),
            transpose,
            some(format.group_size),
            some(format.bits),
            format.mode.as_ptr()
        );
        #[cfg(feature = "test-support")]
        if is_faulty(self, matrix) {
            return product?.square();
        }
        product
    }
}

/// Makes products of several rows with quantized matrices of `inputs` inputs wrong on this thread, as MLX's are on some
/// devices.
#[cfg(feature = "test-support")]
pub fn inject_fault(inputs: i32) {
    WRONG_INPUTS.set(inputs);
}

/// True if a test wants this product to be wrong.
#[cfg(feature = "test-support")]
fn is_faulty(rows: &Tensor, matrix: &QuantizedTensor) -> bool {
    let axes = rows.shape().len();
    WRONG_INPUTS.get() == rows.dim(-1) && axes > 1 && rows.dim(-2) > 1 && matrix.scales.shape().len() != 3
}
