//! The steps between the projection of queries, keys and values and their attention: norms of heads, rotary positions,
//! and another order.

use mlx::fused::{HeadShape, Split};
use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// Queries, keys and values `[1, heads, length, width]` of `all` `[length, (heads + 2 · key heads) · width]`. `factors`
/// `[normed, width]`; `periods` `[rotated / 2]` and `positions` as 32 bit floats and integers: the first one `[1]`, or
/// `[length]` of as many sequences, whose heads are `[length, heads, 1, width]`.
pub fn heads(
    shape: HeadShape,
    all: &Tensor,
    factors: Option<&Tensor>,
    periods: &Tensor,
    positions: &Tensor,
) -> Result<Option<Split>> {
    let dtype = all.dtype();
    let fits = shape.width % 64 == 0
        && shape.width <= 1024
        && shape.rotated % 2 == 0
        && factors.is_some() == (shape.normed > 0)
        && factors.is_none_or(|factors| factors.dtype() == dtype)
        && periods.size() as i32 == shape.rotated / 2
        && (positions.size() == 1 || positions.size() as i32 == all.dim(0));
    if !fits {
        return Ok(None);
    }
    let HeadShape {
        width, normed, rotated, ..
    } = shape;
    let (neighbors, eps) = (i32::from(shape.traditional), shape.eps as i32);
    let (program, first) = match shape.key_heads {
        0 => (Program::One, [3, shape.heads]),
        key_heads => (Program::Three, [shape.heads, key_heads]),
    };
    let each = i32::from(positions.size() > 1);
    let numbers = [first[0], first[1], width, normed, rotated, neighbors, eps, each];
    let kernel = find(Key::new(program, dtype, numbers), |kernel| {
        compare(kernel, shape, dtype, positions.size() > 1)
    });
    let launched = kernel.map(|kernel| launch(&kernel, shape, all, factors, periods, positions));
    launched.transpose()
}

fn launch(
    kernel: &Kernel,
    shape: HeadShape,
    all: &Tensor,
    factors: Option<&Tensor>,
    periods: &Tensor,
    positions: &Tensor,
) -> Result<Split> {
    let (length, dtype) = (all.dim(0), all.dtype());
    let inputs = [all, factors.unwrap_or(all), periods, positions];
    let (blocks, threads) = ((shape.heads + 2 * shape.key_heads, length), shape.width / 2);
    let [queries, keys] = [shape.heads, shape.key_heads].map(|heads| match positions.size() {
        1 => [1, heads, length, shape.width],
        _ => [length, heads, 1, shape.width],
    });
    if shape.key_heads == 0 {
        let [queries] = kernel.launch(inputs, [(&queries, dtype)], blocks, threads)?;
        return Ok((queries, None));
    }
    let outputs = [(&queries[..], dtype), (&keys[..], dtype), (&keys[..], dtype)];
    let [queries, keys, values] = kernel.launch(inputs, outputs, blocks, threads)?;
    Ok((queries, Some((keys, values))))
}

fn compare(kernel: &Kernel, shape: HeadShape, dtype: Dtype, each: bool) -> Result<f32> {
    const LENGTH: i32 = 3;
    const OFFSET: i32 = 1000;
    let rows = shape.heads + 2 * shape.key_heads;
    let all = noise(&[LENGTH, rows * shape.width], dtype, 11)?;
    let factors = || noise(&[shape.normed, shape.width], dtype, 12);
    let factors = (shape.normed > 0).then(factors).transpose()?;
    let periods: Vec<f32> = (0..shape.rotated / 2)
        .map(|pair| 10_000f32.powf(2.0 * pair as f32 / shape.rotated as f32))
        .collect();
    let periods = Tensor::from_f32(&periods, &[shape.rotated / 2]);
    let positions = match each {
        true => Tensor::from_i32(&[OFFSET, OFFSET + 1, OFFSET + 2], &[LENGTH]),
        false => Tensor::from_i32(&[OFFSET], &[1]),
    };
    let (queries, own) = launch(kernel, shape, &all, factors.as_ref(), &periods, &positions)?;
    let by_head = |heads: Tensor| match each {
        true => heads.swapaxes(0, 2),
        false => Ok(heads),
    };
    let queries = by_head(queries)?;
    let mut heads = all.reshape(&[LENGTH, rows, shape.width])?;
    if let Some(factors) = &factors {
        let normed = heads.slice(1, 0, shape.normed)?;
        let normed = normed.fast_rms_norm(None, f32::from_bits(shape.eps))?.mul(factors)?;
        heads = concatenate(&[&normed, &heads.slice(1, shape.normed, rows)?], 1)?;
    }
    let heads = heads.reshape(&[1, LENGTH, rows, shape.width])?.swapaxes(1, 2)?;
    let turned = shape.heads + shape.key_heads;
    let turning = heads.slice(1, 0, turned)?;
    let turning = turning.fast_rope(shape.rotated, shape.traditional, None, Some(&periods), OFFSET)?;
    let mut apart = difference(&queries, &turning.slice(1, 0, shape.heads)?)?;
    if let Some((keys, values)) = own {
        apart = apart.max(difference(&by_head(keys)?, &turning.slice(1, shape.heads, turned)?)?);
        apart = apart.max(difference(&by_head(values)?, &heads.slice(1, turned, rows)?)?);
    }
    Ok(apart)
}
