//! The residual stream: what each part of a layer gives is added to it, and the next part reads it normed.

use mlx::fused::ResidualInput;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::fast::residual::residual_input;
use crate::layers::{fast, RmsNorm};

/// The stream `[length, width]`, and a part that is still to be added to it: a kernel that reads the stream next can do
/// that on the way.
pub struct ResidualStream<'a> {
    h: Tensor,
    pending: Option<Pending<'a>>,
}

/// A pending summand: `(h + norm(x)) · factor`.
struct Pending<'a> {
    x: Tensor,
    norm: Option<&'a RmsNorm>,
    factor: Option<&'a Tensor>,
}

impl<'a> ResidualStream<'a> {
    /// A stream that begins with these.
    pub fn new(h: Tensor) -> Self {
        Self { h, pending: None }
    }

    /// Adds `x`, normed; then all is multiplied by the factor.
    pub fn add(&mut self, x: Tensor, norm: Option<&'a RmsNorm>, factor: Option<&'a Tensor>) -> Result<()> {
        if self.pending.is_some() {
            self.sum()?;
        }
        self.pending = Some(Pending { x, norm, factor });
        Ok(())
    }

    /// The stream as it is.
    pub fn sum(&mut self) -> Result<&Tensor> {
        self.normed(None)?;
        Ok(&self.h)
    }

    /// The stream, normed.
    pub fn normed(&mut self, norm: Option<&RmsNorm>) -> Result<Tensor> {
        let Some(pending) = self.pending.take() else {
            return norm.map_or_else(|| Ok(self.h.clone()), |norm| norm.forward(&self.h));
        };
        let (sum, normed) = add_norm(&self.h, &pending.x, pending.norm, pending.factor, norm)?;
        self.h = sum;
        Ok(normed)
    }

    /// Lets one kernel sum, norm and read the stream at once; `launch` returns what it computed and the sum. `None` if
    /// nothing waits to be added, a norm is of a kind that no kernel applies, or the kernel declines.
    pub fn fuse<T>(
        &mut self,
        norm: Option<&RmsNorm>,
        launch: impl FnOnce(ResidualInput<'_>) -> Result<Option<(T, Tensor)>>,
    ) -> Result<Option<T>> {
        let Some(pending) = &self.pending else { return Ok(None) };
        let row = residual_input(&self.h, &pending.x, pending.norm, pending.factor, norm);
        let Some(row) = row else { return Ok(None) };
        let Some((made, sum)) = launch(row)? else {
            return Ok(None);
        };
        self.h = sum;
        self.pending = None;
        Ok(Some(made))
    }
}

/// `(h + inner(x)) · factor`, and that normed by `outer`; a norm that is not given changes nothing.
fn add_norm(
    h: &Tensor,
    x: &Tensor,
    inner: Option<&RmsNorm>,
    factor: Option<&Tensor>,
    outer: Option<&RmsNorm>,
) -> Result<(Tensor, Tensor)> {
    if let Some(both) = fast::residual::add_norm(h, x, inner, factor, outer)? {
        return Ok(both);
    }
    let mut sum = match inner {
        Some(norm) => h.add(&norm.forward(x)?)?,
        None => h.add(x)?,
    };
    if let Some(factor) = factor {
        sum = sum.mul(factor)?;
    }
    let normed = match outer {
        Some(norm) => norm.forward(&sum)?,
        None => sum.clone(),
    };
    Ok((sum, normed))
}
