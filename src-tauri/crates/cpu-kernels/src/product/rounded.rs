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
const GREATEST: f32 = 32_512.0;

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
        let multiplied = match format.coding {
            Coding::Affine(4) => isa > Isa::Plain,
            #[cfg(target_arch = "x86_64")]
            Coding::Affine(8) => isa >= Isa::Avx512,
            _ => false,
        };
        multiplied && inputs.is_multiple_of(64) && self == Self::Rounded
    }
}

/// Rows in chunks as they are multiplied: a chunk has the higher halves of its numbers, then the lower halves; for
/// matrices of 4 bits the numbers of even places come first. A last chunk that is not whole has zeros.
#[derive(Default)]
pub struct Rounded {
    halves: Vec<i8>,
    steps: Vec<f32>,
    sums: Vec<f32>,
    rows: usize,
    /// Elements of a row in each.
    widths: [usize; 3],
    chunk: Chunk,
    /// The places of the scales of each lane among those of a register, chunk by chunk.
    places: Vec<i32>,
}

/// The numbers that are multiplied at once.
#[derive(Clone, Copy, Default, PartialEq)]
struct Chunk {
    lanes: usize,
    numbers: usize,
    group: usize,
    splits: bool,
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
        let splits = format.splits();
        let numbers = if splits { 8 * lanes } else { 4 * lanes };
        let group = format.group;
        let chunk = Chunk {
            lanes,
            numbers,
            group,
            splits,
        };
        if chunk != self.chunk {
            let of_lane = numbers / lanes;
            let all = lanes * group / of_lane;
            self.places = (0..all).map(|lane| (lane * of_lane / group) as i32).collect();
            self.chunk = chunk;
        }
        let (chunks, groups) = (inputs.div_ceil(numbers), inputs / group);
        self.rows = rows;
        self.widths = [chunks * 2 * numbers, chunks * lanes, groups.next_multiple_of(lanes)];
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
            chunk: self.chunk,
        }
    }

    /// The place of each lane's scale among those of a register, chunk by chunk of those that share the register.
    pub fn places(&self) -> *const i32 {
        self.places.as_ptr()
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
    chunk: Chunk,
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
            chunk: self.chunk,
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
    chunk: Chunk,
    row: &'a [f32],
}

impl<L: Lanes> Compiled<L> for Rounding<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        // Adding it leaves the nearest whole number in the lowest bits.
        const NEAREST: f32 = 12_582_912.0;
        let Chunk {
            lanes,
            numbers,
            group,
            splits,
        } = self.chunk;
        let of_group = group * lanes / numbers;
        let (mut highs, mut lows) = ([0i8; 128], [0i8; 128]);
        for (index, part) in self.row.chunks_exact(group).enumerate() {
            // By their bits, of which those that are no number have the greatest.
            let mut greatest = [0u32; 16];
            for some in part.chunks_exact(16) {
                for (greatest, number) in greatest.iter_mut().zip(some) {
                    *greatest = (*greatest).max(number.abs().to_bits());
                }
            }
            for half in [8, 4, 2, 1] {
                for place in 0..half {
                    greatest[place] = greatest[place].max(greatest[half + place]);
                }
            }
            let (step, inverse) = step_of(f32::from_bits(greatest[0]));
            let mut sums = [0i32; 16];
            for (place, some) in part.chunks_exact(16).enumerate() {
                for (lane, number) in some.iter().enumerate() {
                    let whole = (number * inverse + NEAREST).to_bits() as i32 - NEAREST.to_bits() as i32;
                    sums[lane] += whole;
                    // The lower half has a sign, too.
                    highs[place * 16 + lane] = ((whole + 128) >> 8) as i8;
                    lows[place * 16 + lane] = whole as i8;
                }
            }
            self.sums[index] = sums.into_iter().sum::<i32>() as f32 * step;
            self.steps[index * of_group..][..of_group].fill(step);
            // A group lies within a chunk, or is some whole ones.
            for start in (0..group).step_by(numbers) {
                let (place, count) = (index * group + start, numbers.min(group));
                let (chunk, at) = (place / numbers * 2 * numbers, place % numbers);
                let (high, low) = self.halves[chunk..chunk + 2 * numbers].split_at_mut(numbers);
                for (from, to) in [(&highs, high), (&lows, low)] {
                    let from = &from[start..start + count];
                    if splits {
                        let (even, odd) = to.split_at_mut(numbers / 2);
                        split(from, &mut even[at / 2..], &mut odd[at / 2..]);
                    } else {
                        to[at..at + count].copy_from_slice(from);
                    }
                }
            }
        }
    }
}

/// The step of a group by its greatest number, and its inverse. Numbers that are none or infinite become a step that is
/// none, and of numbers whose inverse is infinite nothing would be left.
#[inline(always)]
pub fn step_of(greatest: f32) -> (f32, f32) {
    if !greatest.is_finite() {
        return (f32::NAN, 0.0);
    }
    match greatest > f32::MIN_POSITIVE {
        true => (greatest / GREATEST, GREATEST / greatest),
        false => (0.0, 0.0),
    }
}

/// Parts the numbers of even places from those of odd ones.
#[inline(always)]
fn split(from: &[i8], even: &mut [i8], odd: &mut [i8]) {
    let places = even.chunks_exact_mut(16).zip(odd.chunks_exact_mut(16));
    for (pairs, (even, odd)) in from.chunks_exact(32).zip(places) {
        for place in 0..16 {
            (even[place], odd[place]) = (pairs[2 * place], pairs[2 * place + 1]);
        }
    }
}
