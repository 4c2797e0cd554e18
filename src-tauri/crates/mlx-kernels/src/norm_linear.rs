//! From the residual stream to a projection: the pending part is added to the stream, the sum normed and projected, all
//! in one launch.

use mlx::fused::{Epilogue, Norm, ResidualInput};
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
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
    let (inner, outer) = (row.inner.map(|norm| norm.0), row.outer.map(|norm| norm.0));
    let alike = [Some(row.x), inner, row.factor, outer, other, Some(biases)];
    let eps = |norm: Option<Norm<'_>>| norm.map(|(_, eps)| eps.to_bits() as i32);
    let one_eps = eps(row.inner).or(eps(row.outer)).unwrap_or(0);
    let fits = [eps(row.inner), eps(row.outer)]
        .into_iter()
        .flatten()
        .all(|eps| eps == one_eps);
    // The row lies in shared memory in steps of 512.
    let staged = (inputs + 511) / 512 * 512 * (row.h.nbytes() / row.h.size().max(1)) as i32;
    if !fits
        || staged > 40_960
        || alike
            .into_iter()
            .flatten()
            .any(|tensor| tensor.dtype() != row.h.dtype())
    {
        return Ok(None);
    }
    let Some((variant, rows)) = variant(matrix, inputs, gated, row.h.dtype()) else {
        return Ok(None);
    };
    let is = |given: bool| i32::from(given);
    let numbers = [
        0,
        variant,
        is(inner.is_some()),
        is(row.factor.is_some()),
        is(outer.is_some()),
        is(other.is_some()),
        curve.map_or(0, number),
        one_eps,
    ];
    let bits = matrix.format.bits;
    let kernel = find(Key::new(Program::NormLinear, row.h.dtype(), numbers), |kernel| {
        compare(kernel, rows, row, bits, after)
    });
    match kernel {
        Some(kernel) => launch(&kernel, rows, row, matrix, biases, after).map(Some),
        None => Ok(None),
    }
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
    let outputs = if matches!(after, Epilogue::Gated(_)) {
        all / 2
    } else {
        all
    };
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
        let some = |shape: &[i32], seed| noise(shape, dtype, seed);
        let (h, x, factor, other) = (
            some(&[1, inputs], 41)?,
            some(&[1, inputs], 42)?,
            some(&[1], 43)?,
            some(&[1, outputs], 44)?,
        );
        let (inner, outer) = (some(&[inputs], 45)?, some(&[inputs], 46)?);
        let row = ResidualInput {
            h: &h,
            x: &x,
            inner: like.inner.map(|(_, eps)| (&inner, eps)),
            factor: like.factor.map(|_| &factor),
            outer: like.outer.map(|(_, eps)| (&outer, eps)),
        };
        let after = match after {
            Epilogue::Times(curve, _) => Epilogue::Times(curve, &other),
            same => same,
        };
        let matrix = QuantizedTensor::quantize(&some(&[outputs, inputs], 47)?, format)?;
        let Some(biases) = &matrix.biases else {
            return Ok(f32::INFINITY);
        };
        let (made, sum) = launch(kernel, rows, row, &matrix, biases, after)?;
        let added = match row.inner {
            Some((weight, eps)) => x.fast_rms_norm(Some(weight), eps)?,
            None => x.clone(),
        };
        let mut wanted_sum = h.add(&added)?;
        if let Some(factor) = row.factor {
            wanted_sum = wanted_sum.mul(factor)?;
        }
        let normed = match row.outer {
            Some((weight, eps)) => wanted_sum.fast_rms_norm(Some(weight), eps)?,
            None => wanted_sum.clone(),
        };
        let wide = matrix.dequantize()?.astype(Dtype::Float32)?.swapaxes(0, 1)?;
        let product = normed.astype(Dtype::Float32)?.matmul(&wide)?;
        let half = outputs / 2;
        let wanted = match after {
            Epilogue::Plain => product,
            Epilogue::Gated(curve) => {
                compose(curve, &product.slice(1, 0, half)?)?.mul(&product.slice(1, half, outputs)?)?
            }
            Epilogue::Times(curve, other) => compose(curve, &product)?.mul(&other.astype(Dtype::Float32)?)?,
        };
        apart = apart
            .max(difference(&made, &wanted)?)
            .max(difference(&sum, &wanted_sum)?);
    }
    Ok(apart)
}
