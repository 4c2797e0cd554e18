//! The residual stream between two parts of a layer: a norm of what comes, its sum with the stream, a factor, and the
//! norm of what reads it next.

use mlx::fused::ResidualInput;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{added, common_eps, difference, noise, NoiseRows};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// Numbers that a thread has, and the widest row: all threads of a block have it at once.
const EACH: i32 = 8;
const WIDEST: i32 = 1024 * EACH;

/// `(h + norm(x)) · factor` of rows `[length, width]`, and that normed once more if `outer` is given. `None` if no
/// kernel can be used.
pub fn add_norm(row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
    let (dtype, width) = (row.h.dtype(), row.h.dim(-1));
    let Some(eps) = common_eps(row, [None; 2]).filter(|_| width <= WIDEST && width % EACH == 0) else {
        return Ok(None);
    };
    let (has_inner, has_factor) = (i32::from(row.inner.is_some()), i32::from(row.factor.is_some()));
    let key = match row.outer {
        None => Key::new(Program::One, dtype, [2, width, eps, has_inner, has_factor]),
        Some(_) => Key::new(Program::Two, dtype, [width, eps, has_inner, has_factor]),
    };
    let kernel = find(key, |kernel| compare(kernel, row));
    kernel.map(|kernel| launch(&kernel, row)).transpose()
}

/// `x / sqrt(mean(x²) + eps)` over the last axis, times factors `[width]` or `[heads, width]`, of a step that is being
/// recorded; for others MLX's own kernel is as good. `None` if no kernel can be used.
pub fn rms_norm(x: &Tensor, factors: &Tensor, eps: f32) -> Result<Option<Tensor>> {
    let (width, dtype) = (x.dim(-1), x.dtype());
    let heads = if factors.shape().len() == 2 { factors.dim(0) } else { 1 };
    if !recording::is_on() || factors.dtype() != dtype || (heads > 1 && x.dim(-2) != heads) {
        return Ok(None);
    }
    let key = Key::new(Program::One, dtype, [4, width, heads, eps.to_bits() as i32]);
    let kernel = find(key, |kernel| compare_norm(kernel, [heads, width], dtype, eps));
    kernel.map(|kernel| launch_norm(&kernel, x, factors)).transpose()
}

fn launch_norm(kernel: &Kernel, x: &Tensor, factors: &Tensor) -> Result<Tensor> {
    let rows = x.size() as i32 / x.dim(-1);
    let output = (x.shape(), x.dtype());
    let [normed] = kernel.launch([x, factors, x, x], [output], (rows, 1), 256)?;
    Ok(normed)
}

fn compare_norm(kernel: &Kernel, [heads, width]: [i32; 2], dtype: Dtype, eps: f32) -> Result<f32> {
    let (x, factors) = (noise(&[3, heads, width], dtype, 5)?, noise(&[heads, width], dtype, 6)?);
    let wanted = x.fast_rms_norm(None, eps)?.mul(&factors)?;
    difference(&launch_norm(kernel, &x, &factors)?, &wanted)
}

fn launch(kernel: &Kernel, row: ResidualInput<'_>) -> Result<(Tensor, Option<Tensor>)> {
    let ResidualInput {
        h,
        x,
        inner,
        factor,
        outer,
    } = row;
    let width = h.dim(-1);
    let (inner, factor) = (inner.map_or(h, |norm| norm.0), factor.unwrap_or(h));
    let output = (h.shape(), h.dtype());
    let blocks = (h.size() as i32 / width, 1);
    let threads = (width / EACH + 31) / 32 * 32;
    let Some((outer, _)) = outer else {
        let [sum] = kernel.launch([h, x, inner, factor], [output], blocks, threads)?;
        return Ok((sum, None));
    };
    let [sum, normed] = kernel.launch([h, x, inner, factor, outer], [output, output], blocks, threads)?;
    Ok((sum, Some(normed)))
}

/// Compares on random numbers in the place of these.
fn compare(kernel: &Kernel, like: ResidualInput<'_>) -> Result<f32> {
    let rows = NoiseRows::new(2, like.h.dim(-1), like.h.dtype(), 1)?;
    let row = rows.like(like);
    let (sum, normed) = launch(kernel, row)?;
    let (wanted_sum, wanted) = added(row)?;
    let apart = difference(&sum, &wanted_sum)?;
    match normed {
        Some(normed) => Ok(apart.max(difference(&normed, &wanted)?)),
        None => Ok(apart),
    }
}
