//! Rows that are rounded to 16 bits of the greatest number of each group. What is lost is less than what a sum of so many
//! products loses in 32 bits, and a hundredth of what rows of 8 bits lose.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::OnceLock;

use crate::format::{Coding, Format};
use crate::isa::{for_isa, Isa};
use crate::lanes::{Compiled, Lanes};
use crate::shared::Shared;

/// The greatest whole number of a rounded row: both halves of it fit into 8 bits.
pub const GREATEST: f32 = 32_512.0;

/// How rows are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As 32 bit floats.
    Floats,
    /// Rounded to 16 bits, where there are instructions for the format of the matrix.
    Rounded,
}

thread_local! {
    static WANTED: Cell<Option<Precision>> = const { Cell::new(None) };
}

impl Precision {
    /// That of the operations that this thread describes: [`Precision::Rounded`], if neither [`Precision::want`] nor
    /// `PONDER_ACTIVATIONS=32` asks for floats.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Precision> = OnceLock::new();
        WANTED.get().unwrap_or_else(|| {
            *CHOSEN.get_or_init(|| match std::env::var("PONDER_ACTIVATIONS").as_deref() {
                Ok("32") => Self::Floats,
                _ => Self::Rounded,
            })
        })
    }

    /// Chooses for this thread.
    pub fn want(self) {
        WANTED.set(Some(self));
    }

    /// True if rows of so many numbers are rounded for matrices of this format.
    pub fn rounds(self, isa: Isa, format: &Format, inputs: usize) -> bool {
        let fits = format.coding == Coding::Affine(4) && inputs.is_multiple_of(64);
        fits && isa > Isa::Plain && self == Self::Rounded
    }
}

/// Rows in chunks as they are multiplied: a chunk has the higher halves of the numbers of even places, those of odd
/// places, then the lower halves. A last chunk that is not whole has zeros.
#[derive(Default)]
pub struct Rounded {
    halves: Vec<i8>,
    steps: Vec<f32>,
    sums: Vec<f32>,
    rows: usize,
    /// Elements of a row in each.
    widths: [usize; 3],
    group: usize,
    numbers: usize,
}

/// A row.
#[derive(Clone, Copy)]
pub struct Row {
    /// The halves of its numbers.
    pub halves: *const i8,
    /// The step of each lane of each chunk.
    pub steps: *const f32,
    /// The sums of its groups, as rounded.
    pub sums: *const f32,
}

impl Rounded {
    /// Makes room for rows.
    pub fn clear(&mut self, isa: Isa, format: &Format, inputs: usize, rows: usize) {
        fn lanes<L: Lanes>() -> usize {
            L::COUNT
        }
        let lanes = for_isa!(isa, lanes());
        self.numbers = 8 * lanes;
        let (chunks, groups) = (inputs.div_ceil(self.numbers), inputs / format.group);
        (self.rows, self.group) = (rows, format.group);
        self.widths = [
            chunks * 2 * self.numbers,
            chunks * lanes,
            groups.next_multiple_of(lanes),
        ];
        let [halves, steps, sums] = self.widths;
        self.halves.clear();
        self.halves.resize(rows * halves, 0);
        self.steps.clear();
        self.steps.resize(rows * steps, 0.0);
        self.sums.clear();
        self.sums.resize(rows * sums, 0.0);
    }

