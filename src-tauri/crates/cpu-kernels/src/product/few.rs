//! Products of a few rows: each block of the matrix becomes floats in registers once for up to eight rows.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use crate::lanes::{Compiled, Lanes, BLOCK};
use crate::product::code::{for_code, Code, Widened};
use crate::product::{Activations, Matrix};

/// The most bytes of a block.
const MAX_BYTES: usize = 128;

/// Products of all rows with outputs `range`, `[rows, outputs]`. `scratch` is used for scales.
///
/// # Safety
///
/// The matrix has these outputs, `to` is good for all products, and the processor has the instruction set.
pub unsafe fn few<L: Lanes>(
    x: &Activations,
    matrix: &Matrix,
    range: Range<usize>,
    to: *mut f32,
    scratch: &mut Vec<f32>,
) {
    for_code!(matrix.format.coding, few_of::<L>(x, matrix, range, to, scratch))
}

unsafe fn few_of<L: Lanes, C: Code>(
    x: &Activations,
    matrix: &Matrix,
    range: Range<usize>,
    to: *mut f32,
    scratch: &mut Vec<f32>,
) {
    let size = range.len() * matrix.groups();
    scratch.resize((2 * size).max(scratch.len()), 0.0);
    let (scales, biases) = (scratch.as_mut_ptr(), scratch.as_mut_ptr().add(size));
    if C::SCALED {
        let (first, count) = (range.start, range.len());
        L::call(Widened {
            matrix,
            first,
            count,
            scales,
            biases,
            biased: C::BIASED,
            factor: (L::COUNT as f32).recip(),
        });
    }
    let task = Task {
        x,
        matrix,
        range,
        to,
        scales,
        biases,
    };
    // More registers hold more products.
    match x.together() {
        8 if L::COUNT >= 16 => L::call(Products::<C, 1, 8, 8>(task, 0, PhantomData)),
        8 => {
            L::call(Products::<C, 1, 4, 8>(task.clone(), 0, PhantomData));
            L::call(Products::<C, 1, 4, 8>(task, 4, PhantomData));
        }
        4 if L::COUNT >= 16 => L::call(Products::<C, 2, 4, 4>(task, 0, PhantomData)),
        4 => L::call(Products::<C, 1, 4, 4>(task, 0, PhantomData)),
        2 => L::call(Products::<C, 2, 2, 2>(task, 0, PhantomData)),
        _ => L::call(Products::<C, 4, 1, 1>(task, 0, PhantomData)),
    }
}

/// All rows and some outputs.
#[derive(Clone)]
struct Task<'a> {
    x: &'a Activations,
    matrix: &'a Matrix,
    range: Range<usize>,
    to: *mut f32,
    /// The scales of these outputs as floats.
    scales: *const f32,
    /// Their biases, divided among the lanes of a register.
    biases: *const f32,
}

/// Products of `M` rows from one on, of which `T` have their blocks side by side, with `R` outputs at a time. Where there
/// are fewer outputs, the last one is taken again.
struct Products<'a, C, const R: usize, const M: usize, const T: usize>(Task<'a>, usize, PhantomData<C>);

