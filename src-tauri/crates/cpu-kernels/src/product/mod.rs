//! Products of rows with matrices as they are stored.
//!
//! A matrix is read once for a [few] rows, each block of 32 numbers being turned into floats in registers. For [many]
//! rows, some outputs at a time become floats in the cache and are multiplied as those. Activations are 32 bit floats,
//! so that nothing is lost but the order of additions.
#![allow(unsafe_code)]

pub mod activations;
mod code;
mod few;
mod many;
mod matrix;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::ops::Range;

pub use activations::Activations;
pub use matrix::Matrix;

use crate::isa::{for_isa, Isa};
use crate::pool::Pool;
use few::few;
use many::many;


/// Bytes of a matrix that a thread works at before it looks for the next part: some ten microseconds.
const PART: usize = 48 << 10;

/// Bytes of outputs as floats that stay in a core's cache beside activations.
const TILE: usize = 384 << 10;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Memory that a thread uses again and again.
#[derive(Default)]
struct Scratch {
    /// Scales and biases as floats, or outputs as floats.
    numbers: Vec<f32>,
    /// Products.
    products: Vec<f32>,
}

/// What is done with products `[rows, outputs]` of a part before they are written.
pub trait Finish: Sync {
    /// Groups of outputs that are computed together: `outputs` apart. Two for a gate and what it gates.
    const TOGETHER: usize;

    /// Writes outputs `range` of `row` from their products, one slice for each of `TOGETHER`.
    ///
    /// # Safety
    ///
    /// No other thread writes the same outputs, and the memory it writes to lives.
    unsafe fn finish(&self, row: usize, range: Range<usize>, products: [&[f32]; 2]);
}

/// Multiplies all rows with the first `outputs · TOGETHER` rows of the matrix.
///
/// # Safety
///
/// The memory of the matrix lives and holds what it says.
pub unsafe fn multiply<F: Finish>(isa: Isa, x: &Activations, matrix: &Matrix, outputs: usize, finish: &F) {
    let rows = x.rows();
    let panels = x.are_many().then(|| x.panels(many::panel(isa)));
    let (length, together) = (part_length(isa, x, matrix), F::TOGETHER);
    let length = (length / together).max(1);
    let parts = outputs.div_ceil(length);
    Pool::get().run(parts, &|part| {
        let range = part * length..outputs.min((part + 1) * length);
        SCRATCH.with_borrow_mut(|scratch| {
            let count = range.len();
            scratch.products.resize((together * rows * count).max(scratch.products.len()), 0.0);
            for group in 0..together {
                let shifted = range.start + group * outputs..range.end + group * outputs;
                let to = scratch.products[group * rows * count..].as_mut_ptr();
                // SAFETY: the range is within the matrix, and there is memory for so many products.
                unsafe { products(isa, x, panels.as_deref(), matrix, shifted, to, &mut scratch.numbers) };
            }
            for row in 0..rows {
                let of = |group: usize| {
                    let first = (group % together * rows + row) * count;
                    &scratch.products[first..first + count]
                };
                // SAFETY: parts share no outputs.
                unsafe { finish.finish(row, range.clone(), [of(0), of(1)]) };
            }
        });
    });
}

/// Outputs of a part.
fn part_length(isa: Isa, x: &Activations, matrix: &Matrix) -> usize {
    if x.are_many() {
        let tile = many::tile(isa);
        return (TILE / (4 * x.width()) / tile * tile).max(tile);
    }
    (PART / matrix.row_bytes().max(1)).next_multiple_of(4).max(4)
}

/// Products of all rows with outputs `range`, `[rows, outputs]`.
unsafe fn products(
    isa: Isa,
    x: &Activations,
    panels: Option<&[f32]>,
    matrix: &Matrix,
    range: Range<usize>,
    to: *mut f32,
    numbers: &mut Vec<f32>,
) {
    match panels {
        None => for_isa!(isa, few(x, matrix, range, to, numbers)),
        Some(panels) => for_isa!(isa, many(x, panels, matrix, range, to, numbers)),
    }
}
