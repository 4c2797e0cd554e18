//! A few rows times a quantized matrix, as in decoding, which MLX's kernels for CUDA are slowest at.

use mlx::fused::GateActivation;
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::gate::{compose, number};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

const THREADS: i32 = 256;
/// From more rows on, MLX's own products are faster.
const MAX_ROWS: i32 = 4;
/// From this many outputs on, a warp computes four of them at once.
const MANY: i32 = 12_288;

/// `x` `[rows, inputs]` times the transpose of the matrix, `[rows, outputs]`; with `gated`, the curve of the first half
/// of that times the second half. `None` if no kernel can be used.
pub fn linear(x: &Tensor, matrix: &QuantizedTensor, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
    let (&[length, inputs], Some(biases)) = (x.shape(), &matrix.biases) else {
        return Ok(None);
    };
    if length > MAX_ROWS || biases.dtype() != x.dtype() {
        return Ok(None);
    }
    let Some((variant, rows)) = variant(matrix, inputs, gated.is_some(), x.dtype()) else {
        return Ok(None);
    };
    let bits = matrix.format.bits;
    let key = Key::new(Program::One, x.dtype(), [0, variant, gated.map_or(0, number)]);
    let kernel = find(key, |kernel| compare(kernel, rows, x.dtype(), bits, gated));
    let launched = kernel.map(|kernel| launch(&kernel, rows, x, matrix, biases, gated.is_some()));
    launched.transpose()
}

/// The number of the variant for a matrix, and how many rows a warp takes at once; `None` if there is none.
pub fn variant(matrix: &QuantizedTensor, inputs: i32, gated: bool, dtype: Dtype) -> Option<(i32, i32)> {
    let QuantizationFormat { group_size, bits, mode } = matrix.format;
    let outputs = matrix.scales.dim(0);
    let fits = mode == c"affine" && matrix.scales.dtype() == dtype && matrix.scales.shape().len() == 2;
    if !fits || inputs % 16 != 0 || group_size % 16 != 0 || (gated && outputs % 2 != 0) {
        return None;
    }
    match (bits, gated) {
        (4, false) if outputs < MANY => Some((0, 2)),
        (4, false) => Some((1, 4)),
        (4, true) => Some((2, 4)),
        (8, false) => Some((3, 2)),
        (8, true) => Some((4, 4)),
        _ => None,
    }
}

fn launch(
    kernel: &Kernel,
    rows: i32,
    x: &Tensor,
    matrix: &QuantizedTensor,
    biases: &Tensor,
    gated: bool,
) -> Result<Tensor> {
    let all = matrix.scales.dim(0);
    let outputs = if gated { all / 2 } else { all };
    // Rows of the matrix that a block works at; a gated output takes two.
    let block = THREADS / 32 * rows;
    let blocks = ((all + block - 1) / block, x.dim(0));
    let (inputs, made) = ([x, &matrix.weight, &matrix.scales, biases], [x.dim(0), outputs]);
    let [out] = kernel.launch(inputs, [(&made, x.dtype())], blocks, THREADS)?;
    Ok(out)
}

fn compare(kernel: &Kernel, rows: i32, dtype: Dtype, bits: i32, gated: Option<GateActivation>) -> Result<f32> {
    let mut apart: f32 = 0.0;
    // More and fewer inputs than a warp takes at once, and outputs that leave a block unfilled.
    for (inputs, outputs, group_size) in [(192, 44, 32), (1280, 140, 64), (2560, 32, 128)] {
        let format = QuantizationFormat {
            group_size,
            bits,
            mode: c"affine",
        };
        let x = noise(&[3, inputs], dtype, 31)?;
        let matrix = QuantizedTensor::quantize(&noise(&[outputs, inputs], dtype, 32)?, format)?;
        let Some(biases) = &matrix.biases else {
            return Ok(f32::INFINITY);
        };
        let made = launch(kernel, rows, &x, &matrix, biases, gated.is_some())?;
        let wide = matrix.dequantize()?.astype(Dtype::Float32)?;
        let mut wanted = x.astype(Dtype::Float32)?.matmul(&wide.swapaxes(0, 1)?)?;
        if let Some(curve) = gated {
            let half = outputs / 2;
            wanted = compose(curve, &wanted.slice(1, 0, half)?, &wanted.slice(1, half, outputs)?)?;
        }
        apart = apart.max(difference(&made, &wanted)?);
    }
    Ok(apart)
}
