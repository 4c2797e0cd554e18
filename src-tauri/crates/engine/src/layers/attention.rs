//! Scaled dot-product attention with shared key heads, over whatever form the cache keeps its keys and values in.

use crate::cache::{composes, KvView};
use crate::error::Result;
use crate::kernels;
use crate::ops::{concatenate, Mask, QuantizedTensor};
use crate::tensor::{device, Device, Tensor};

/// Queries `[1, heads, length, width]` against what they may see; the result is `[length, heads · value width]`. `sinks`
/// `[heads]` are logits that take a share of the attention and give nothing (gpt-oss).
pub fn scaled_dot_product_attention(queries: &Tensor, view: &KvView, scale: f32, mask: &Mask, sinks: Option<&Tensor>) -> Result<Tensor> {
    let dequantized;
    let (keys, values) = match view {
        KvView::Plain { keys, values } => (keys, values),
        KvView::Quantized { keys, values } if queries.dim(2) == 1 && device() != Device::Cpu => {
            return attend_packed(queries, keys, values, scale, sinks);
        }
        // Many queries pay for unpacking once and then have the kernel that writes no scores to memory. The CPU's product
        // with packed numbers is slower than unpacking them each time.
        KvView::Quantized { .. } => {
            dequantized = view.dequantized()?;
            (&dequantized.0, &dequantized.1)
        }
    };
    let &[_, heads, length, width] = queries.shape() else {
        unreachable!("queries have four axes")
    };
    let value_width = values.dim(3);
    if length == 1 && scale == 1.0 && sinks.is_none() && device() == Device::Cpu {
        // Queries that share a key head become the rows of one product.
        let key_heads = keys.dim(1);
        let grouped = if key_heads == heads {
            queries.clone()
        } else {
            queries.reshape(&[1, key_heads, heads / key_heads, width])?
        };
        let shares = grouped.matmul(&keys.swapaxes(2, 3)?)?.softmax(-1, true)?;
        return shares.matmul(values)?.reshape(&[1, heads * value_width]);
    }
    if length == 1 && sinks.is_none() && matches!(mask, Mask::None) {
        if let Some(attended) = kernels::attend(queries, keys, values, scale)? {
            return Ok(attended);
        }
    }
    let attended = match mask {
        Mask::Array(seen) if composes(length as usize, keys.dim(2) as usize) => {
            attend_composed(queries, (keys, values), scale, seen, sinks)?
        }
        mask => queries.fast_attention(keys, values, scale, mask, sinks)?,
    };
    let ordered = if length == 1 {
        attended
    } else {
        attended.transpose(&[0, 2, 1, 3])?
    };
    ordered.reshape(&[length, heads * value_width])
}

/// Queries `[1, heads, length, width]` against keys and values `[1, key heads, positions, width]` of which they see those marked in
/// `seen` `[length, positions]`; the result is `[1, heads, length, value width]`.
fn attend_composed(
    queries: &Tensor,
    (keys, values): (&Tensor, &Tensor),
    scale: f32,
    seen: &Tensor,
    sinks: Option<&Tensor>,
) -> Result<Tensor> {
    let &[_, heads, length, width] = queries.shape() else {
        unreachable!("queries have four axes")
    };
    let (key_heads, positions) = (keys.dim(1), keys.dim(2));
    // Queries that share a key head become the rows of one product.
    let rows = heads / key_heads * length;
    let scaled = queries.mul(&Tensor::scalar(scale, queries.dtype())?)?;
    let scores = scaled.reshape(&[1, key_heads, rows, width])?.matmul(&keys.swapaxes(2, 3)?)?;
    let scores = scores.reshape(&[1, heads, length, positions])?;
    let scores = seen.select(&scores, &Tensor::scalar(f32::NEG_INFINITY, scores.dtype())?)?;
    let shares = match sinks {
        None => scores.softmax(-1, true)?,
        Some(sinks) => {
            let logits = sinks.astype(scores.dtype())?.reshape(&[1, heads, 1, 1])?;
            let logits = logits.broadcast(&[1, heads, length, 1])?;
            concatenate(&[&scores, &logits], 3)?.softmax(-1, true)?.slice(3, 0, positions)?
        }
    };
    let attended = shares.reshape(&[1, key_heads, rows, positions])?.matmul(values)?;
    attended.reshape(&[1, heads, length, values.dim(3)])
}

/// One query for each head `[1, heads, 1, width]` against packed keys and values, all of which it sees: two products with
/// packed numbers, so that what is read from memory stays small.
fn attend_packed(queries: &Tensor, keys: &QuantizedTensor, values: &QuantizedTensor, scale: f32, sinks: Option<&Tensor>) -> Result<Tensor> {
    let (heads, width, key_heads) = (queries.dim(1), queries.dim(3), keys.weight.dim(1));
    // Queries that share a key head become the rows of one product.
    let grouped = queries.reshape(&[1, key_heads, heads / key_heads, width])?;
    let scaled = if scale == 1.0 {
        grouped
    } else {
        grouped.mul(&Tensor::scalar(scale, queries.dtype())?)?
    };
    let scores = scaled.quantized_matmul(keys, true)?;
    let shares = match sinks {
        None => scores.softmax(-1, true)?,
        Some(sinks) => {
            let logits = sinks.astype(scores.dtype())?.reshape(&[1, key_heads, heads / key_heads, 1])?;
            let positions = scores.dim(3);
            concatenate(&[&scores, &logits], 3)?.softmax(-1, true)?.slice(3, 0, positions)?
        }
    };
    // The last axis of packed values counts words, so the width comes from the result.
    shares.quantized_matmul(values, false)?.reshape(&[1, -1])
}
