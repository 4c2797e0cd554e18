//! The residual stream between two parts of a layer: a norm of what comes, its sum with the stream, a factor, and the
//! norm of what reads it next.

use mlx::fused::ResidualInput;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::compare::{added, common_eps, difference, NoiseRows};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// The widest row: each thread keeps 16 elements in registers.
const WIDEST: i32 = 8192;

/// `(h + norm(x)) · factor` of rows `[length, width]`, and that normed once more if `outer` is given. `None` if no
/// kernel can be used.
pub fn add_norm(row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
    let (dtype, width) = (row.h.dtype(), row.h.dim(-1));
    let Some(eps) = common_eps(row, [None; 2]).filter(|_| width <= WIDEST) else {
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
    let threads = ((width / 4 + 127) / 128 * 128).clamp(128, 512);
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
