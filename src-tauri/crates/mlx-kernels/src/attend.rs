//! Attention of one query, for heads that are wider than those of MLX's own kernel.

use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// Keys per block if there are more than [`ALONE`].
const PART: i32 = 512;
/// Up to this many keys, one block computes a full head.
const ALONE: i32 = 1024;
/// The most parts of a head.
const MOST_PARTS: i32 = 64;

/// Heads of a layer, and the factor of the scores.
#[derive(Clone, Copy)]
struct Shape {
    dtype: Dtype,
    heads: i32,
    key_heads: i32,
    width: i32,
    scale: f32,
}

/// How a kernel takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Whole,
    Parts,
    Join,
}

/// Attention of queries `[1, heads, 1, width]` to all of the keys and values `[1, key heads, positions, width]`; the
/// result is `[1, heads · width]`. `None` if no kernel can be used.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32) -> Result<Option<Tensor>> {
    let (&[1, heads, 1, width], &[1, key_heads, count, _]) = (queries.shape(), keys.shape()) else {
        return Ok(None);
    };
    let alike = keys.dtype() == queries.dtype() && values.dtype() == queries.dtype() && values.shape() == keys.shape();
    if !matches!(width, 256 | 512) || !alike {
        return Ok(None);
    }
    let shape = Shape {
        dtype: queries.dtype(),
        heads,
        key_heads,
        width,
        scale,
    };
    let find = |stage| {
        let program = match stage {
            Stage::Parts => Program::Parts,
            Stage::Whole | Stage::Join => Program::Attend,
        };
        let joins = i32::from(stage == Stage::Join);
        let key = Key::new(
            program,
            shape.dtype,
            [joins, width, heads, key_heads, scale.to_bits() as i32],
        );
        find(key, |kernel| compare(kernel, shape, stage))
    };
    if count <= ALONE {
        let kernel = find(Stage::Whole);
        return kernel
            .map(|kernel| whole(&kernel, shape, queries, keys, values))
            .transpose();
    }
    let (Some(first), Some(second)) = (find(Stage::Parts), find(Stage::Join)) else {
        return Ok(None);
    };
    let count = ((count + PART - 1) / PART).min(MOST_PARTS);
    let (partial, weights) = parts(&first, shape, queries, keys, values, count)?;
    join(&second, shape, &partial, &weights).map(Some)
}

/// Threads of a block: as many warps as the kernels count on.
fn threads(shape: Shape) -> i32 {
    32 * if shape.width > 256 { 12 } else { 16 }
}

fn whole(kernel: &Kernel, shape: Shape, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
    let output = [1, shape.heads * shape.width];
    let outputs = [(&output[..], shape.dtype)];
    let [result] = kernel.launch([queries, keys, values], outputs, (shape.heads, 1), threads(shape))?;
    Ok(result)
}

fn parts(
    kernel: &Kernel,
    shape: Shape,
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    count: i32,
) -> Result<(Tensor, Tensor)> {
    let (partial, weights) = ([shape.heads, count, shape.width], [shape.heads, count, 2]);
    let outputs = [(&partial[..], Dtype::Float32), (&weights[..], Dtype::Float32)];
    let [partial, weights] = kernel.launch([queries, keys, values], outputs, (shape.heads, count), threads(shape))?;
    Ok((partial, weights))
}

fn join(kernel: &Kernel, shape: Shape, partial: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let output = [1, shape.heads * shape.width];
    let outputs = [(&output[..], shape.dtype)];
    let [result] = kernel.launch([partial, weights, weights], outputs, (shape.heads, 1), 256)?;
    Ok(result)
}

fn compare(kernel: &Kernel, shape: Shape, stage: Stage) -> Result<f32> {
    const COUNT: i32 = 333;
    let Shape {
        dtype, heads, width, ..
    } = shape;
    if stage == Stage::Join {
        // Two parts of equal weight: the mean of their sums over their counts.
        let partial = noise(&[heads, 2, width], Dtype::Float32, 21)?;
        let weights = Tensor::from_f32(&vec![1.0; heads as usize * 4], &[heads, 2, 2]);
        let wanted = partial.sum(1, false)?.mul(&Tensor::scalar(0.5, Dtype::Float32)?)?;
        return difference(&join(kernel, shape, &partial, &weights)?, &wanted);
    }
    let queries = noise(&[1, heads, 1, width], dtype, 22)?;
    // Part of a longer buffer, as caches hand it out.
    let all = noise(&[2, shape.key_heads, COUNT + 7, width], dtype, 23)?;
    let view = |index: i32| all.slice(0, index, index + 1)?.slice(2, 0, COUNT);
    let (keys, values) = (view(0)?, view(1)?);
    let wide = |tensor: &Tensor| tensor.astype(Dtype::Float32);
    let (wide_queries, wide_keys, wide_values) = (wide(&queries)?, wide(&keys)?, wide(&values)?);
    let wanted = wide_queries.fast_attention(&wide_keys, &wide_values, shape.scale, &Mask::None, None)?;
    if stage == Stage::Whole {
        return difference(&whole(kernel, shape, &queries, &keys, &values)?, &wanted);
    }
    let (partial, weights) = parts(kernel, shape, &queries, &keys, &values, 3)?;
    let highest = weights.slice(2, 0, 1)?;
    let scales = highest.sub(&highest.max(1, true)?)?.exp()?;
    let sums = weights.slice(2, 1, 2)?.mul(&scales)?.sum(1, true)?;
    difference(&partial.mul(&scales)?.sum(1, true)?.div(&sums)?, &wanted)
}
