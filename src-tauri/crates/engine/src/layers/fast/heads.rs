//! From a joint projection to the heads of queries, keys and values, in one launch.

use mlx::fused::{HeadShape, Split};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::kernels::kernels;
use crate::layers::{RmsNorm, Rope, Rotation};

/// How many heads there are.
pub struct Heads {
    /// Of queries.
    pub queries: i32,
    /// Of keys, and as many of values; 0 if a layer has only queries.
    pub keys: i32,
    /// Their width.
    pub width: i32,
}

/// Splits the projection `all` `[length, all heads · width]`, norms as many heads as `norm` has factors for and turns
/// queries and keys. `None` if no kernel does this; the caller then composes it.
pub fn split_heads(
    heads: &Heads,
    all: &Tensor,
    norm: Option<&RmsNorm>,
    rope: &Rope,
    rotation: &Rotation,
) -> Result<Option<Split>> {
    let Some((rotated, traditional, periods, place)) = rope.turning(rotation) else {
        return Ok(None);
    };
    let factors = norm.and_then(RmsNorm::head_weights);
    if norm.is_some() != factors.is_some() {
        return Ok(None);
    }
    let shape = HeadShape {
        heads: heads.queries,
        key_heads: heads.keys,
        width: heads.width,
        normed: factors.map_or(0, |(factors, _)| factors.dim(0)),
        eps: factors.map_or(0, |(_, eps)| eps.to_bits()),
        rotated,
        traditional,
    };
    kernels().heads(shape, all, factors.map(|(factors, _)| factors), periods, place)
}
