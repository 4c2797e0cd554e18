//! Scaled dot-product attention with shared key heads, over whatever form the cache keeps its keys and values in.

use mlx::ops::Mask;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{recording, Dtype, Result};

use crate::cache::{seen, KvView};
use crate::layers::fast;
use crate::layers::fast::attention::attend_composed;
use crate::layers::sequences::merge_heads;

/// Queries `[1, heads, length, width]` against what they may see; the result is `[length, heads · value width]`.
/// `sinks` `[heads]` are logits that take a share of the attention and give nothing (gpt-oss).
pub fn scaled_dot_product_attention(
    queries: &Tensor,
    view: &KvView,
    scale: f32,
    mask: &Mask,
    sinks: Option<&Tensor>,
) -> Result<Tensor> {
    if let Some(attended) = fast::attention::over_quantized(queries, view, scale, sinks)? {
        return Ok(attended);
    }
    let dequantized;
    let (keys, values) = match view {
        KvView::Plain { keys, values } => (keys, values),
        // Many queries pay for unpacking once and then have the kernel that writes no scores to memory. The CPU's
        // product with quantized numbers is slower than unpacking them each time.
        KvView::Quantized { .. } => {
            dequantized = view.dequantized()?;
            (&dequantized.0, &dequantized.1)
        }
    };
    if let Some(attended) = fast::attention::attend(queries, (keys, values), scale, mask, sinks)? {
        return Ok(attended);
    }
    merge_heads(&queries.fast_attention(keys, values, scale, mask, sinks)?)
}

/// The same if each head sees what is marked for it, `[heads, length, positions]`, by plain products.
pub fn marked_attention(queries: &Tensor, view: &KvView, scale: f32, marks: &Tensor) -> Result<Tensor> {
    let (keys, values) = view.dequantized()?;
    let scaled = queries.mul(&Tensor::scalar(scale, queries.dtype())?)?;
    merge_heads(&attend_composed(&scaled, (&keys, &values), Ok, Some(marks), None)?)
}

/// Attention whose scores are squeezed by a hyperbolic tangent before the softmax (Gemma 2), by plain products: no kernel
/// does that.
#[derive(Parameters)]
pub struct CappedAttention {
    /// The bound of the scores.
    cap: Tensor,
    /// The scale of the scores as a part of it.
    scale: Tensor,
}

impl CappedAttention {
    /// For scores times `scale` within plus and minus `cap`, of this type.
    pub fn new(cap: f32, scale: f32, dtype: Dtype) -> Result<Self> {
        Ok(Self {
            cap: Tensor::scalar(cap, dtype)?,
            scale: Tensor::scalar(scale / cap, dtype)?,
        })
    }

    /// As [`scaled_dot_product_attention`].
    pub fn forward(&self, queries: &Tensor, view: &KvView, mask: &Mask) -> Result<Tensor> {
        if recording::is_on() {
            return Err(mlx::Error::Unsupported(
                "a recorded step whose scores are capped".into(),
            ));
        }
        let dequantized;
        let (keys, values) = match view {
            KvView::Plain { keys, values } => (keys, values),
            KvView::Quantized { .. } => {
                dequantized = view.dequantized()?;
                (&dequantized.0, &dequantized.1)
            }
        };
        let length = queries.dim(2);
        let seen = match mask {
            Mask::None => None,
            Mask::Causal => Some(seen(keys.dim(2) - length, length, None, None)?),
            Mask::Array(seen) => Some(seen.clone()),
        };
        let cap = |scores: Tensor| scores.tanh()?.mul(&self.cap);
        let scaled = queries.mul(&self.scale)?;
        merge_heads(&attend_composed(&scaled, (keys, values), cap, seen.as_ref(), None)?)
    }
}
