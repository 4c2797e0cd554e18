//! Products of a few rows with matrices of 4 bits by instructions for integers.
//!
//! Rows are [rounded](super::rounded) to 16 bits, in two halves of 8 bits, so that what is stored need not become floats.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::lanes::{Compiled, Lanes};
use crate::product::code::Widened;
use crate::product::rounded::{Rounded, Row};
use crate::product::Matrix;

/// Bytes after those that are multiplied, which the processor is asked to bring near.
const AHEAD: usize = 8192;

/// Bytes of a row that is long.
const LONG: usize = 512;

/// Products of all rows with outputs `range`, `[rows, outputs]`. `scratch` is used for scales.
///
/// # Safety
///
/// The matrix has these outputs, `to` is good for all products, and the processor has the instruction set.
pub unsafe fn integer<L: Lanes>(
    x: &Rounded,
    matrix: &Matrix,
    range: Range<usize>,
    to: *mut f32,
    scratch: &mut Vec<f32>,
) {
    let (groups, first, count) = (matrix.groups(), range.start, range.len());
    // Registers of scales are read whole: the numbers after the last one meet zeros, and must be numbers.
    let size = count * groups + L::COUNT;
    scratch.resize((2 * size).max(scratch.len()), 0.0);
    scratch[size - L::COUNT..size].fill(0.0);
    scratch[2 * size - L::COUNT..2 * size].fill(0.0);
    let (scales, biases) = (scratch.as_mut_ptr(), scratch.as_mut_ptr().add(size));
    L::call(Widened {
        matrix,
        first,
        count,
        scales,
        biases,
        biased: true,
        factor: 1.0,
    });
    let task = Task {
        x,
        matrix,
        range,
        to,
        scales,
        biases,
    };
    match x.rows() {
        // One long row of memory after another is read faster than several at once.
        1 if matrix.row_bytes() >= LONG => L::call(Products::<1, 1>(task)),
        1 => L::call(Products::<4, 1>(task)),
        2 => L::call(Products::<4, 2>(task)),
        3 | 4 => L::call(Products::<2, 4>(task)),
        _ => L::call(Products::<1, 8>(task)),
    }
}

/// All rows and some outputs.
struct Task<'a> {
    x: &'a Rounded,
    matrix: &'a Matrix,
    range: Range<usize>,
    to: *mut f32,
    /// The scales of these outputs as floats.
    scales: *const f32,
    /// Their biases.
    biases: *const f32,
}

/// Products of up to `M` rows with `R` outputs at a time. Where there are fewer, the last one is taken again.
struct Products<'a, const R: usize, const M: usize>(Task<'a>);

impl<L: Lanes, const R: usize, const M: usize> Compiled<L> for Products<'_, R, M> {
    #[inline(always)]
    unsafe fn run(self) {
        let Task {
            x,
            matrix,
            range,
            to,
            scales,
            biases,
        } = self.0;
        let (groups, group, bytes) = (matrix.groups(), matrix.format.group, 4 * L::COUNT);
        let numbers = 2 * bytes;
        let (whole, rest) = (matrix.inputs / numbers, matrix.inputs % numbers / 2);
        // The scale that each lane takes of those of a chunk.
        let mut chosen = [0i32; 16];
        for (lane, chosen) in chosen.iter_mut().enumerate().take(L::COUNT) {
            *chosen = (lane * (numbers / L::COUNT) / group) as i32;
        }
        let several = numbers > group;
        let rows: [_; M] = std::array::from_fn(|row| x.row(row.min(x.rows() - 1)));
        for output in (0..range.len()).step_by(R) {
            let outputs: [usize; R] = std::array::from_fn(|index| (output + index).min(range.len() - 1));
            let weights = outputs.map(|output| matrix.row(range.start + output));
            let scales = outputs.map(|output| scales.add(output * groups));
            let biases = outputs.map(|output| biases.add(output * groups));
            let mut sums = [[L::zero(); M]; R];
            for chunk in 0..whole {
                for index in 0..R {
                    let from = weights[index].add(chunk * bytes);
                    L::prefetch(from.wrapping_add(AHEAD));
                    let scale = scale_of::<L>(scales[index].add(chunk * numbers / group), several.then_some(&chosen));
                    add_chunk::<L, M>(&rows, chunk, L::bytes(from), scale, &mut sums[index]);
                }
            }
            if rest > 0 {
                for index in 0..R {
                    let stored = L::first_bytes(weights[index].add(whole * bytes), rest);
                    let scale = scale_of::<L>(scales[index].add(whole * numbers / group), several.then_some(&chosen));
                    add_chunk::<L, M>(&rows, whole, stored, scale, &mut sums[index]);
                }
            }
            for some in (0..groups).step_by(L::COUNT) {
                for row in 0..M {
                    let of_groups = L::load(rows[row].sums.add(some));
                    for index in 0..R {
                        sums[index][row] = L::load(biases[index].add(some)).mul_add(of_groups, sums[index][row]);
                    }
                }
            }
            for index in 0..R {
                for row in 0..M {
                    // Loops whose length is not known would keep the sums in memory.
                    if row < x.rows() {
                        to.add(row * range.len() + outputs[index]).write(sums[index][row].sum());
                    }
                }
            }
        }
    }
}

/// The scale of each lane: that of its group, or the same for all.
#[inline(always)]
unsafe fn scale_of<L: Lanes>(from: *const f32, chosen: Option<&[i32; 16]>) -> L {
    match chosen {
        Some(chosen) => L::choose(from, chosen.as_ptr()),
        None => L::splat(*from),
    }
}

/// Adds the products of the rows with a chunk of an output.
#[inline(always)]
unsafe fn add_chunk<L: Lanes, const M: usize>(
    rows: &[Row; M],
    chunk: usize,
    stored: L::Bytes,
    scale: L,
    sums: &mut [L; M],
) {
    let halves = chunk * 16 * L::COUNT;
    for row in 0..M {
        let products = L::nibble_products(stored, rows[row].halves.add(halves));
        let steps = L::load(rows[row].steps.add(chunk * L::COUNT));
        sums[row] = products.mul(steps).mul_add(scale, sums[row]);
    }
}