impl<L: Lanes, C: Code, const R: usize, const M: usize, const T: usize> Compiled<L> for Products<'_, C, R, M, T> {
    #[inline(always)]
    unsafe fn run(self) {
        let Self(
            Task {
                x,
                matrix,
                range,
                to,
                scales,
                biases,
            },
            first,
            _,
        ) = self;
        let (groups, of_group) = (matrix.groups(), matrix.format.group / BLOCK);
        let (whole, blocks) = (matrix.inputs / BLOCK, x.blocks().add(first * BLOCK));
        let group_sums: [*const f32; M] = std::array::from_fn(|row| x.sums(first + row).as_ptr());
        for output in (0..range.len()).step_by(R) {
            let outputs: [usize; R] = std::array::from_fn(|index| (output + index).min(range.len() - 1));
            let weights = outputs.map(|output| matrix.row(range.start + output));
            let scales = outputs.map(|output| scales.add(output * groups));
            let biases = outputs.map(|output| biases.add(output * groups));
            let mut sums = [[L::zero(); M]; R];
            // The next outputs, of which the processor guesses too late that they will be read.
            let ahead = R * matrix.row_bytes();
            if !C::SCALED {
                for block in 0..whole {
                    prefetch::<L, R>(weights, block * C::BYTES + ahead);
                    add_block::<L, C, R, M>(blocks.add(block * T * BLOCK), weights, block * C::BYTES, &mut sums);
                }
                if matrix.inputs % BLOCK > 0 {
                    let last = weights.map(|weight| last_block::<C>(matrix.inputs, weight));
                    let last = std::array::from_fn(|index| last[index].as_ptr());
                    add_block::<L, C, R, M>(blocks.add(whole * T * BLOCK), last, 0, &mut sums);
                }
            } else if of_group == 0 {
                // Two groups in a block.
                for block in 0..whole {
                    let from = blocks.add(block * T * BLOCK);
                    for index in 0..R {
                        let spread = spread(scales[index].add(2 * block));
                        let numbers = C::block::<L>(weights[index].add(block * C::BYTES));
                        let numbers = L::scale(numbers, spread.as_ptr());
                        for row in 0..M {
                            sums[index][row] = L::dot(numbers, from.add(row * BLOCK), sums[index][row]);
                        }
                    }
                }
            } else {
                let (mut from, mut at) = (blocks, 0);
                for group in 0..groups {
                    let mut parts = [[L::zero(); M]; R];
                    prefetch::<L, R>(weights, at + ahead);
                    for _ in 0..of_group {
                        add_block::<L, C, R, M>(from, weights, at, &mut parts);
                        (from, at) = (from.add(T * BLOCK), at + C::BYTES);
                    }
                    for index in 0..R {
                        let scale = L::splat(*scales[index].add(group));
                        for row in 0..M {
                            sums[index][row] = parts[index][row].mul_add(scale, sums[index][row]);
                        }
                    }
                    if C::BIASED {
                        for index in 0..R {
                            let bias = L::splat(*biases[index].add(group));
                            for row in 0..M {
                                let of_group = L::splat(*group_sums[row].add(group));
                                sums[index][row] = of_group.mul_add(bias, sums[index][row]);
                            }
                        }
                    }
                }
            }
            for index in 0..R {
                for row in 0..M {
                    // Loops whose length is not known would keep the sums in memory.
                    if first + row < x.rows() {
                        to.add((first + row) * range.len() + outputs[index])
                            .write(sums[index][row].sum());
                    }
                }
            }
        }
    }
}

/// Asks for what is read soon.
#[inline(always)]
unsafe fn prefetch<L: Lanes, const R: usize>(weights: [*const u8; R], at: usize) {
    for index in 0..R {
        L::prefetch(weights[index].wrapping_add(at));
    }
}

/// Adds the products of one block of each output, `at` bytes from its begin on.
#[inline(always)]
unsafe fn add_block<L: Lanes, C: Code, const R: usize, const M: usize>(
    from: *const f32,
    weights: [*const u8; R],
    at: usize,
    sums: &mut [[L; M]; R],
) {
    for index in 0..R {
        let numbers = C::block::<L>(weights[index].add(at));
        for row in 0..M {
            sums[index][row] = L::dot(numbers, from.add(row * BLOCK), sums[index][row]);
        }
    }
}

/// Two scales at the places of a block whose even places come first.
#[inline(always)]
pub unsafe fn spread(scales: *const f32) -> [f32; BLOCK] {
    std::array::from_fn(|place| unsafe { *scales.add(place / 8 % 2) })
}

/// The numbers after the last whole block of a row, and zeros.
#[inline(always)]
pub unsafe fn last_block<C: Code>(inputs: usize, row: *const u8) -> [u8; MAX_BYTES] {
    let (number, mut last) = (C::BYTES / BLOCK, [0; MAX_BYTES]);
    let start = inputs / BLOCK * C::BYTES;
    std::ptr::copy_nonoverlapping(row.add(start), last.as_mut_ptr(), inputs % BLOCK * number);
    last
}
