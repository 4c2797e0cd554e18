//! The first and the last launch of a recorded step: the rows of the embedding, and the likeliest tokens.

use std::rc::Rc;

use mlx::fused::Rows;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::record;

const THREADS: i32 = 256;
/// Threads that look for the likeliest of a row.
const CHOOSING: u32 = 1024;

/// The rows of a table by `ids` `[length]`, `[length, width]`. `None` if no kernel can be used, or no step is recorded:
/// MLX's own operations are as good for one that is not.
pub fn embedding(table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
    if !recording::is_on() || ids.dtype() != Dtype::Uint32 {
        return Ok(None);
    }
    let (numbers, scales, biases, bits, group) = match table {
        Rows::Plain(numbers) => (numbers, numbers, numbers, 0, 1),
        Rows::Quantized(matrix) => match &matrix.biases {
            Some(biases) if matrix.format.mode == c"affine" && matches!(matrix.format.bits, 4 | 8) => {
                let format = &matrix.format;
                (&matrix.weight, &matrix.scales, biases, format.bits, format.group_size)
            }
            _ => return Ok(None),
        },
    };
    let width = if bits == 0 {
        numbers.dim(1)
    } else {
        numbers.dim(1) * 32 / bits
    };
    let key = Key::new(Program::Ends, scales.dtype(), [0, width, bits, group]);
    let kernel = find(key, |kernel| compare(kernel, scales.dtype(), width, bits, group));
    let launched = kernel.map(|kernel| launch(&kernel, ids, [numbers, scales, biases], width));
    launched.transpose()
}

fn launch(kernel: &Kernel, ids: &Tensor, [numbers, scales, biases]: [&Tensor; 3], width: i32) -> Result<Tensor> {
    let shape = [ids.dim(0), width];
    let outputs = [(&shape[..], scales.dtype())];
    let [rows] = kernel.launch([ids, numbers, scales, biases], outputs, (ids.dim(0), 1), THREADS)?;
    Ok(rows)
}

fn compare(kernel: &Kernel, dtype: Dtype, width: i32, bits: i32, group_size: i32) -> Result<f32> {
    use mlx::quantized::{QuantizationFormat, QuantizedTensor};
    let ids = Tensor::from_i32(&[5, 0, 8, 5], &[4]).astype(Dtype::Uint32)?;
    let plain = noise(&[9, width], dtype, 71)?;
    if bits == 0 {
        let made = launch(kernel, &ids, [&plain; 3], width)?;
        return difference(&made, &plain.take(&ids, 0)?);
    }
    let format = QuantizationFormat {
        group_size,
        bits,
        mode: c"affine",
    };
    let matrix = QuantizedTensor::quantize(&plain, format)?;
    let Some(biases) = &matrix.biases else {
        return Ok(f32::INFINITY);
    };
    let made = launch(kernel, &ids, [&matrix.weight, &matrix.scales, biases], width)?;
    difference(&made, &matrix.dequantize()?.take(&ids, 0)?)
}

/// Records the choice of the likeliest token of each row of logits `[sequences, vocabulary]`, which the next step reads.
pub fn likeliest(logits: &Tensor, sequences: usize) -> Result<()> {
    let &[rows, vocabulary] = logits.shape() else {
        return Err(Error::Unsupported("logits that are no rows".into()));
    };
    if rows as usize != sequences {
        return Err(Error::Unsupported(
            "logits of other rows than one of each sequence".into(),
        ));
    }
    let module = Rc::new(Program::Ends.module(logits.dtype())?);
    record::launch_choice(module, &[2, vocabulary + 1], logits, (rows as u32, 1, CHOOSING))
}
