//! Rows that are rounded to 8 or 16 bits of the greatest number of each few neighbors: of as many as a lane multiplies, so
//! that their step costs nothing. With eight neighbors less is lost than with the blocks of 32 that llama.cpp has.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::OnceLock;

use crate::format::{Coding, Format};
use crate::isa::{for_isa, Isa};
use crate::lanes::{Compiled, Lanes};
use crate::shared::Shared;

/// The greatest whole number of a row that is rounded to so many halves of 16 bits. Both of two fit into 8 bits.
pub const fn greatest_whole(halves: usize) -> f32 {
    if halves == 1 {
        127.0
    } else {
        32_512.0
    }
}

/// Lanes at most.
const LANES: usize = 16;

/// How rows are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As 32 bit floats.
    Floats,
    /// Rounded to 8 or 16 bits, where there are instructions for the format of the matrix.
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

    /// Bits of the numbers of rows that are rounded, or 32.
    pub fn bits(self, isa: Isa) -> u8 {
        fn halves<L: Lanes>() -> u8 {
            L::HALVES as u8
        }
        match self {
            Self::Rounded if isa > Isa::Plain => 8 * for_isa!(isa, halves()),
            _ => 32,
        }
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

/// Rows in chunks as they are multiplied: a chunk has the higher halves of its numbers, then the lower ones, if there are
/// such; for matrices of 4 bits the numbers of even places come first. A last chunk that is not whole has zeros.
#[derive(Default)]
pub struct Rounded {
    numbers: Vec<i8>,
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
    halves: usize,
    numbers: usize,
    group: usize,
    splits: bool,
}

/// A row.
#[derive(Clone, Copy)]
pub struct Row {
    /// The halves of its numbers.
    pub numbers: *const i8,
    /// The step of each lane of each chunk.
    pub steps: *const f32,
    /// The sums of its groups, as rounded.
    pub sums: *const f32,
}

impl Rounded {
    /// Makes room for rows.
    pub fn clear(&mut self, isa: Isa, format: &Format, inputs: usize, rows: usize) {
        fn sizes<L: Lanes>() -> [usize; 2] {
            [L::COUNT, L::HALVES]
        }
        let [lanes, halves] = for_isa!(isa, sizes());
        let splits = format.splits();
        let numbers = if splits { 8 * lanes } else { 4 * lanes };
        let group = format.group;
        let chunk = Chunk {
            lanes,
            halves,
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
        self.widths = [
            chunks * halves * numbers,
            chunks * lanes,
            groups.next_multiple_of(lanes),
        ];
        let [numbers, steps, sums] = self.widths;
        self.numbers.clear();
        self.numbers.resize(rows * numbers, 0);
        self.steps.clear();
        self.steps.resize(rows * steps, 0.0);
        self.sums.clear();
        self.sums.resize(rows * sums, 0.0);
    }

    /// The memory of the rows, to be written by [`RowsMut::round`].
    pub fn rows_mut(&mut self) -> RowsMut {
        RowsMut {
            numbers: Shared(self.numbers.as_mut_ptr()),
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
        let [numbers, steps, sums] = self.widths;
        Row {
            numbers: self.numbers[row * numbers..].as_ptr(),
            steps: self.steps[row * steps..].as_ptr(),
            sums: self.sums[row * sums..].as_ptr(),
        }
    }
}

/// Memory for rounded rows.
#[derive(Clone, Copy)]
pub struct RowsMut {
    numbers: Shared<i8>,
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
    pub unsafe fn round(self, isa: Isa, row: usize, from: &[f32]) {
        let [numbers, steps, sums] = self.widths;
        let rounding = Rounding {
            numbers: self.numbers.slice(row * numbers, numbers),
            steps: self.steps.slice(row * steps, steps),
            sums: self.sums.slice(row * sums, sums),
            chunk: self.chunk,
            row: from,
        };
        unsafe fn round<L: Lanes>(rounding: Rounding<'_>) {
            L::call(rounding);
        }
        for_isa!(isa, round(rounding));
    }
}

struct Rounding<'a> {
    numbers: &'a mut [i8],
    steps: &'a mut [f32],
    sums: &'a mut [f32],
    chunk: Chunk,
    row: &'a [f32],
}

impl<L: Lanes> Compiled<L> for Rounding<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        match self.chunk.splits {
            true => self.round::<L, 8>(),
            false => self.round::<L, 4>(),
        }
    }
}

