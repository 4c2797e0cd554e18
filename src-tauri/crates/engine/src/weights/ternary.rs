//! BitNet's weights: -1, 0 and 1, four to a byte, with one factor for a whole matrix. MLX multiplies integers of 2 bits
//! that have a scale and a bias for each group of numbers, which say the same.

use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::{wrong_shape, Matrix, Weights};
use crate::error::{Error, Result};

/// How many numbers a byte holds.
const IN_BYTE: i32 = 4;

/// How many numbers a word of MLX holds.
const IN_WORD: i32 = 16;

impl Weights<'_> {
    /// The matrix `path.weight` `[rows / 4, columns]` of bytes, the lowest bits of which are the first quarter of the
    /// rows, times `path.weight_scale` `[1]`.
    pub(super) fn ternary(&mut self, path: &str, bytes: &Tensor, rows: i32, columns: i32) -> Result<Matrix> {
        let scale = self.take(&format!("{path}.weight_scale"), &[1])?;
        if bytes.dtype() != Dtype::Uint8 || bytes.shape() != [rows / IN_BYTE, columns] || rows % IN_BYTE != 0 {
            let expected = format!("bytes of a ternary [{rows}, {columns}]");
            return Err(wrong_shape(&format!("{path}.weight"), bytes, expected));
        }
        let sizes = [128, 64, 32].into_iter().find(|size| columns % size == 0);
        let Some(group_size) = sizes else {
            return Err(Error::Unsupported(format!("ternary weights with {columns} columns")));
        };
        self.parameters += rows as u64 * columns as u64;
        let groups = [rows, columns / group_size];
        let scales = scale.reshape(&[1, 1])?.broadcast(&groups)?.contiguous()?;
        Ok(Matrix::Quantized(QuantizedTensor {
            weight: words(bytes, rows, columns)?,
            biases: Some(scales.negative()?),
            scales,
            format: QuantizationFormat {
                group_size,
                bits: 2,
                mode: c"affine",
            },
        }))
    }
}

/// The numbers, from 0 on, as MLX packs them: `[rows, columns / 16]`, the first in the lowest bits.
fn words(bytes: &Tensor, rows: i32, columns: i32) -> mlx::Result<Tensor> {
    let number = |value: i32| Tensor::from_i32(&[value], &[1]).astype(Dtype::Uint32);
    let wide = bytes.astype(Dtype::Uint32)?;
    let quarters = (0..IN_BYTE).map(|place| {
        let rest = wide.floor_divide(&number(1 << (2 * place))?)?;
        rest.sub(&rest.floor_divide(&number(4)?)?.mul(&number(4)?)?)
    });
    let numbers = mlx::ops::join(&quarters.collect::<mlx::Result<Vec<_>>>()?, 0)?;
    let places = (0..IN_WORD)
        .map(|place| 1i32.wrapping_shl(2 * place as u32))
        .collect::<Vec<_>>();
    let places = Tensor::from_i32(&places, &[1, 1, IN_WORD]).astype(Dtype::Uint32)?;
    let apart = numbers.reshape(&[rows, columns / IN_WORD, IN_WORD])?;
    apart.mul(&places)?.sum(2, false)
}
