//! Many queries of one head that see all positions, a query in each lane: scores, their exponentials and the values
//! counted by them are sums of products with numbers of one position, so that nothing is added across a register.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::isa::{for_isa, Isa};
use crate::lanes::{Compiled, Lanes};
use crate::math::exp;
use crate::primitive::View;

/// Positions whose scores are kept at once.
const TILE: usize = 128;

/// Queries of a block.
pub fn queries(isa: Isa) -> usize {
    fn of<L: Lanes>() -> usize {
        L::TILE.0 * L::COUNT
    }
    for_isa!(isa, of())
}

/// A block of queries, from number `first` on. Keys and values are 32 bit floats.
pub struct Block<'a> {
    pub queries: &'a View,
    pub keys: &'a View,
    pub values: &'a View,
    pub scale: f32,
    /// The head of the queries, and that of the keys.
    pub heads: [usize; 2],
    pub first: usize,
    /// The place of the attention of the first query, and how far apart queries are.
    pub to: *mut f32,
    pub stride: usize,
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = RefCell::default();
}

/// Writes the attention of a block.
///
/// # Safety
///
/// The arrays live and have these heads and queries, there is room for what is written, and the processor has the
/// instruction set.
pub unsafe fn attend_block<L: Lanes>(block: &Block<'_>) {
    SCRATCH.with_borrow_mut(|scratch| match (L::TILE.0, L::COUNT) {
        (2, 16..) => L::call(Attending::<2, 8> { block, scratch }),
        (2, _) => L::call(Attending::<2, 4> { block, scratch }),
        _ => L::call(Attending::<1, 4> { block, scratch }),
    });
}

/// A block whose queries fill `P` registers. The sums of `R` positions, or of `R` numbers of a value, are in registers
/// at once.
struct Attending<'a, const P: usize, const R: usize> {
    block: &'a Block<'a>,
    scratch: &'a mut Vec<f32>,
}

impl<L: Lanes, const P: usize, const R: usize> Compiled<L> for Attending<'_, P, R> {
    #[inline(always)]
    unsafe fn run(self) {
        let Self { block, scratch } = self;
        let [of_queries, of_keys] = block.heads;
        let (width, value_width, length) = (block.queries.last(0), block.values.last(0), block.queries.last(1));
        let (positions, lanes) = (block.keys.last(1), P * L::COUNT);
        let count = lanes.min(length - block.first);
        scratch.clear();
        scratch.resize((width + TILE + value_width + 3) * lanes + width, 0.0);
        let (queries, rest) = scratch.split_at_mut(width * lanes);
        let (scores, rest) = rest.split_at_mut(TILE * lanes);
        let (sums, rest) = rest.split_at_mut(value_width * lanes);
        let (greatest, rest) = rest.split_at_mut(lanes);
        let (total, rest) = rest.split_at_mut(lanes);
        let (factors, row) = rest.split_at_mut(lanes);
        for lane in 0..count {
            block.queries.read(of_queries * length + block.first + lane, row);
            for (place, number) in row.iter().enumerate() {
                queries[place * lanes + lane] = number * block.scale;
            }
        }
        greatest.fill(f32::NEG_INFINITY);
        let [keys, values] = [block.keys, block.values].map(|view| Positions {
            start: view
                .data::<f32>()
                .cast_const()
                .wrapping_add(of_keys * view.last_stride(2)),
            stride: view.last_stride(1),
        });
        for start in (0..positions).step_by(TILE) {
            let some = TILE.min(positions - start);
            let scores = &mut scores[..some * lanes];
            let (keys, values) = (keys.at(start), values.at(start));
            for first in (0..some).step_by(R) {
                let (keys, to) = (keys.at(first), scores.as_mut_ptr().add(first * lanes));
                if first + R <= some {
                    score::<L, P, R>(queries, keys, width, to);
                    continue;
                }
                for one in 0..some - first {
                    score::<L, P, 1>(queries, keys.at(one), width, to.add(one * lanes));
                }
            }
            soften(scores, greatest, total, factors);
            for first in (0..value_width).step_by(R) {
                let sums = sums.as_mut_ptr().add(first * lanes);
                count_values::<L, P, R>(scores, values.of_place(first), factors, sums);
            }
        }
        for lane in 0..count {
            let (to, factor) = (block.to.add(lane * block.stride), total[lane].recip());
            for place in 0..value_width {
                to.add(place).write(sums[place * lanes + lane] * factor);
            }
        }
    }
}

