//! Products of a few rows with matrices of 4 and 8 bits by instructions for integers.
//!
//! Rows are [rounded](super::rounded) to one or two times 8 bits, so that what is stored need not become floats.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use crate::format::Number;
#[cfg(target_arch = "x86_64")]
use crate::lanes::Avx512;
use crate::lanes::{Compiled, Lanes};
use crate::product::code::{Bf16, Scale, F16, F32};
use crate::product::rounded::{Rounded, Row};
use crate::product::Matrix;

/// Bytes after those that are multiplied, which the processor is asked to bring near.
const AHEAD: usize = 8192;

/// Rows that are multiplied together at most.
const TOGETHER: usize = 8;

/// Bytes of a row that is long.
const LONG: usize = 512;

/// Stored integers that are multiplied as they are.
pub trait Integers<L: Lanes> {
    /// Numbers of a byte.
    const OF_BYTE: usize;

    /// The sums of each lane's products with the numbers of a chunk.
    ///
    /// # Safety
    ///
    /// There are so many halves of numbers, and the processor has the instruction set.
    unsafe fn products(stored: L::Bytes, numbers: *const i8) -> L;
}

/// Of 4 bits.
pub struct FourBits;

impl<L: Lanes> Integers<L> for FourBits {
    const OF_BYTE: usize = 2;

    #[inline(always)]
    unsafe fn products(stored: L::Bytes, numbers: *const i8) -> L {
        L::nibble_products(stored, numbers)
    }
}

/// Of 8 bits.
#[cfg(target_arch = "x86_64")]
pub struct EightBits;

#[cfg(target_arch = "x86_64")]
impl Integers<Avx512> for EightBits {
    const OF_BYTE: usize = 1;

    #[inline(always)]
    unsafe fn products(stored: <Avx512 as Lanes>::Bytes, numbers: *const i8) -> Avx512 {
        Avx512::byte_products(stored, numbers)
    }
}

/// Products of all rows with outputs `range`, `[rows, outputs]`.
///
/// # Safety
///
/// The matrix has these outputs, `to` is good for all products, and the processor has the instruction set.
pub unsafe fn integer<L: Lanes, I: Integers<L>>(x: &Rounded, matrix: &Matrix, range: Range<usize>, to: *mut f32) {
    // The part of the matrix stays in the cache for the next rows.
    for first in (0..x.rows()).step_by(TOGETHER) {
        let rows = first..x.rows().min(first + TOGETHER);
        let (to, range) = (to.add(first * range.len()), range.clone());
        let task = Task {
            x,
            rows,
            matrix,
            range,
            to,
        };
        match matrix.format.scales {
            Number::F16 => some::<L, I, F16>(task),
            Number::Bf16 => some::<L, I, Bf16>(task),
            _ => some::<L, I, F32>(task),
        }
    }
}

/// Products of at most [`TOGETHER`] rows with scales of a type.
unsafe fn some<L: Lanes, I: Integers<L>, S: Scale>(task: Task<'_>) {
    match task.rows.len() {
        // One long row of memory after another is read faster than several at once.
        1 if task.matrix.row_bytes() >= LONG => L::call(Products::<I, S, 1, 1>(task, PhantomData)),
        1 => L::call(Products::<I, S, 4, 1>(task, PhantomData)),
        2 => L::call(Products::<I, S, 4, 2>(task, PhantomData)),
        3 | 4 => L::call(Products::<I, S, 2, 4>(task, PhantomData)),
        _ => L::call(Products::<I, S, 1, 8>(task, PhantomData)),
    }
}

/// Some rows and some outputs.
struct Task<'a> {
    x: &'a Rounded,
    rows: Range<usize>,
    matrix: &'a Matrix,
    range: Range<usize>,
    to: *mut f32,
}

/// Products of up to `M` rows with `R` outputs at a time. Where there are fewer, the last one is taken again.
struct Products<'a, I, S, const R: usize, const M: usize>(Task<'a>, PhantomData<(I, S)>);

impl<L: Lanes, I: Integers<L>, S: Scale, const R: usize, const M: usize> Compiled<L> for Products<'_, I, S, R, M> {
    #[inline(always)]
    unsafe fn run(self) {
        let Task {
            x,
            rows: chosen,
            matrix,
            range,
            to,
        } = self.0;
        let count = chosen.len();
        let (groups, bytes) = (matrix.groups(), 4 * L::COUNT);
        let numbers = bytes * I::OF_BYTE;
        let (whole, rest) = (matrix.inputs / numbers, matrix.inputs % numbers / I::OF_BYTE);
        // Chunks whose scales are in one register.
        let of_register = L::COUNT * matrix.format.group / numbers;
        let rows: [_; M] = std::array::from_fn(|row| x.row((chosen.start + row).min(chosen.end - 1)));
        let places = x.places();
        for output in (0..range.len()).step_by(R) {
            let outputs: [usize; R] = std::array::from_fn(|index| (output + index).min(range.len() - 1));
            let weights = outputs.map(|output| matrix.row(range.start + output));
            let scales = outputs.map(|output| matrix.scales(range.start + output));
            let biases = outputs.map(|output| matrix.biases(range.start + output));
            let mut sums = [[L::zero(); M]; R];
            for (register, first) in (0..groups).step_by(L::COUNT).enumerate() {
                let present = (groups - first).min(L::COUNT);
                let mut of_groups = [L::zero(); R];
                for index in 0..R {
                    of_groups[index] = S::load::<L>(scales[index], first, present);
                    let biases = S::load::<L>(biases[index], first, present);
                    for row in 0..M {
                        sums[index][row] = biases.mul_add(L::load(rows[row].sums.add(first)), sums[index][row]);
                    }
                }
                let start = register * of_register;
                for chunk in start..whole.min(start + of_register) {
                    for index in 0..R {
                        let from = weights[index].add(chunk * bytes);
                        L::prefetch(from.wrapping_add(AHEAD));
                        let scale = of_groups[index].choose(places.add((chunk - start) * L::COUNT));
                        add_chunk::<L, I, M>(&rows, chunk, L::bytes(from), scale, &mut sums[index]);
                    }
                }
                if rest > 0 && first + L::COUNT >= groups {
                    for index in 0..R {
                        let stored = L::first_bytes(weights[index].add(whole * bytes), rest);
                        let scale = of_groups[index].choose(places.add((whole - start) * L::COUNT));
                        add_chunk::<L, I, M>(&rows, whole, stored, scale, &mut sums[index]);
                    }
                }
            }
            // Loops whose length is not known would keep the sums in memory.
            if M == 1 && R == 4 {
                let four = L::sums([sums[0][0], sums[1][0], sums[2][0], sums[3][0]]);
                for index in 0..R {
                    to.add(outputs[index]).write(four[index]);
                }
                continue;
            }
            for index in 0..R {
                for row in 0..M {
                    if row < count {
                        to.add(row * range.len() + outputs[index]).write(sums[index][row].sum());
                    }
                }
            }
        }
    }
}

/// Adds the products of the rows with a chunk of an output.
#[inline(always)]
unsafe fn add_chunk<L: Lanes, I: Integers<L>, const M: usize>(
    rows: &[Row; M],
    chunk: usize,
    stored: L::Bytes,
    scale: L,
    sums: &mut [L; M],
) {
    let start = chunk * L::HALVES * I::OF_BYTE * 4 * L::COUNT;
    for row in 0..M {
        let products = I::products(stored, rows[row].numbers.add(start));
        let steps = L::load(rows[row].steps.add(chunk * L::COUNT));
        sums[row] = products.mul(steps).mul_add(scale, sums[row]);
    }
}
