//! Matrices as a checkpoint stores them, plain or quantized.

use mlx::ops::join;
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::Dtype;

/// A tensor of the checkpoint: plain, or quantized with its parameters inferred from the shapes.
#[derive(Parameters)]
pub enum Matrix {
    /// Numbers as they are.
    Plain(Tensor),
    /// Small numbers with scales.
    Quantized(QuantizedTensor),
}

impl Matrix {
    /// The numbers, of which quantized ones have become 32 bit floats, in the type that a CPU computes in.
    pub fn into_f32(self) -> mlx::Result<Tensor> {
        match self {
            Self::Plain(numbers) => numbers.astype(Dtype::Float32),
            Self::Quantized(quantized) => quantized.dequantize_to_f32(),
        }
    }
}

/// How matrices of one input are stored, which says whether they can be joined.
pub enum Storage<'a> {
    /// All as they are.
    Plain(Vec<&'a Tensor>),
    /// All quantized in one format.
    Quantized(Vec<&'a QuantizedTensor>),
    /// In more ways than one.
    Mixed,
}

impl<'a> Storage<'a> {
    /// How these are stored.
    pub fn of(matrices: &'a [Matrix]) -> Self {
        let (mut plain, mut quantized) = (Vec::new(), Vec::new());
        for matrix in matrices {
            match matrix {
                Matrix::Plain(rows) => plain.push(rows),
                Matrix::Quantized(rows) => quantized.push(rows),
            }
        }
        if quantized.is_empty() {
            return Self::Plain(plain);
        }
        match plain.is_empty() && quantized.iter().all(|other| other.format == quantized[0].format) {
            true => Self::Quantized(quantized),
            false => Self::Mixed,
        }
    }
}

/// Matrices of one quantized format, of which there is at least one, as one along `axis`.
pub fn join_quantized(parts: &[&QuantizedTensor], axis: i32) -> mlx::Result<QuantizedTensor> {
    let field = |of: fn(&QuantizedTensor) -> &Tensor| join(parts.iter().map(|part| of(part)), axis);
    let biases: Vec<&Tensor> = parts.iter().filter_map(|part| part.biases.as_ref()).collect();
    Ok(QuantizedTensor {
        weight: field(|part| &part.weight)?,
        scales: field(|part| &part.scales)?,
        biases: (!biases.is_empty()).then(|| join(biases, axis)).transpose()?,
        format: parts[0].format,
    })
}
