//! Matrices as the kernels on tensor cores take them: in tiles of 16 rows, on whose inputs the warps of a block share.

use mlx::fused::Rows;
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::noise;

/// Rows of a tile, which are outputs of a block.
pub const TILE: i32 = 16;
/// From fewer tiles on, a block is wider: it is alone on its multiprocessor.
pub const FEW_TILES: i32 = 256;
/// Shared memory of a block, a slot of a tile in it, and the slots of a warp (`tiles.cuh`).
const ROOM: i32 = 48 * 1024 - 256;
const SLOT: i32 = TILE * LINE;
const LINE: i32 = 128;
const DEPTH: i32 = 2;

/// A matrix `[outputs, inputs]` or a stack of such.
#[derive(Clone, Copy)]
pub struct Tiles<'a> {
    /// Its words or numbers.
    pub weight: &'a Tensor,
    /// Its scales; any array if it has none.
    pub scales: &'a Tensor,
    /// Its biases; any array if it has none.
    pub biases: &'a Tensor,
    /// Inputs of a row.
    pub inputs: i32,
    /// Rows.
    pub outputs: i32,
    /// Bytes of a row.
    pub bytes: i32,
    /// Bytes of the scales and biases of a row.
    scale_bytes: i32,
    /// Numbers that have a scale in common, if they are quantized.
    pub group: Option<i32>,
    /// Its kind in the kernels: of the numbers, and how many steps a group has, as a power of two.
    pub code: (i32, i32),
}

impl<'a> Tiles<'a> {
    /// The matrix for activations of this type; `None` if no kernel takes it. With `gated`, both halves of the outputs
    /// are tiled.
    pub fn new(matrix: Rows<'a>, inputs: i32, dtype: Dtype, gated: bool) -> Option<Self> {
        if !matches!(dtype, Dtype::Bfloat16 | Dtype::Float16) {
            return None;
        }
        let (weight, scales, biases, code, bits, scale_bits) = match matrix {
            Rows::Plain(numbers) if numbers.dtype() == dtype => (numbers, numbers, numbers, (5, 0), 16, 0),
            Rows::Plain(_) => return None,
            Rows::Quantized(matrix) => {
                let QuantizationFormat { group_size, bits, mode } = matrix.format;
                let first = if bits == 8 { 2 } else { 0 };
                let (code, own_types) = match (bits, group_size, &matrix.biases) {
                    (4, 32, None) if mode == c"mxfp4" => ((4, 0), matrix.scales.dtype() == Dtype::Uint8),
                    (4 | 8, 32 | 64 | 128, Some(biases)) if mode == c"affine" => (
                        (first + i32::from(group_size == 32), i32::from(group_size == 128)),
                        matrix.scales.dtype() == dtype && biases.dtype() == dtype,
                    ),
                    _ => return None,
                };
                if !own_types {
                    return None;
                }
                let biases = matrix.biases.as_ref();
                let scale_bits = if biases.is_some() { 32 } else { 8 };
                let biases = biases.unwrap_or(&matrix.scales);
                (
                    &matrix.weight,
                    &matrix.scales,
                    biases,
                    code,
                    bits,
                    scale_bits * inputs / group_size,
                )
            }
        };
        let outputs = weight.shape().iter().rev().nth(1).copied()?;
        let halves = if gated { 2 } else { 1 };
        // Rows begin where 16 bytes can be copied at once, scales where 8 can.
        let fits = inputs % 64 == 0 && outputs % (4 * halves) == 0 && outputs / halves >= TILE;
        fits.then_some(Self {
            weight,
            scales,
            biases,
            inputs,
            outputs,
            bytes: inputs / 8 * bits,
            scale_bytes: scale_bits / 8,
            group: match matrix {
                Rows::Plain(_) => None,
                Rows::Quantized(matrix) => Some(matrix.format.group_size),
            },
            code,
        })
    }

    /// How many blocks or turns of them it takes to make all outputs.
    pub fn count(&self, gated: bool) -> i32 {
        (self.outputs / if gated { 2 } else { 1 } + TILE - 1) / TILE
    }

    /// Slots of 128 bytes that a row has.
    pub fn slots(&self) -> i32 {
        (self.bytes + LINE - 1) / LINE
    }

    /// How many warps a block has for each of its `tiles`, at most `most`. `sets` of scales and `kept` bytes lie in
    /// its memory in addition to what warps need. `None` if there is no room for one.
    pub fn warps(&self, most: i32, tiles: i32, sets: i32, kept: i32) -> Option<i32> {
        let free = ROOM - kept - sets * tiles * TILE * self.scale_bytes;
        let turns = |warps: i32| (self.slots() + warps - 1) / warps;
        let ring = |warps: i32| if turns(warps) == 1 { SLOT } else { DEPTH * SLOT };
        let evenly = |warps: i32| (self.slots() + turns(warps) - 1) / turns(warps);
        let fits = |warps: &i32| *warps * tiles * ring(*warps) <= free;
        (1..=most).rev().map(evenly).find(fits)
    }

    /// The most warps for each tile of a block.
    pub fn most_warps(&self, gated: bool) -> i32 {
        match (self.count(gated) < FEW_TILES, gated) {
            (true, false) => 8,
            (true, true) => 4,
            (false, _) => 5,
        }
    }
}

/// A matrix of noise with a format, or of plain numbers, to compare with.
pub enum NoiseMatrix {
    /// Plain ones.
    Plain(Tensor),
    /// Quantized ones.
    Quantized(QuantizedTensor),
}

impl NoiseMatrix {
    /// One of the kind of `like`.
    pub fn like(like: Rows<'_>, shape: &[i32], dtype: Dtype, seed: u32) -> Result<Self> {
        let numbers = noise(shape, dtype, seed)?;
        Ok(match like {
            Rows::Plain(_) => Self::Plain(numbers),
            Rows::Quantized(matrix) => Self::Quantized(QuantizedTensor::quantize(&numbers, matrix.format)?),
        })
    }

    /// The matrix.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Self::Plain(numbers) => Rows::Plain(numbers),
            Self::Quantized(matrix) => Rows::Quantized(matrix),
        }
    }

    /// Its numbers with 32 bits, `[inputs, outputs]`.
    pub fn transposed(&self) -> Result<Tensor> {
        let numbers = match self {
            Self::Plain(numbers) => numbers.clone(),
            Self::Quantized(matrix) => matrix.dequantize()?,
        };
        let last = numbers.shape().len();
        numbers
            .astype(Dtype::Float32)?
            .swapaxes(last as i32 - 2, last as i32 - 1)
    }
}

/// Inputs and outputs to compare a matrix of this kind with: some leave a slot of a row, a block or warps unfilled.
pub fn sizes(matrix: Rows<'_>) -> [(i32, i32); 3] {
    let group = match matrix {
        Rows::Plain(_) => 64,
        Rows::Quantized(matrix) => matrix.format.group_size.max(64),
    };
    [(5 * group, 40), (1280, 136), (21 * group, 72)]
}
