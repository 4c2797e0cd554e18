//! Scaled dot-product attention with shared key heads, over whatever form the cache keeps its keys and values in.

use crate::cache::Seen;
use crate::error::Result;
use crate::ops::Mask;
use crate::tensor::{device, Device, Tensor};

/// Queries `[1, heads, length, width]` against what they may see; the result is `[length, heads · value width]`. `sinks`
/// `[heads]` are logits that take a share of the attention and give nothing (gpt-oss).
pub fn attend(queries: &Tensor, seen: &Seen, scale: f32, mask: &Mask, sinks: Option<&Tensor>) -> Result<Tensor> {
    let Seen::Plain { keys, values } = seen;
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
    let attended = queries.fast_attention(keys, values, scale, mask, sinks)?;
    let ordered = if length == 1 {
        attended
    } else {
        attended.transpose(&[0, 2, 1, 3])?
    };
    ordered.reshape(&[length, heads * value_width])
}
