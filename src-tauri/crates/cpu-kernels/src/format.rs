//! How the numbers of a matrix are stored.

use mlx::fused::Rows;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::Dtype;

use crate::lanes::BLOCK;

/// The type of a stored number, scale or bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// 32 bit floats.
    F32,
    /// IEEE's 16 bit floats.
    F16,
    /// 16 bit floats with the exponent of 32 bits.
    Bf16,
    /// A power of two, of eight bits.
    E8m0,
    /// A float of eight bits.
    E4m3,
}

impl Number {
    /// That of an array of floats.
    pub fn of(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::Float32 => Some(Self::F32),
            Dtype::Float16 => Some(Self::F16),
            Dtype::Bfloat16 => Some(Self::Bf16),
            _ => None,
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::E8m0 | Self::E4m3 => 1,
        }
    }
}

/// The coding of the numbers of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Integers of so many bits, with a scale and a bias for each group.
    Affine(u8),
    /// E2M1, with a scale for each group.
    Float4,
    /// E4M3, with a scale for each group.
    Float8,
    /// Floats as they are.
    Plain(Number),
}

/// The format of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The numbers.
    pub coding: Coding,
    /// Numbers that share a scale; 0 if there are no scales.
    pub group: usize,
    /// Scales, and biases if the coding has any.
    pub scales: Number,
}

impl Format {
    /// That of a quantized matrix; `None` if there is no kernel for it.
    pub fn of(matrix: &QuantizedTensor) -> Option<Self> {
        let group = matrix.format.group_size as usize;
        let mode = matrix.format.mode.to_bytes();
        let (coding, scales) = match (mode, matrix.format.bits, group) {
            (b"affine", bits @ (2..=6 | 8), 32 | 64 | 128) => {
                let scales = Number::of(matrix.scales.dtype())?;
                let biases = matrix.biases.as_ref()?;
                if biases.dtype() != matrix.scales.dtype() || biases.shape() != matrix.scales.shape() {
                    return None;
                }
                (Coding::Affine(bits as u8), scales)
            }
            (b"mxfp4", 4, 32) => (Coding::Float4, Number::E8m0),
            (b"nvfp4", 4, 16) => (Coding::Float4, Number::E4m3),
            (b"mxfp8", 8, 32) => (Coding::Float8, Number::E8m0),
            _ => return None,
        };
        Some(Self { coding, group, scales })
    }

    /// That of a matrix of plain numbers.
    pub fn plain(dtype: Dtype) -> Option<Self> {
        Some(Self {
            coding: Coding::Plain(Number::of(dtype)?),
            group: 0,
            scales: Number::F32,
        })
    }

    /// Bytes of an element of the array of numbers.
    pub fn word_bytes(&self) -> usize {
        match self.coding {
            Coding::Plain(number) => number.bytes(),
            _ => 4,
        }
    }

    /// True if blocks have the numbers of even places first.
    pub fn splits(&self) -> bool {
        matches!(self.coding, Coding::Affine(4) | Coding::Float4)
    }

    /// True if groups have a bias.
    pub fn has_biases(&self) -> bool {
        matches!(self.coding, Coding::Affine(_))
    }
}

/// A matrix, or a stack of such, that there is a kernel for.
pub struct Stored<'a> {
    /// How numbers are stored.
    pub format: Format,
    /// Numbers of a row.
    pub inputs: usize,
    /// The numbers, and if there are any scales and biases.
    pub arrays: Vec<&'a Tensor>,
}

impl<'a> Stored<'a> {
    /// That of these rows, if there is a kernel for them.
    pub fn of(rows: Rows<'a>) -> Option<Self> {
        match rows {
            Rows::Plain(rows) => {
                let format = Format::plain(rows.dtype())?;
                Some(Self {
                    format,
                    inputs: *rows.shape().last()? as usize,
                    arrays: vec![rows],
                })
            }
            Rows::Quantized(matrix) => {
                let format = Format::of(matrix)?;
                let inputs = *matrix.scales.shape().last()? as usize * format.group;
                let mut arrays = vec![&matrix.weight, &matrix.scales];
                arrays.extend(&matrix.biases);
                // Blocks are read whole.
                inputs.is_multiple_of(BLOCK).then_some(Self { format, inputs, arrays })
            }
        }
    }

    /// The axes before the inputs.
    pub fn outputs(&self) -> &'a [i32] {
        let shape = self.arrays[0].shape();
        &shape[..shape.len() - 1]
    }
}
