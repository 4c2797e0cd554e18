//! Attention with an online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867): scores of some positions at a time
//! stay in the nearest cache, so that no matrix of scores is written. Many queries that see everything, as encoders
//! have them, are [in lanes](wide); all others [in rows](tile).
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;
mod tile;
mod wide;

use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::format::Number;
use crate::isa::{for_isa, Isa};
use crate::lanes::BLOCK;
use crate::pool::Pool;
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::shared::Shared;
use tile::{attend_part, Part, Sums};
use wide::attend_block;

/// Positions of a part at least, if there are too few heads for all threads.
const PART: usize = 128;

/// Products of a query with a key that are worth another thread.
const WORTH: usize = 1 << 13;

/// Attention of queries `[1, heads, length, width]` to keys and values `[1, key heads, positions, width]` of which they
/// see those that the mask says; the result is `[length, heads · value width]`. `None` if there is no kernel for it.
pub fn attend(
    queries: &Tensor,
    (keys, values): (&Tensor, &Tensor),
    scale: f32,
    mask: &Mask,
    sinks: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    let (&[1, heads, length, width], &[1, key_heads, positions, key_width], &[1, value_heads, count, value_width]) =
        (queries.shape(), keys.shape(), values.shape())
    else {
        return Ok(None);
    };
    let (Some(number), Some(of_values)) = (Number::of(keys.dtype()), Number::of(values.dtype())) else {
        return Ok(None);
    };
    let block = BLOCK as i32;
    let fits = width == key_width
        && (value_heads, count, of_values) == (key_heads, positions, number)
        && key_heads > 0
        && heads % key_heads == 0
        && width % block == 0
        && value_width % block == 0
        && length > 0
        && positions > 0
        && is_f32(&[queries])
        && sinks.is_none_or(|sinks| sinks.shape() == [heads] && is_f32(&[sinks]));
    let seen = match mask {
        Mask::Array(seen) => Some(seen),
        Mask::None | Mask::Causal => None,
    };
    let masked = seen.is_none_or(|seen| seen.dtype() == Dtype::Bool && seen.shape() == [length, positions]);
    if !fits || !masked || (matches!(mask, Mask::Causal) && positions < length) {
        return Ok(None);
    }
    let mut arrays = vec![queries, keys, values];
    arrays.extend(seen);
    arrays.extend(sinks);
    let causal = matches!(mask, Mask::Causal);
    let kernel = Attend {
        number,
        scale,
        causal,
        masked: seen.is_some(),
        sinks: sinks.is_some(),
    };
    describe_one(kernel, &arrays, &[length, heads * value_width]).map(Some)
}

struct Attend {
    number: Number,
    scale: f32,
    causal: bool,
    masked: bool,
    sinks: bool,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for Attend {
    fn arrays(&self) -> usize {
        3 + usize::from(self.masked) + usize::from(self.sinks)
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let [queries, keys, values] = [&inputs[0], &inputs[1], &inputs[2]];
        let seen = self.masked.then(|| &inputs[3]);
        let sinks = self.sinks.then(|| &inputs[3 + usize::from(self.masked)]);
        let (heads, length, width) = (queries.last(2), queries.last(1), queries.last(0));
        let (key_heads, positions, value_width) = (keys.last(2), keys.last(1), values.last(0));
        let (group, isa, pool) = (heads / key_heads, Isa::chosen(), Pool::get());
        let sees_all = !self.causal && seen.is_none() && sinks.is_none();
        if sees_all && self.number == Number::F32 && length > tile::rows(isa) {
            let some = wide::queries(isa);
            let blocks = length.div_ceil(some);
            let to = Shared(outputs[0].data::<f32>());
            return pool.run(heads * blocks, &|index| {
                let (head, first) = (index / blocks, index % blocks * some);
                let block = wide::Block {
                    queries,
                    keys,
                    values,
                    scale: self.scale,
                    heads: [head, head / group],
                    first,
                    to: to.at((first * heads + head) * value_width),
                    stride: heads * value_width,
                };
                // SAFETY: each block is written by one thread, and the arrays live.
                unsafe { for_isa!(isa, attend_block(&block)) };
            });
        }
        // Rows are the queries of all heads that share a key head, query after query.
        let rows = group * length;
        let some = tile::rows(isa);
        let blocks = rows.div_ceil(some);
        let worth = heads * length * positions * width / WORTH;
        let splits = match (key_heads * blocks < 2 * pool.threads()) && worth > 1 {
            true => (positions / PART).clamp(1, 2 * pool.threads()),
            false => 1,
        };
        let count = key_heads * blocks * splits;
        let mut all: Vec<Sums> = (0..count).map(|_| Sums::new(some, value_width)).collect();
        let to = Shared(all.as_mut_ptr());
        let part = |index: usize| {
            let (block, split) = (index / splits, index % splits);
            let (head, first) = (block / blocks, block % blocks * some);
            let part = Part {
                queries,
                keys,
                values,
                seen,
                number: self.number,
                scale: self.scale,
                causal: self.causal,
                head,
                group,
                rows: first..rows.min(first + some),
                positions: positions * split / splits..positions * (split + 1) / splits,
            };
            // SAFETY: each sum is written by one thread, and the arrays live.
            unsafe { for_isa!(isa, attend_part(&part, &mut *to.at(index))) };
        };
        match worth {
            0 | 1 => (0..count).for_each(part),
            _ => pool.run(count, &part),
        }
        let to = outputs[0].data::<f32>();
        for (block, parts) in all.chunks_mut(splits).enumerate() {
            let (head, first) = (block / blocks, block % blocks * some);
            let [sums, others @ ..] = parts else { continue };
            others.iter().for_each(|other| sums.merge(other));
            for row in first..rows.min(first + some) {
                let (query, head) = (row / group, head * group + row % group);
                let sink = sinks.map(|sinks| *sinks.data::<f32>().add(head * sinks.last_stride(0)));
                let start = to.add((query * heads + head) * value_width);
                sums.write(row - first, sink, std::slice::from_raw_parts_mut(start, value_width));
            }
        }
    }
}
