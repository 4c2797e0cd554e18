//! The first and the last launch of a recorded step: the rows of the embedding, and the choice of the next
//! tokens.

use std::rc::Rc;

use mlx::fused::Rows;
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::recorder;

const THREADS: i32 = 256;
/// Threads that choose the token of a row.
const CHOOSING: u32 = 1024;

/// A table as the kernel takes it.
#[derive(Clone, Copy)]
struct Table<'a> {
    numbers: &'a Tensor,
    scales: &'a Tensor,
    biases: &'a Tensor,
    /// Of the rows.
    dtype: Dtype,
    /// How they are quantized, if they are.
    format: Option<QuantizationFormat>,
}

impl<'a> Table<'a> {
    /// `None` if there is no kernel for its numbers.
    fn new(rows: Rows<'a>, dtype: Dtype) -> Option<Self> {
        let (numbers, scales, biases, format) = match rows {
            Rows::Plain(numbers) => (numbers, numbers, numbers, None),
            Rows::Quantized(matrix) => {
                let affine = matrix.format.mode == c"affine" && matches!(matrix.format.bits, 4 | 8);
                let biases = match &matrix.biases {
                    Some(biases) if affine => biases,
                    None if matrix.format.mode == c"mxfp4" => &matrix.scales,
                    _ => return None,
                };
                (&matrix.weight, &matrix.scales, biases, Some(matrix.format))
            }
        };
        Some(Self {
            numbers,
            scales,
            biases,
            dtype,
            format,
        })
    }

    fn width(&self) -> i32 {
        self.numbers.dim(1) * self.format.map_or(1, |format| 32 / format.bits)
    }

    /// The numbers that the kernel gets.
    fn key(&self) -> Key {
        let (bits, group) = self.format.map_or((0, 1), |format| (format.bits, format.group_size));
        let mxfp4 = self.format.is_some_and(|format| format.mode == c"mxfp4");
        Key::new(
            Program::Ends,
            self.dtype,
            [0, self.width(), bits, group, i32::from(mxfp4)],
        )
    }
}

/// The rows of a table by `ids` `[length]`, `[length, width]`, as activations of a type. `None` if no kernel can be
/// used, or no step is recorded: MLX's own operations are as good for one that is not.
pub fn embedding(table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
    let dtype = match table {
        Rows::Plain(numbers) => numbers.dtype(),
        Rows::Quantized(matrix) if matrix.biases.is_some() => matrix.scales.dtype(),
        // MLX dequantizes MXFP4 to this.
        Rows::Quantized(_) => Dtype::Bfloat16,
    };
    let Some(table) = Table::new(table, dtype).filter(|_| recording::is_on() && ids.dtype() == Dtype::Uint32) else {
        return Ok(None);
    };
    let kernel = find(table.key(), |kernel| compare(kernel, table));
    kernel.map(|kernel| launch(&kernel, ids, table)).transpose()
}

fn launch(kernel: &Kernel, ids: &Tensor, table: Table<'_>) -> Result<Tensor> {
    let shape = [ids.dim(0), table.width()];
    let inputs = [ids, table.numbers, table.scales, table.biases];
    let [rows] = kernel.launch(inputs, [(&shape[..], table.dtype)], (ids.dim(0), 1), THREADS)?;
    Ok(rows)
}

/// Compares on random numbers in the place of these.
fn compare(kernel: &Kernel, like: Table<'_>) -> Result<f32> {
    let ids = Tensor::from_i32(&[5, 0, 8, 5], &[4]).astype(Dtype::Uint32)?;
    let plain = noise(&[9, like.width()], like.dtype, 71)?;
    let quantized = like
        .format
        .map(|format| QuantizedTensor::quantize(&plain, format))
        .transpose()?;
    let (rows, all) = match &quantized {
        None => (Rows::Plain(&plain), plain.clone()),
        Some(matrix) => (Rows::Quantized(matrix), matrix.dequantize()?),
    };
    match Table::new(rows, like.dtype) {
        Some(table) => difference(&launch(kernel, &ids, table)?, &all.take(&ids, 0)?),
        None => Ok(f32::INFINITY),
    }
}

/// Records the choice of a token by each row of logits `[sequences, vocabulary]` and its sampler, which the next step
/// reads.
pub fn choice(logits: &Tensor, sequences: usize) -> Result<()> {
    let &[rows, vocabulary] = logits.shape() else {
        return Err(Error::Unsupported("logits that are no rows".into()));
    };
    if rows as usize != sequences {
        return Err(Error::Unsupported(
            "logits of other rows than one of each sequence".into(),
        ));
    }
    let module = Rc::new(Program::Ends.module(logits.dtype())?);
    recorder::launch_choice(module, &[2, vocabulary + 1], logits, (rows as u32, 1, CHOOSING))
}
