//! The steps between the projection of queries, keys and values and their attention: norms of heads, rotary positions,
//! and another order.
#![allow(unsafe_code)]

use mlx::fused::{HeadShape, Split};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::kv_dtype::{kv_dtype, narrow};
use crate::norm::{for_rows, norm, Factors};
use crate::primitive::{describe, describe_one, describe_typed, is_f32, Float, Kernel, View};
use crate::shared::Shared;

/// Queries, and keys and values [as caches keep them](kv_dtype), `[1, heads, length, width]` of `all` `[length, (heads + 2 · key heads) · width]`. `factors`
/// `[normed, width]`; `periods` `[rotated / 2]`; `positions` `[1]`, the first one, or `[length]` of as many sequences,
/// whose heads are `[length, heads, 1, width]`. `None` if there is no kernel for it.
pub fn heads(
    shape: HeadShape,
    all: &Tensor,
    factors: Option<&Tensor>,
    periods: &Tensor,
    positions: &Tensor,
) -> Result<Option<Split>> {
    let &[length, width] = all.shape() else {
        return Ok(None);
    };
    let wide = (shape.heads + 2 * shape.key_heads) * shape.width;
    let of_each = length > 1 && positions.size() as i32 == length;
    let fits = width == wide
        && shape.rotated % 2 == 0
        && shape.rotated <= shape.width
        && factors.is_none_or(|factors| factors.shape() == [shape.normed, shape.width] && is_f32(&[factors]))
        && factors.is_some() == (shape.normed > 0)
        && periods.size() as i32 == shape.rotated / 2
        && (of_each || positions.size() == 1);
    if !fits || !is_f32(&[all, periods]) || positions.dtype() != Dtype::Int32 || length == 0 {
        return Ok(None);
    }
    let mut arrays = vec![all, periods, positions];
    arrays.extend(factors);
    let of = |heads: i32| match of_each {
        true => [length, heads, 1, shape.width],
        false => [1, heads, length, shape.width],
    };
    let (queries, keys) = (of(shape.heads), of(shape.key_heads));
    let kv = kv_dtype();
    let kernel = Heads { shape, of_each, kv };
    if shape.key_heads == 0 {
        let mut queries = describe(kernel, &arrays, &[&queries])?;
        return Ok(queries.pop().map(|queries| (queries, None)));
    }
    let parts = describe_typed(kernel, &arrays, &[&queries, &keys, &keys], &[Float::F32, kv, kv])?;
    let [queries, keys, values] = <[Tensor; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three outputs"));
    Ok(Some((queries, Some((keys, values)))))
}

struct Heads {
    shape: HeadShape,
    of_each: bool,
    kv: Float,
}

// SAFETY: it writes the heads of its outputs and reads its inputs.
unsafe impl Kernel for Heads {
    fn arrays(&self) -> usize {
        3 + usize::from(self.shape.normed > 0)
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let shape = &self.shape;
        let (all, length, width) = (&inputs[0], inputs[0].last(1), shape.width as usize);
        let mut periods = vec![0.0; shape.rotated as usize / 2];
        inputs[1].read(0, &mut periods);
        let factors = inputs
            .get(3)
            .map(|factors| Factors::new(factors, shape.normed as usize, width));
        let (heads, key_heads) = (shape.heads as usize, shape.key_heads as usize);
        let outputs: Vec<Shared<u8>> = outputs.iter().map(|output| Shared(output.data())).collect();
        let position = |row: usize| match self.of_each {
            true => *inputs[2].data::<i32>().add(row * inputs[2].last_stride(0)),
            false => *inputs[2].data::<i32>() + row as i32,
        };
        for_rows(length, (heads + 2 * key_heads) * width, &|row| {
            let turns = turns(&periods, position(row));
            let mut narrowed = vec![0.0; width];
            for head in 0..heads + 2 * key_heads {
                let (part, index, count) = match head {
                    head if head < heads => (0, head, heads),
                    head if head < heads + key_heads => (1, head - heads, key_heads),
                    head => (2, head - heads - key_heads, key_heads),
                };
                let place = if self.of_each {
                    row * count + index
                } else {
                    index * length + row
                };
                let narrows = part > 0 && self.kv == Float::F16;
                let to = match narrows {
                    true => &mut narrowed[..],
                    false => std::slice::from_raw_parts_mut(outputs[part].0.cast::<f32>().add(place * width), width),
                };
                let start = all
                    .data::<f32>()
                    .add(row * all.last_stride(1) + head * width * all.last_stride(0));
                for (place, number) in to.iter_mut().enumerate() {
                    *number = *start.add(place * all.last_stride(0));
                }
                if head < shape.normed as usize {
                    norm(
                        to,
                        factors.as_ref().map(|factors| factors.row(head)),
                        f32::from_bits(shape.eps),
                    );
                }
                if part < 2 {
                    turn(&mut to[..shape.rotated as usize], &turns, shape.traditional);
                }
                if narrows {
                    let halves = outputs[part].0.cast::<u16>().add(place * width);
                    narrow(&narrowed, std::slice::from_raw_parts_mut(halves, width));
                }
            }
        });
    }
}

/// Heads `[1, heads, length, width]`, or of several sequences `[sequences, heads, 1, width]`, turned as [`heads`] does.
/// `None` if there is no kernel for it.
pub fn rotate(
    x: &Tensor,
    [rotated, neighbors]: [i32; 2],
    periods: &Tensor,
    positions: &Tensor,
) -> Result<Option<Tensor>> {
    let &[sequences, _, length, width] = x.shape() else {
        return Ok(None);
    };
    let placed = match positions.size() as i32 {
        1 => sequences == 1,
        count => count == sequences && length == 1,
    };
    let fits = placed && rotated <= width && rotated % 2 == 0 && periods.size() as i32 == rotated / 2 && x.size() > 0;
    if !fits || !is_f32(&[x, periods]) || positions.dtype() != Dtype::Int32 {
        return Ok(None);
    }
    let kernel = Rotate {
        rotated: rotated as usize,
        neighbors: neighbors != 0,
    };
    describe_one(kernel, &[x, periods, positions], x.shape()).map(Some)
}

struct Rotate {
    rotated: usize,
    neighbors: bool,
}

// SAFETY: it writes the heads of its output and reads its inputs.
unsafe impl Kernel for Rotate {
    fn arrays(&self) -> usize {
        3
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, positions) = (&inputs[0], &inputs[2]);
        let (heads, length, width) = (x.last(2), x.last(1), x.last(0));
        let mut periods = vec![0.0; self.rotated / 2];
        inputs[1].read(0, &mut periods);
        let to = Shared(outputs[0].data::<f32>());
        // The places of one sequence, or one of each.
        let places = length * outputs[0].last(3);
        for_rows(places, heads * width, &|place| {
            let (sequence, row) = (place / length, place % length);
            let position = match positions.elements() {
                1 => *positions.data::<i32>() + row as i32,
                _ => *positions.data::<i32>().add(sequence * positions.last_stride(0)),
            };
            let turns = turns(&periods, position);
            for head in 0..heads {
                let index = (sequence * heads + head) * length + row;
                let to = std::slice::from_raw_parts_mut(to.at(index * width), width);
                x.read(index, to);
                turn(&mut to[..self.rotated], &turns, self.neighbors);
            }
        });
    }
}

/// The sines and cosines of a position, of angles in 64 bits: a thousand turns lose four digits of 32.
fn turns(periods: &[f32], position: i32) -> Vec<(f32, f32)> {
    let turn = |period: &f32| (f64::from(position) / f64::from(*period)).sin_cos();
    periods
        .iter()
        .map(turn)
        .map(|(sin, cos)| (sin as f32, cos as f32))
        .collect()
}

/// Turns pairs by their sines and cosines: neighbors, or halves.
fn turn(numbers: &mut [f32], turns: &[(f32, f32)], neighbors: bool) {
    let turned = |one: f32, other: f32, (sin, cos): (f32, f32)| (one * cos - other * sin, other * cos + one * sin);
    if neighbors {
        for (pair, turn) in numbers.chunks_exact_mut(2).zip(turns) {
            (pair[0], pair[1]) = turned(pair[0], pair[1], *turn);
        }
        return;
    }
    let (ones, others) = numbers.split_at_mut(turns.len());
    for ((one, other), turn) in ones.iter_mut().zip(others).zip(turns) {
        (*one, *other) = turned(*one, *other, *turn);
    }
}
