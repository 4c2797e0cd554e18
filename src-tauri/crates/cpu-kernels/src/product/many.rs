//! Products of many rows: outputs become floats in the cache, and are multiplied with panels of rows.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use crate::lanes::{Compiled, Lanes, BLOCK};
use crate::product::code::{for_code, Code, Widened};
use crate::product::few::{last_block, spread};
use crate::product::{Activations, Matrix};

/// Products of all rows with outputs `range`, `[rows, outputs]`.
///
/// # Safety
///
/// The matrix has these outputs, `to` is good for all products, `x` is in panels for these registers, and the processor
/// has the instruction set.
pub unsafe fn many<L: Lanes>(
    x: &Activations,
    matrix: &Matrix,
    range: Range<usize>,
    to: *mut f32,
    scratch: &mut Vec<f32>,
) {
    let (width, count) = (x.width(), range.len());
    let outputs = match matrix.floats(width) {
        Some(first) => first.add(range.start * width),
        None => {
            scratch.resize((count * (width + 2 * matrix.groups())).max(scratch.len()), 0.0);
            let (outputs, scales) = scratch.split_at_mut(count * width);
            unpack_coded::<L>(matrix, range.clone(), width, outputs, scales);
            outputs.as_ptr()
        }
    };
    let lanes = L::TILE.0 * L::COUNT;
    let panels = x.panels().chunks_exact(lanes * width);
    for (panel, numbers) in panels.take(x.rows().div_ceil(lanes)).enumerate() {
        let rows = (x.rows() - panel * lanes).min(lanes);
        let to = to.add(panel * lanes * count);
        for first in (0..count).step_by(L::TILE.1) {
            let outputs = outputs.add(first * width);
            let tile = Tile {
                width,
                panel: numbers.as_ptr(),
                outputs,
                rows,
                to: to.add(first),
                stride: count,
            };
            tile.multiply::<L>((count - first).min(L::TILE.1));
        }
    }
}

/// Outputs as floats `[outputs, width]`. `scratch` has room for their scales and biases.
///
/// # Safety
///
/// The matrix has these outputs, and the processor has the instruction set.
pub unsafe fn unpack_coded<L: Lanes>(
    matrix: &Matrix,
    range: Range<usize>,
    width: usize,
    to: &mut [f32],
    scratch: &mut [f32],
) {
    for_code!(matrix.format.coding, unpack::<L>(matrix, range, width, to, scratch));
}

unsafe fn unpack<L: Lanes, C: Code>(
    matrix: &Matrix,
    range: Range<usize>,
    width: usize,
    to: &mut [f32],
    scratch: &mut [f32],
) {
    L::call(Unpacked::<C> {
        matrix,
        range,
        width,
        to,
        scratch,
        code: PhantomData,
    });
}

/// Outputs that become floats `[outputs, width]`.
struct Unpacked<'a, C> {
    matrix: &'a Matrix,
    range: Range<usize>,
    width: usize,
    to: &'a mut [f32],
    scratch: &'a mut [f32],
    code: PhantomData<C>,
}

impl<L: Lanes, C: Code> Compiled<L> for Unpacked<'_, C> {
    #[inline(always)]
    unsafe fn run(self) {
        let Self {
            matrix,
            range,
            width,
            to,
            scratch,
            ..
        } = self;
        let (groups, group, count) = (matrix.groups(), matrix.format.group, range.len());
        let (scales, biases) = (scratch.as_mut_ptr(), scratch.as_mut_ptr().add(count * groups));
        if C::SCALED {
            let (first, biased) = (range.start, C::BIASED);
            Compiled::<L>::run(Widened {
                matrix,
                first,
                count,
                scales,
                biases,
                biased,
                factor: 1.0,
            });
        }
        for (index, to) in to.chunks_exact_mut(width).enumerate() {
            let (row, to) = (matrix.row(range.start + index), to.as_mut_ptr());
            let (scales, biases) = (scales.add(index * groups), biases.add(index * groups));
            for block in 0..matrix.inputs / BLOCK {
                let (numbers, to) = (C::block::<L>(row.add(block * C::BYTES)), to.add(block * BLOCK));
                if !C::SCALED {
                    L::write(numbers, 1.0, 0.0, to);
                } else if group == 16 {
                    L::write(L::scale(numbers, spread(scales.add(2 * block)).as_ptr()), 1.0, 0.0, to);
                } else {
                    let group = block * BLOCK / group;
                    let bias = if C::BIASED { *biases.add(group) } else { 0.0 };
                    L::write(numbers, *scales.add(group), bias, to);
                }
            }
            if matrix.inputs % BLOCK > 0 {
                let last = last_block::<C>(matrix.inputs, row);
                L::write(
                    C::block::<L>(last.as_ptr()),
                    1.0,
                    0.0,
                    to.add(matrix.inputs / BLOCK * BLOCK),
                );
            }
        }
    }
}

/// A panel of rows and some outputs, and where their products go.
#[derive(Clone, Copy)]
struct Tile {
    width: usize,
    panel: *const f32,
    outputs: *const f32,
    rows: usize,
    to: *mut f32,
    stride: usize,
}

impl Tile {
    /// Multiplies with so many outputs.
    unsafe fn multiply<L: Lanes>(self, count: usize) {
        match (L::TILE, count) {
            ((2, 10), 10) => L::call(Products::<2, 10>(self)),
            ((2, 6), 6) => L::call(Products::<2, 6>(self)),
            ((1, 4), 4) => L::call(Products::<1, 4>(self)),
            ((panels, _), count) => {
                for output in 0..count {
                    let (outputs, to) = (self.outputs.add(output * self.width), self.to.add(output));
                    let one = Self { outputs, to, ..self };
                    match panels {
                        2 => L::call(Products::<2, 1>(one)),
                        _ => L::call(Products::<1, 1>(one)),
                    }
                }
            }
        }
    }
}

/// The products of a panel of `P` registers with `R` outputs.
struct Products<const P: usize, const R: usize>(Tile);

impl<L: Lanes, const P: usize, const R: usize> Compiled<L> for Products<P, R> {
    #[inline(always)]
    unsafe fn run(self) {
        let Tile {
            width,
            panel,
            outputs,
            rows,
            to,
            stride,
        } = self.0;
        let mut sums = [[L::zero(); P]; R];
        for place in 0..width {
            let from = panel.add(place * P * L::COUNT);
            let mut numbers = [L::zero(); P];
            for part in 0..P {
                numbers[part] = L::load(from.add(part * L::COUNT));
                L::prefetch(from.wrapping_add((AHEAD * P + part) * L::COUNT).cast());
            }
            for index in 0..R {
                let weight = L::splat(*outputs.add(index * width + place));
                for part in 0..P {
                    sums[index][part] = numbers[part].mul_add(weight, sums[index][part]);
                }
            }
        }
        // Apart from the loop below, which is not unrolled: else the compiler keeps the sums in memory all the time.
        let mut products = [[0.0; MAX_PANEL]; R];
        for index in 0..R {
            for part in 0..P {
                sums[index][part].store(products[index].as_mut_ptr().add(part * L::COUNT));
            }
        }
        for row in 0..rows {
            for index in 0..R {
                to.add(row * stride + index).write(products[index][row]);
            }
        }
    }
}

/// Places ahead that are asked for: a panel comes from the second cache each time.
const AHEAD: usize = 16;

/// Rows of a panel at most.
const MAX_PANEL: usize = 32;
