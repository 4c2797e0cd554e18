//! The residual stream's sum and its norms in one launch.

use mlx::fused::{Norm, ResidualInput};
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::kernels::kernels;
use crate::layers::RmsNorm;

/// `(h + inner(x)) · factor`, and that normed by `outer`.
pub fn add_norm(
    h: &Tensor,
    x: &Tensor,
    inner: Option<&RmsNorm>,
    factor: Option<&Tensor>,
    outer: Option<&RmsNorm>,
) -> Result<Option<(Tensor, Tensor)>> {
    // A sum alone is one launch of MLX's, which only a recording lacks.
    let alone = !recording::is_on();
    if alone && inner.is_none() && factor.is_none() && outer.is_none() {
        return Ok(None);
    }
    let Some(row) = residual_input(h, x, inner, factor, outer) else {
        return Ok(None);
    };
    let both = kernels().add_norm(row)?;
    Ok(both.map(|(sum, normed)| {
        let normed = normed.unwrap_or_else(|| sum.clone());
        (sum, normed)
    }))
}

/// The stream and the summand as kernels take them; `None` if a norm is of a kind that they do not apply.
pub fn residual_input<'a>(
    h: &'a Tensor,
    x: &'a Tensor,
    inner: Option<&'a RmsNorm>,
    factor: Option<&'a Tensor>,
    outer: Option<&'a RmsNorm>,
) -> Option<ResidualInput<'a>> {
    Some(ResidualInput {
        h,
        x,
        inner: applied(inner)?,
        factor,
        outer: applied(outer)?,
    })
}

/// The norm as kernels take it, if any; `None` if there is one that they do not apply.
fn applied(norm: Option<&RmsNorm>) -> Option<Option<Norm<'_>>> {
    match norm {
        Some(norm) => norm.weight().map(Some),
        None => Some(None),
    }
}
