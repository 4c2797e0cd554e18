//! Some queries of one key head against some positions.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::format::Number;
use crate::isa::Isa;
use crate::lanes::{Compiled, Lanes, BLOCK};
use crate::math::exp;
use crate::primitive::View;
use crate::product::code::{Bf16, Code, F16, F32};

/// Positions whose scores are kept at once.
const TILE: usize = 64;

/// Rows at once: as many as registers hold the sums of.
pub fn rows(isa: Isa) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Amx => 8,
        _ => 2,
    }
}

/// Queries of one key head and positions. Rows are the queries of the heads that share the key head, query after query.
pub struct Part<'a> {
    pub queries: &'a View,
    pub keys: &'a View,
    pub values: &'a View,
    pub seen: Option<&'a View>,
    pub number: Number,
    pub scale: f32,
    pub causal: bool,
    pub head: usize,
    pub group: usize,
    pub rows: Range<usize>,
    pub positions: Range<usize>,
}

/// The sums of rows so far: the greatest score, the sum of the exponentials, and the values counted by them.
pub struct Sums {
    greatest: Vec<f32>,
    total: Vec<f32>,
    values: Vec<f32>,
    width: usize,
}

impl Sums {
    pub fn new(rows: usize, width: usize) -> Self {
        Self {
            greatest: vec![f32::NEG_INFINITY; rows],
            total: vec![0.0; rows],
            values: vec![0.0; rows * width],
            width,
        }
    }

    /// Adds those of other positions.
    pub fn merge(&mut self, other: &Self) {
        for row in 0..self.greatest.len() {
            let greatest = self.greatest[row].max(other.greatest[row]);
            if greatest == f32::NEG_INFINITY {
                continue;
            }
            let [own, others] = [self, other].map(|sums| (sums.greatest[row] - greatest).exp());
            self.total[row] = self.total[row] * own + other.total[row] * others;
            let range = row * self.width..(row + 1) * self.width;
            for (value, other) in self.values[range.clone()].iter_mut().zip(&other.values[range]) {
                *value = *value * own + other * others;
            }
            self.greatest[row] = greatest;
        }
    }

    /// The attention of a row. A sink is a score whose value is nothing.
    pub fn write(&self, row: usize, sink: Option<f32>, to: &mut [f32]) {
        let mut total = self.total[row];
        let mut factor = 1.0;
        if let Some(sink) = sink {
            let greatest = self.greatest[row].max(sink);
            factor = (self.greatest[row] - greatest).exp();
            total = total * factor + (sink - greatest).exp();
        }
        let factor = if total > 0.0 { factor / total } else { 0.0 };
        for (to, value) in to.iter_mut().zip(&self.values[row * self.width..]) {
            *to = value * factor;
        }
    }
}

/// Adds what a part's rows see of its positions.
///
/// # Safety
///
/// The arrays live, have these rows and positions, and the processor has the instruction set.
pub unsafe fn attend_part<L: Lanes>(part: &Part<'_>, sums: &mut Sums) {
    let (wide, few) = (L::COUNT >= 16, part.rows.len() <= 4);
    match (part.number, wide, few) {
        (Number::F16, true, false) => L::call(Attending::<F16, 8>::new(part, sums)),
        (Number::Bf16, true, false) => L::call(Attending::<Bf16, 8>::new(part, sums)),
        (_, true, false) => L::call(Attending::<F32, 8>::new(part, sums)),
        (Number::F16, true, true) => L::call(Attending::<F16, 4>::new(part, sums)),
        (Number::Bf16, true, true) => L::call(Attending::<Bf16, 4>::new(part, sums)),
        (_, true, true) => L::call(Attending::<F32, 4>::new(part, sums)),
        (Number::F16, false, _) => L::call(Attending::<F16, 2>::new(part, sums)),
        (Number::Bf16, false, _) => L::call(Attending::<Bf16, 2>::new(part, sums)),
        (_, false, _) => L::call(Attending::<F32, 2>::new(part, sums)),
    }
}

struct Attending<'a, C, const R: usize> {
    part: &'a Part<'a>,
    sums: &'a mut Sums,
    code: std::marker::PhantomData<C>,
}

impl<'a, C, const R: usize> Attending<'a, C, R> {
    fn new(part: &'a Part<'a>, sums: &'a mut Sums) -> Self {
        Self {
            part,
            sums,
            code: std::marker::PhantomData,
        }
    }
}

