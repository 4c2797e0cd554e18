//! The residual stream between two parts of a layer: a norm of what comes, its sum with the stream, a factor, and the
//! norm of what reads it next.

use mlx::fused::{Norm, ResidualInput};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// The widest row: each thread keeps 16 elements in registers.
const WIDEST: i32 = 8192;

/// `(h + norm(x)) · factor` of rows `[length, width]`, and that normed once more if `outer` is given. `None` if no
/// kernel can be used.
pub fn add_norm(row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
    let ResidualInput {
        h,
        x,
        inner,
        factor,
        outer,
    } = row;
    let (dtype, width) = (h.dtype(), h.dim(-1));
    let alike = [Some(x), inner.map(|norm| norm.0), factor, outer.map(|norm| norm.0)];
    let eps = |norm: Option<Norm<'_>>| norm.map(|(_, eps)| eps.to_bits() as i32);
    let one_eps = eps(inner).or(eps(outer)).unwrap_or(0);
    let fits =
        width <= WIDEST && eps(inner).is_none_or(|eps| eps == one_eps) && eps(outer).is_none_or(|eps| eps == one_eps);
    if !fits || alike.into_iter().flatten().any(|tensor| tensor.dtype() != dtype) {
        return Ok(None);
    }
    let (has_inner, has_factor) = (i32::from(inner.is_some()), i32::from(factor.is_some()));
    let key = match outer {
        None => Key::new(Program::One, dtype, [2, width, one_eps, has_inner, has_factor]),
        Some(_) => Key::new(Program::Two, dtype, [width, one_eps, has_inner, has_factor]),
    };
    match find(key, |kernel| compare(kernel, row)) {
        Some(kernel) => launch(&kernel, row).map(Some),
        None => Ok(None),
    }
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
    let (blocks, threads) = (
        (h.size() as i32 / width, 1),
        ((width / 4 + 127) / 128 * 128).clamp(128, 512),
    );
    let Some((outer, _)) = outer else {
        let [sum] = kernel.launch([h, x, inner, factor], [output], blocks, threads)?;
        return Ok((sum, None));
    };
    let [sum, normed] = kernel.launch([h, x, inner, factor, outer], [output, output], blocks, threads)?;
    Ok((sum, Some(normed)))
}

/// Compares on random numbers in the place of these.
fn compare(kernel: &Kernel, like: ResidualInput<'_>) -> Result<f32> {
    let (dtype, width) = (like.h.dtype(), like.h.dim(-1));
    let (h, x) = (noise(&[2, width], dtype, 1)?, noise(&[2, width], dtype, 2)?);
    let (inner, factor, outer) = (
        noise(&[width], dtype, 3)?,
        noise(&[1], dtype, 4)?,
        noise(&[width], dtype, 5)?,
    );
    let row = ResidualInput {
        h: &h,
        x: &x,
        inner: like.inner.map(|(_, eps)| (&inner, eps)),
        factor: like.factor.map(|_| &factor),
        outer: like.outer.map(|(_, eps)| (&outer, eps)),
    };
    let (sum, normed) = launch(kernel, row)?;
    let added = match row.inner {
        Some((weight, eps)) => x.fast_rms_norm(Some(weight), eps)?,
        None => x.clone(),
    };
    let mut wanted = h.add(&added)?;
    if let Some(factor) = row.factor {
        wanted = wanted.mul(factor)?;
    }
    let mut apart = difference(&sum, &wanted)?;
    if let (Some((weight, eps)), Some(normed)) = (row.outer, normed) {
        apart = apart.max(difference(&normed, &wanted.fast_rms_norm(Some(weight), eps)?)?);
    }
    Ok(apart)
}