impl Rounding<'_> {
    /// Rounds a row of which a lane has `N` neighbors.
    #[inline(always)]
    fn round<L: Lanes, const N: usize>(self) {
        // Adding it leaves the nearest whole number in the lowest bits.
        const NEAREST: f32 = 12_582_912.0;
        let of_chunk = N * L::COUNT;
        let of_group = self.chunk.group / N;
        for (index, part) in self.row.chunks(of_chunk).enumerate() {
            // The numbers of one place of all lanes side by side.
            let mut columns = [[0.0f32; LANES]; N];
            for (lane, numbers) in part.chunks_exact(N).enumerate() {
                for place in 0..N {
                    columns[place][lane] = numbers[place];
                }
            }
            // By their bits, of which those that are no number have the greatest.
            let mut greatest = [0u32; LANES];
            for column in &columns {
                for lane in 0..L::COUNT {
                    greatest[lane] = greatest[lane].max(column[lane].abs().to_bits());
                }
            }
            let (mut steps, mut inverses) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..L::COUNT {
                (steps[lane], inverses[lane]) = step_of(f32::from_bits(greatest[lane]), greatest_whole(L::HALVES));
            }
            // Bytes of places with even and with odd numbers, or all of them, in the order of the lanes: the higher halves,
            // and the lower ones.
            let (mut words, mut sums) = ([[0i32; LANES]; 4], [0i32; LANES]);
            for (place, column) in columns.iter().enumerate() {
                let (word, byte) = if N == 8 { (place % 2, place / 2) } else { (0, place) };
                for lane in 0..L::COUNT {
                    let near = column[lane] * inverses[lane] + NEAREST;
                    let whole = near.to_bits() as i32 - NEAREST.to_bits() as i32;
                    sums[lane] += whole;
                    if L::HALVES == 1 {
                        words[word][lane] |= (whole & 255) << (8 * byte);
                    } else {
                        // The lower half has a sign, too.
                        words[word][lane] |= (((whole + 128) >> 8) & 255) << (8 * byte);
                        words[N / 4 + word][lane] |= (whole & 255) << (8 * byte);
                    }
                }
            }
            let size = L::HALVES * of_chunk;
            let to = &mut self.numbers[index * size..][..size];
            for (word, to) in words.iter().zip(to.chunks_exact_mut(4 * L::COUNT)) {
                for (word, to) in word.iter().zip(to.chunks_exact_mut(4)) {
                    for (byte, to) in word.to_le_bytes().into_iter().zip(to) {
                        *to = byte as i8;
                    }
                }
            }
            let lanes = index * L::COUNT;
            self.steps[lanes..][..L::COUNT].copy_from_slice(&steps[..L::COUNT]);
            for lane in 0..part.len() / N {
                self.sums[(lanes + lane) / of_group] += sums[lane] as f32 * steps[lane];
            }
        }
    }
}

/// The step of numbers by the greatest of them, which becomes the whole number `whole`, and its inverse. Numbers that are
/// none or infinite become a step that is none, and of numbers whose inverse is infinite nothing would be left.
#[inline(always)]
pub fn step_of(greatest: f32, whole: f32) -> (f32, f32) {
    if !greatest.is_finite() {
        return (f32::NAN, 0.0);
    }
    match greatest > f32::MIN_POSITIVE {
        true => (greatest / whole, whole / greatest),
        false => (0.0, 0.0),
    }
}