impl<L: Lanes, C: Code, const R: usize> Compiled<L> for Attending<'_, C, R> {
    #[inline(always)]
    unsafe fn run(self) {
        let (part, sums) = (self.part, self.sums);
        let (width, value_width, length) = (part.queries.last(0), sums.width, part.queries.last(1));
        let count = part.rows.len();
        let mut queries = vec![0.0; R * width];
        for (row, to) in part.rows.clone().zip(queries.chunks_exact_mut(width)) {
            let head = part.head * part.group + row % part.group;
            part.queries.read(head * length + row / part.group, to);
            to.iter_mut().for_each(|number| *number *= part.scale);
        }
        // Positions before a query's own that all see.
        let before = part.keys.last(1) - length;
        let last = if part.causal {
            before + (part.rows.end - 1) / part.group + 1
        } else {
            usize::MAX
        };
        let bytes = C::BYTES / BLOCK;
        let at = |view: &View, position: usize| {
            let start = part.head * view.last_stride(2) + position * view.last_stride(1);
            view.data::<u8>().cast_const().wrapping_add(start * bytes)
        };
        let mut start = part.positions.start;
        let end = part.positions.end.min(last);
        while start < end {
            let positions = start..end.min(start + TILE);
            start = positions.end;
            let mut scores = [[f32::NEG_INFINITY; TILE]; R];
            for (place, position) in positions.clone().enumerate() {
                let key = at(part.keys, position);
                let mut products = [L::zero(); R];
                for block in 0..width / BLOCK {
                    let numbers = C::block::<L>(key.add(block * C::BYTES));
                    for row in 0..R {
                        let query = queries.as_ptr().add(row * width + block * BLOCK);
                        products[row] = L::dot(numbers, query, products[row]);
                    }
                }
                for first in (0..R / 4 * 4).step_by(4) {
                    let four = [
                        products[first],
                        products[first + 1],
                        products[first + 2],
                        products[first + 3],
                    ];
                    for (row, sum) in L::sums(four).into_iter().enumerate() {
                        scores[first + row][place] = sum;
                    }
                }
                for row in R / 4 * 4..R {
                    scores[row][place] = products[row].sum();
                }
            }
            let mut factors = [0.0; R];
            for row in 0..count {
                let query = (part.rows.start + row) / part.group;
                for (place, position) in positions.clone().enumerate() {
                    let hidden = match part.seen {
                        Some(seen) => {
                            let place = query * seen.last_stride(1) + position * seen.last_stride(0);
                            *seen.data::<u8>().add(place) == 0
                        }
                        None => part.causal && position > before + query,
                    };
                    if hidden {
                        scores[row][place] = f32::NEG_INFINITY;
                    }
                }
                factors[row] = soften(&mut scores[row], &mut sums.greatest[row], &mut sums.total[row]);
            }
            for block in 0..value_width / BLOCK {
                let zeros = [0.0; BLOCK];
                let mut all = [L::block(zeros.as_ptr()); R];
                // Loops whose length is not known would keep the sums in memory.
                for row in 0..R {
                    if row < count {
                        let so_far = L::block(sums.values.as_ptr().add(row * value_width + block * BLOCK));
                        all[row] = L::add_scaled(so_far, factors[row], L::block(zeros.as_ptr()));
                    }
                }
                for (place, position) in positions.clone().enumerate() {
                    let value = C::block::<L>(at(part.values, position).add(block * C::BYTES));
                    for row in 0..R {
                        all[row] = L::add_scaled(value, scores[row][place], all[row]);
                    }
                }
                for row in 0..R {
                    if row < count {
                        let to = sums.values.as_mut_ptr().add(row * value_width + block * BLOCK);
                        L::write(all[row], 1.0, 0.0, to);
                    }
                }
            }
        }
    }
}

/// Turns scores into the exponentials of their distances from the greatest one so far, and returns the factor for what
/// was summed with an earlier one.
#[inline(always)]
fn soften(scores: &mut [f32; TILE], greatest: &mut f32, total: &mut f32) -> f32 {
    let mut parts = [f32::NEG_INFINITY; 16];
    for some in scores.chunks_exact(16) {
        for (part, score) in parts.iter_mut().zip(some) {
            *part = if *score > *part { *score } else { *part };
        }
    }
    let highest = parts.iter().fold(*greatest, |highest, score| highest.max(*score));
    if highest == f32::NEG_INFINITY {
        scores.fill(0.0);
        return 0.0;
    }
    let factor = exp(*greatest - highest);
    let mut sums = [0.0; 16];
    for some in scores.chunks_exact_mut(16) {
        for (sum, score) in sums.iter_mut().zip(some) {
            // Hidden positions count nothing.
            *score = if *score > -1e30 { exp(*score - highest) } else { 0.0 };
            *sum += *score;
        }
    }
    *total = *total * factor + sums.iter().sum::<f32>();
    *greatest = highest;
    factor
}
