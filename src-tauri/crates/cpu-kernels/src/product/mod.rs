//! Products of rows with matrices as they are stored.
//!
//! A matrix is read once for a [few] rows, each block of 32 numbers being turned into floats in registers, or multiplied by
//! instructions for [integers](integer) with rows of 8 or 16 bits. For [many] rows, some outputs at a time become floats in the
//! cache and are multiplied as those; or they become bytes and are multiplied with rows of 16 bits in [tiles].
#![allow(unsafe_code)]

pub mod activations;
pub mod code;
mod few;
mod integer;
mod many;
mod matrix;
mod panel;
mod rounded;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod tiled;
#[cfg(target_arch = "x86_64")]
mod tiles;

use std::cell::RefCell;
use std::ops::Range;

pub use activations::Activations;
pub use matrix::Matrix;
pub use rounded::Precision;

use crate::isa::{for_isa, Isa};
#[cfg(target_arch = "x86_64")]
use crate::lanes::Avx512;
use crate::lanes::{Lanes, BLOCK};
use crate::pool::Pool;
use few::few;
#[cfg(target_arch = "x86_64")]
use integer::EightBits;
use integer::{integer, FourBits};
use many::{many, unpack_coded};
use rounded::Rounded;

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

/// Rows, and the matrix that they are multiplied with.
pub struct Job<'a> {
    /// The rows.
    pub x: &'a Activations,
    /// The matrix.
    pub matrix: Matrix,
}

/// The treatment of the products `[rows, outputs]` of a part before they are written.
pub trait Finish: Sync {
    /// Groups of outputs that are computed together, as many outputs apart as a job has: two for a gate and what it
    /// gates.
    const TOGETHER: usize;

    /// The memory for an output of a row of a job and those after it. It is only asked for early, never read.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    fn place(&self, job: usize, row: usize, output: usize) -> *const f32;

    /// Writes outputs `range` of a row of a job from their products, one slice for each of `TOGETHER`.
    ///
    /// # Safety
    ///
    /// No other thread writes the same outputs, and the memory it writes to lives.
    unsafe fn finish(&self, job: usize, row: usize, range: Range<usize>, products: [&[f32]; 2]);
}

/// Multiplies the rows of every job with the first `outputs · TOGETHER` rows of its matrix.
///
/// # Safety
///
/// The memory of the matrices lives and holds what they say.
pub unsafe fn multiply<F: Finish>(isa: Isa, jobs: &[Job<'_>], outputs: usize, finish: &F) {
    let lengths: Vec<usize> = jobs.iter().map(|job| part_length::<F>(isa, job, outputs)).collect();
    // The first part of each job.
    let mut firsts = Vec::with_capacity(jobs.len());
    let mut parts = 0;
    for length in &lengths {
        firsts.push(parts);
        parts += outputs.div_ceil(*length);
    }
    Pool::get().run(parts, &|part| {
        let index = firsts.partition_point(|first| *first <= part) - 1;
        let (job, length) = (&jobs[index], lengths[index]);
        let start = (part - firsts[index]) * length;
        let range = start..outputs.min(start + length);
        // SAFETY: parts share no outputs, and the range is within the matrix.
        unsafe { multiply_part(isa, (index, job), outputs, range, finish) };
    });
}

unsafe fn multiply_part<F: Finish>(
    isa: Isa,
    (index, job): (usize, &Job<'_>),
    outputs: usize,
    range: Range<usize>,
    finish: &F,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(tiled) = job.x.tiled() {
        return SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: the range is within the matrix, parts share no outputs, and rows are so where there is AVX-512.
            unsafe { tiles::multiply_part(isa, tiled, (index, &job.matrix), outputs, range, finish, scratch) };
        });
    }
    let (rows, count) = (job.x.rows(), range.len());
    SCRATCH.with_borrow_mut(|Scratch { numbers, products: all }| {
        all.resize((F::TOGETHER * rows * count).max(all.len()), 0.0);
        for group in 0..F::TOGETHER {
            let shifted = range.start + group * outputs..range.end + group * outputs;
            let to = all[group * rows * count..].as_mut_ptr();
            // SAFETY: the range is within the matrix, and there is memory for so many products.
            unsafe { products(isa, job, shifted, to, numbers) };
        }
        for row in 0..rows {
            let of = |group: usize| {
                let first = (group % F::TOGETHER * rows + row) * count;
                &all[first..first + count]
            };
            // SAFETY: parts share no outputs.
            unsafe { finish.finish(index, row, range.clone(), [of(0), of(1)]) };
        }
    });
}

/// The numbers of a row of a matrix, whose inputs are whole blocks, in their order.
///
/// # Safety
///
/// The matrix has the row, and its memory lives.
pub unsafe fn numbers(isa: Isa, matrix: &Matrix, row: usize, to: &mut [f32]) {
    SCRATCH.with_borrow_mut(|Scratch { numbers, .. }| {
        numbers.resize((2 * matrix.groups()).max(numbers.len()), 0.0);
        let (range, width) = (row..row + 1, to.len());
        // SAFETY: the instruction set is one of this processor.
        unsafe { for_isa!(isa, unpack_coded(matrix, range, width, to, numbers)) };
    });
    if matrix.format.splits() {
        for block in to.chunks_exact_mut(BLOCK) {
            let split: [f32; BLOCK] = std::array::from_fn(|place| block[place % 2 * BLOCK / 2 + place / 2]);
            block.copy_from_slice(&split);
        }
    }
}

/// Outputs of a part, of `outputs`, beside those that belong together with them.
fn part_length<F: Finish>(isa: Isa, job: &Job<'_>, outputs: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if job.x.tiled().is_some() {
        return tiles::part_length(F::TOGETHER * job.matrix.inputs, outputs);
    }
    if job.x.are_many() {
        let tile = panel::outputs(isa);
        let most = (TILE / (4 * F::TOGETHER * job.x.width()) / tile * tile).max(tile);
        // As many parts for each thread, of whole tiles.
        let parts = outputs.div_ceil(most).next_multiple_of(Pool::get().threads());
        return outputs.div_ceil(parts).next_multiple_of(tile).clamp(1, most);
    }
    let all = (PART / job.matrix.row_bytes().max(1)).next_multiple_of(4).max(4);
    (all / F::TOGETHER).clamp(1, outputs.max(1))
}

/// Products of all rows with outputs `range`, `[rows, outputs]`.
unsafe fn products(isa: Isa, Job { x, matrix }: &Job<'_>, range: Range<usize>, to: *mut f32, numbers: &mut Vec<f32>) {
    match (x.rounded(), x.are_many()) {
        #[cfg(target_arch = "x86_64")]
        (Some(rounded), _) if !matrix.format.splits() => integer::<Avx512, EightBits>(rounded, matrix, range, to),
        (Some(rounded), _) => for_isa!(isa, integer_four_bits(rounded, matrix, range, to)),
        (None, false) => for_isa!(isa, few(x, matrix, range, to, numbers)),
        (None, true) => for_isa!(isa, many(x, matrix, range, to, numbers)),
    }
}

unsafe fn integer_four_bits<L: Lanes>(x: &Rounded, matrix: &Matrix, range: Range<usize>, to: *mut f32) {
    integer::<L, FourBits>(x, matrix, range, to);
}