    /// The memory of the rows, to be written by [`RowsMut::round`].
    pub fn rows_mut(&mut self) -> RowsMut {
        RowsMut {
            halves: Shared(self.halves.as_mut_ptr()),
            steps: Shared(self.steps.as_mut_ptr()),
            sums: Shared(self.sums.as_mut_ptr()),
            widths: self.widths,
            group: self.group,
            numbers: self.numbers,
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One of the rows.
    pub fn row(&self, row: usize) -> Row {
        let [halves, steps, sums] = self.widths;
        Row {
            halves: self.halves[row * halves..].as_ptr(),
            steps: self.steps[row * steps..].as_ptr(),
            sums: self.sums[row * sums..].as_ptr(),
        }
    }
}

/// Memory for rounded rows.
#[derive(Clone, Copy)]
pub struct RowsMut {
    halves: Shared<i8>,
    steps: Shared<f32>,
    sums: Shared<f32>,
    widths: [usize; 3],
    group: usize,
    numbers: usize,
}

impl RowsMut {
    /// Rounds a row.
    ///
    /// # Safety
    ///
    /// There is room for it, no other thread writes it, and the processor has the instruction set.
    pub unsafe fn round(self, isa: Isa, row: usize, numbers: &[f32]) {
        let [halves, steps, sums] = self.widths;
        let rounding = Rounding {
            halves: self.halves.slice(row * halves, halves),
            steps: self.steps.slice(row * steps, steps),
            sums: self.sums.slice(row * sums, sums),
            group: self.group,
            numbers: self.numbers,
            row: numbers,
        };
        unsafe fn round<L: Lanes>(rounding: Rounding<'_>) {
            L::call(rounding);
        }
        for_isa!(isa, round(rounding));
    }
}

struct Rounding<'a> {
    halves: &'a mut [i8],
    steps: &'a mut [f32],
    sums: &'a mut [f32],
    group: usize,
    /// Numbers of a chunk.
    numbers: usize,
    row: &'a [f32],
}

impl<L: Lanes> Compiled<L> for Rounding<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        // Adding it leaves the nearest whole number in the lowest bits.
        const NEAREST: f32 = 12_582_912.0;
        let of_lane = self.numbers / L::COUNT;
        let lanes = self.group / of_lane;
        let mut wholes = [0i32; 128];
        for (index, part) in self.row.chunks_exact(self.group).enumerate() {
            let mut greatest = [0.0f32; 16];
            for some in part.chunks_exact(16) {
                for (greatest, number) in greatest.iter_mut().zip(some) {
                    let number = number.abs();
                    *greatest = if number > *greatest { number } else { *greatest };
                }
            }
            let greatest = greatest.into_iter().fold(0.0, f32::max);
            // Of numbers whose inverse is infinite nothing would be left.
            let (step, inverse) = match greatest > f32::MIN_POSITIVE {
                true => (greatest / GREATEST, GREATEST / greatest),
                false => (0.0, 0.0),
            };
            let wholes = &mut wholes[..self.group];
            let mut sums = [0i32; 16];
            for (wholes, some) in wholes.chunks_exact_mut(16).zip(part.chunks_exact(16)) {
                for ((whole, number), sum) in wholes.iter_mut().zip(some).zip(&mut sums) {
                    *whole = (number * inverse + NEAREST).to_bits() as i32 - NEAREST.to_bits() as i32;
                    *sum += *whole;
                }
            }
            self.sums[index] = sums.into_iter().sum::<i32>() as f32 * step;
            self.steps[index * lanes..][..lanes].fill(step);
            // A group lies within a chunk, or is some whole ones.
            for (part, wholes) in wholes.chunks(self.numbers).enumerate() {
                let place = index * self.group + part * self.numbers;
                let (start, at) = (place / self.numbers * 2 * self.numbers, place % self.numbers);
                let (high, low) = self.halves[start..start + 2 * self.numbers].split_at_mut(self.numbers);
                let (even, odd) = (at / 2, self.numbers / 2 + at / 2);
                for (pair, two) in wholes.chunks_exact(2).enumerate() {
                    (high[even + pair], low[even + pair]) = halves(two[0]);
                    (high[odd + pair], low[odd + pair]) = halves(two[1]);
                }
            }
        }
    }
}

/// The higher and the lower half, of which both have a sign.
#[inline(always)]
fn halves(whole: i32) -> (i8, i8) {
    let high = (whole + 128) >> 8;
    (high as i8, (whole - (high << 8)) as i8)
}