/// Keys or values, each as many numbers after the one before.
#[derive(Clone, Copy)]
struct Positions {
    start: *const f32,
    stride: usize,
}

impl Positions {
    /// Those from a position on.
    fn at(self, position: usize) -> Self {
        Self {
            start: self.start.wrapping_add(position * self.stride),
            ..self
        }
    }

    /// Their numbers from a place on.
    fn of_place(self, place: usize) -> Self {
        Self {
            start: self.start.wrapping_add(place),
            ..self
        }
    }
}

/// The scores of `R` positions.
#[inline(always)]
unsafe fn score<L: Lanes, const P: usize, const R: usize>(
    queries: &[f32],
    keys: Positions,
    width: usize,
    to: *mut f32,
) {
    let mut sums = [[L::zero(); P]; R];
    for place in 0..width {
        let mut numbers = [L::zero(); P];
        for part in 0..P {
            numbers[part] = L::load(queries.as_ptr().add((place * P + part) * L::COUNT));
        }
        for position in 0..R {
            let number = L::splat(*keys.start.add(position * keys.stride + place));
            for part in 0..P {
                sums[position][part] = numbers[part].mul_add(number, sums[position][part]);
            }
        }
    }
    for position in 0..R {
        for part in 0..P {
            sums[position][part].store(to.add((position * P + part) * L::COUNT));
        }
    }
}

/// Turns scores into the exponentials of their distances from the greatest one so far of each lane, and tells the
/// factors for what was summed with an earlier one.
#[inline(always)]
fn soften(scores: &mut [f32], greatest: &mut [f32], total: &mut [f32], factors: &mut [f32]) {
    let lanes = greatest.len();
    factors.copy_from_slice(greatest);
    for scores in scores.chunks_exact(lanes) {
        for (greatest, score) in greatest.iter_mut().zip(scores) {
            *greatest = if *score > *greatest { *score } else { *greatest };
        }
    }
    for ((factor, greatest), total) in factors.iter_mut().zip(&*greatest).zip(&mut *total) {
        *factor = exp(*factor - greatest);
        *total *= *factor;
    }
    for scores in scores.chunks_exact_mut(lanes) {
        for ((score, greatest), total) in scores.iter_mut().zip(&*greatest).zip(&mut *total) {
            *score = exp(*score - greatest);
            *total += *score;
        }
    }
}

/// Adds the next numbers of the values of some positions to what was summed before, `[numbers, lanes]`.
#[inline(always)]
unsafe fn count_values<L: Lanes, const P: usize, const R: usize>(
    scores: &[f32],
    values: Positions,
    factors: &[f32],
    to: *mut f32,
) {
    let mut sums = [[L::zero(); P]; R];
    for place in 0..R {
        for part in 0..P {
            let factor = L::load(factors.as_ptr().add(part * L::COUNT));
            sums[place][part] = L::load(to.add((place * P + part) * L::COUNT)).mul(factor);
        }
    }
    for (position, shares) in scores.chunks_exact(P * L::COUNT).enumerate() {
        let mut numbers = [L::zero(); P];
        for part in 0..P {
            numbers[part] = L::load(shares.as_ptr().add(part * L::COUNT));
        }
        for place in 0..R {
            let value = L::splat(*values.start.add(position * values.stride + place));
            for part in 0..P {
                sums[place][part] = numbers[part].mul_add(value, sums[place][part]);
            }
        }
    }
    for place in 0..R {
        for part in 0..P {
            sums[place][part].store(to.add((place * P + part) * L::COUNT));
        }
    }
}
