//! Scaled dot-product attention with shared key heads. The scale is 1: families that need another put it into their
//! query weights or norms.

use crate::error::Result;
use crate::ops::Mask;
use crate::tensor::{device, Device, Tensor};

/// Queries `[1, heads, length, width]` against keys and values `[1, key heads, seen, width]`; the result is
/// `[length, heads · width]`.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, mask: &Mask) -> Result<Tensor> {
    let &[_, heads, length, width] = queries.shape() else {
        unreachable!("queries have four axes")
    };
    if length == 1 && device() == Device::Cpu {
        // Queries that share a key head become the rows of one product.
        let key_heads = keys.dim(1);
        let grouped = if key_heads == heads {
            queries.clone()
        } else {
            queries.reshape(&[1, key_heads, heads / key_heads, width])?
        };
        let shares = grouped.matmul(&keys.swapaxes(2, 3)?)?.softmax(-1, true)?;
        return shares.matmul(values)?.reshape(&[1, heads * width]);
    }
    let attended = queries.fast_attention(keys, values, 1.0, mask)?;
    let ordered = if length == 1 {
        attended
    } else {
        attended.transpose(&[0, 2, 1, 3])?
    };
    ordered.reshape(&[length, heads * width])
}
