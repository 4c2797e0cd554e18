//! From the residual stream to a projection: the pending part is added to the stream, the sum normed and projected, all
//! in one launch.

use mlx::fused::{Epilogue, ResidualInput};
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{added, common_eps, difference, noise, NoiseRows};
use crate::gate::{compose, number};
use crate::kernel::{find, Kernel, Key};
use crate::linear::variant;
use crate::program::Program;

const THREADS: i32 = 256;

/// The normed row times the transpose of the matrix, `[1, outputs]`, and the row before its norm. `None` if no kernel
/// can be used.
pub fn norm_linear(
    row: ResidualInput<'_>,
    matrix: &QuantizedTensor,
    after: Epilogue<'_>,
) -> Result<Option<(Tensor, Tensor)>> {
    let (&[1, inputs], Some(biases)) = (row.h.shape(), &matrix.biases) else {
        return Ok(None);
    };
    let (gated, curve, other) = match after {
        Epilogue::Plain => (false, None, None),
        Epilogue::Gated(curve) => (true, Some(curve), None),
        Epilogue::Times(curve, other) => (false, Some(curve), Some(other)),
    };
    // The row lies in shared memory in steps of 512.
    let staged = (inputs + 511) / 512 * 512 * (row.h.nbytes() / row.h.size().max(1)) as i32;
    let Some(eps) = common_eps(row, [other, Some(biases)]).filter(|_| staged <= 40_960) else {
        return Ok(None);
    };
    let Some((variant, rows)) = variant(matrix, inputs, gated, row.h.dtype()) else {
        return Ok(None);
    };
    let is = |given: bool| i32::from(given);
    let numbers = [
        0,
        variant,
        is(row.inner.is_some()),
        is(row.factor.is_some()),
        is(row.outer.is_some()),
        is(other.is_some()),
        curve.map_or(0, number),
        eps,
    ];
    let bits = matrix.format.bits;
    let kernel = find(Key::new(Program::NormLinear, row.h.dtype(), numbers), |kernel| {
        compare(kernel, rows, row, bits, after)
    });
    let launched = kernel.map(|kernel| launch(&kernel, rows, row, matrix, biases, after));
    launched.transpose()
}

fn launch(
    kernel: &Kernel,
    rows: i32,
    row: ResidualInput<'_>,
    matrix: &QuantizedTensor,
    biases: &Tensor,
    after: Epilogue<'_>,
) -> Result<(Tensor, Tensor)> {
    let all = matrix.scales.dim(0);
    let outputs = all / if matches!(after, Epilogue::Gated(_)) { 2 } else { 1 };
    let h = row.h;
    let (inner, outer) = (row.inner.map_or(h, |norm| norm.0), row.outer.map_or(h, |norm| norm.0));
    let other = match after {
        Epilogue::Times(_, other) => other,
        _ => h,
    };
    let inputs = [
        h,
        row.x,
        inner,
        row.factor.unwrap_or(h),
        outer,
        &matrix.weight,
        &matrix.scales,
        biases,
        other,
    ];
    let block = THREADS / 32 * rows;
    let results = [(&[1, outputs][..], h.dtype()), (h.shape(), h.dtype())];
    let [y, sum] = kernel.launch(inputs, results, ((all + block - 1) / block, 1), THREADS)?;
    Ok((y, sum))
}

/// Compares on random numbers in the place of these.
fn compare(kernel: &Kernel, rows: i32, like: ResidualInput<'_>, bits: i32, after: Epilogue<'_>) -> Result<f32> {
    let dtype = like.h.dtype();
    let mut apart: f32 = 0.0;
    for (inputs, outputs, group_size) in [(192, 44, 32), (1280, 140, 64), (2560, 32, 128)] {
        let format = QuantizationFormat {
            group_size,
            bits,
            mode: c"affine",
        };
        let rows_of_noise = NoiseRows::new(1, inputs, dtype, 41)?;
        let (row, other) = (rows_of_noise.like(like), noise(&[1, outputs], dtype, 44)?);
        let after = match after {
            Epilogue::Times(curve, _) => Epilogue::Times(curve, &other),
            same => same,
        };
        let matrix = QuantizedTensor::quantize(&noise(&[outputs, inputs], dtype, 47)?, format)?;
        let Some(biases) = &matrix.biases else {
            return Ok(f32::INFINITY);
        };
        let (made, sum) = launch(kernel, rows, row, &matrix, biases, after)?;
        let (wanted_sum, normed) = added(row)?;
        let wide = matrix.dequantize()?.astype(Dtype::Float32)?.swapaxes(0, 1)?;
        let product = normed.astype(Dtype::Float32)?.matmul(&wide)?;
        let half = outputs / 2;
        let wanted = match after {
            Epilogue::Plain => product,
            Epilogue::Gated(curve) => compose(curve, &product.slice(1, 0, half)?, &product.slice(1, half, outputs)?)?,
            Epilogue::Times(curve, other) => compose(curve, &product, other)?,
        };
        apart = apart
            .max(difference(&made, &wanted)?)
            .max(difference(&sum, &wanted_sum)?);
    }
    Ok(apart)
}
