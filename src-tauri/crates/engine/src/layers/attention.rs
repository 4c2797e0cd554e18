//! Scaled dot-product attention with shared key heads, over whatever form the cache keeps its keys and values in.

use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::KvView;
use crate::layers::fast;
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
