//! Rows that are multiplied, as kernels read them.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::cell::RefCell;

use crate::format::Format;
#[cfg(test)]
use crate::isa::for_isa;
use crate::isa::Isa;
use crate::lanes::BLOCK;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{avx512::transposed, Avx512, Compiled, Lanes};
use crate::pool::Pool;
use crate::product::panel;
#[cfg(test)]
use crate::product::rounded::greatest_whole;
use crate::product::rounded::{Precision, Rounded};
#[cfg(target_arch = "x86_64")]
use crate::product::tiled::Tiled;
use crate::shared::Shared;

/// Up to so many rows a matrix is turned into floats in registers.
const FEW: usize = 8;

/// Up to so many rounded rows a matrix is read from memory as it is: tiles are faster with more, where there are such.
#[cfg(target_arch = "x86_64")]
fn few_rounded(isa: Isa) -> usize {
    match isa {
        Isa::Amx => 4,
        Isa::Avx512 => 8,
        _ => usize::MAX,
    }
}

/// The numbers of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    /// 32 bit floats.
    #[default]
    Floats,
    /// 8 or 16 bits of a few neighbors.
    Rounded,
    /// 16 bits, in the order of tiles, for many rows.
    #[cfg(target_arch = "x86_64")]
    Tiled,
}

impl Form {
    /// That of so many rows, which may be rounded.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    fn of_rounded(isa: Isa, rows: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if rows > few_rounded(isa) {
            return Self::Tiled;
        }
        Self::Rounded
    }
}

/// Rows of 32 bit floats in whole blocks, in the order in which a format's blocks have their numbers. A few rows lie
/// block by block, so that those of all rows are neighbors, and formats with biases have the sums of their groups. Many
/// lie in panels, in which the numbers of one place are neighbors. Rows that there are not are zeros.
#[derive(Default)]
pub struct Activations {
    values: Vec<f32>,
    sums: Vec<f32>,
    rows: usize,
    /// Rows whose blocks are neighbors.
    together: usize,
    width: usize,
    groups: usize,
    form: Form,
    rounded: Rounded,
    #[cfg(target_arch = "x86_64")]
    tiled: Tiled,
}

impl Activations {
    /// Takes rows for matrices of this format and kernels of this instruction set. `row` writes one into the slice that it
    /// is given.
    pub fn set(
        &mut self,
        (isa, precision): (Isa, Precision),
        format: &Format,
        inputs: usize,
        rows: usize,
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        self.width = inputs.next_multiple_of(BLOCK);
        self.rows = rows;
        self.together = if rows > FEW { 1 } else { rows.next_power_of_two() };
        self.groups = if format.has_biases() { inputs / format.group } else { 0 };
        self.form = match precision.rounds(isa, format, inputs) {
            true => Form::of_rounded(isa, rows),
            false => Form::Floats,
        };
        match self.form {
            Form::Floats if rows > FEW => self.set_panels(isa, format, inputs, row),
            Form::Floats => self.set_floats(format, inputs, row),
            Form::Rounded => self.set_rounded(isa, format, inputs, row),
            #[cfg(target_arch = "x86_64")]
            Form::Tiled => self.tiled.set(format, inputs, rows, row),
        }
    }

    fn set_floats(&mut self, format: &Format, inputs: usize, row: impl Fn(usize, &mut [f32]) + Sync) {
        let rows = self.rows;
        let (width, groups, together) = (self.width, self.groups, self.together);
        let all = rows.next_multiple_of(together);
        self.values.resize((all * width).max(self.values.len()), 0.0);
        self.sums.resize((rows * groups).max(self.sums.len()), 0.0);
        let (values, sums) = (Shared(self.values.as_mut_ptr()), Shared(self.sums.as_mut_ptr()));
        let one = |index: usize| {
            ROW.with_borrow_mut(|numbers| {
                numbers.clear();
                numbers.resize(width, 0.0);
                if index < rows {
                    row(index, &mut numbers[..inputs]);
                    for (group, part) in numbers.chunks_exact(format.group.max(1)).take(groups).enumerate() {
                        // SAFETY: each row is written by one thread, and there is room for all.
                        unsafe { sums.at(index * groups + group).write(total(part)) };
                    }
                }
                if format.splits() {
                    numbers.chunks_exact_mut(BLOCK).for_each(split);
                }
                for (block, part) in numbers.chunks_exact(BLOCK).enumerate() {
                    let to = index / together * together * width + (block * together + index % together) * BLOCK;
                    // SAFETY: as above.
                    unsafe { values.at(to).copy_from_nonoverlapping(part.as_ptr(), BLOCK) };
                }
            });
        };
        match rows {
            0..=4 => (0..all).for_each(one),
            _ => Pool::get().run(all, &one),
        }
    }

    fn set_panels(&mut self, isa: Isa, format: &Format, inputs: usize, row: impl Fn(usize, &mut [f32]) + Sync) {
        let (rows, width, lanes) = (self.rows, self.width, panel::rows(isa));
        let (panels, size) = (rows.div_ceil(lanes), lanes * width);
        self.values.resize((panels * size).max(self.values.len()), 0.0);
        let values = Shared(self.values.as_mut_ptr());
        Pool::get().run(panels, &|panel| {
            ROW.with_borrow_mut(|numbers| {
                numbers.resize(size.max(numbers.len()), 0.0);
                for (lane, to) in numbers.chunks_exact_mut(width).take(lanes).enumerate() {
                    match panel * lanes + lane {
                        index if index < rows => {
                            row(index, &mut to[..inputs]);
                            to[inputs..].fill(0.0);
                        }
                        _ => to.fill(0.0),
                    }
                    if format.splits() {
                        to.chunks_exact_mut(BLOCK).for_each(split);
                    }
                }
                // SAFETY: each panel is written by one thread, there is room for all, and the instruction set is one of
                // this processor.
                unsafe { turn(isa, &numbers[..size], width, values.slice(panel * size, size)) };
            });
        });
    }

    fn set_rounded(&mut self, isa: Isa, format: &Format, inputs: usize, row: impl Fn(usize, &mut [f32]) + Sync) {
        let rows = self.rows;
        self.rounded.clear(isa, format, inputs, rows);
        let places = self.rounded.rows_mut();
        let one = |index: usize| {
            ROW.with_borrow_mut(|numbers| {
                numbers.resize(inputs, 0.0);
                row(index, numbers);
                // SAFETY: each row is written by one thread, and there is room for all.
                unsafe { places.round(isa, index, numbers) };
            });
        };
        match rows {
            0..=4 => (0..rows).for_each(one),
            _ => Pool::get().run(rows, &one),
        }
    }

    /// The rows in 8 or 16 bits of a few neighbors, if they are multiplied so.
    pub fn rounded(&self) -> Option<&Rounded> {
        (self.form == Form::Rounded).then_some(&self.rounded)
    }

    /// The rows in 16 bits, if they are many and multiplied so.
    #[cfg(target_arch = "x86_64")]
    pub fn tiled(&self) -> Option<&Tiled> {
        (self.form == Form::Tiled).then_some(&self.tiled)
    }

    /// How many neighbors share a step, and how many steps their greatest number has, if the rows are rounded.
    #[cfg(test)]
    pub fn rounding(&self, isa: Isa, format: &Format) -> Option<(usize, f32)> {
        fn greatest<L: crate::lanes::Lanes>() -> f32 {
            greatest_whole(L::HALVES)
        }
        match self.form {
            Form::Floats => None,
            Form::Rounded => Some((if format.splits() { 8 } else { 4 }, for_isa!(isa, greatest()))),
            #[cfg(target_arch = "x86_64")]
            Form::Tiled => Some((format.group, greatest_whole(2))),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True if there are too many for registers, and they are multiplied as floats.
    pub fn are_many(&self) -> bool {
        self.rows > FEW && self.form == Form::Floats
    }

    /// Numbers of a row with what fills the last block.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows have their blocks side by side: all of a few, or one of many.
    pub fn together(&self) -> usize {
        self.together
    }

    /// The blocks of a few rows.
    pub fn blocks(&self) -> *const f32 {
        self.values.as_ptr()
    }

    /// The sums of a row's groups; those of the last row for one that there is not.
    #[inline(always)]
    pub fn sums(&self, row: usize) -> &[f32] {
        &self.sums[row.min(self.rows - 1) * self.groups..][..self.groups]
    }

    /// Many rows in panels of as many as the instruction set multiplies at once, `[panels, width, rows]`.
    pub fn panels(&self) -> &[f32] {
        &self.values
    }
}

thread_local! {
    static ROW: RefCell<Vec<f32>> = RefCell::default();
}

/// Places of a row that are put into a panel at once, so that what is written stays in the nearest cache; a block has a
/// whole number of them.
const NEAR: usize = 16;

/// Puts the numbers of rows `[rows, width]` that stand at one place side by side, `[width, rows]`.
///
/// # Safety
///
/// The processor has the instruction set.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
unsafe fn turn(isa: Isa, rows: &[f32], width: usize, to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if isa >= Isa::Avx512 {
        return Avx512::call(Turned { rows, width, to });
    }
    let lanes = rows.len() / width;
    for first in (0..width).step_by(NEAR) {
        for (lane, row) in rows.chunks_exact(width).enumerate() {
            for place in first..first + NEAR {
                to[place * lanes + lane] = row[place];
            }
        }
    }
}

/// The same by registers.
#[cfg(target_arch = "x86_64")]
struct Turned<'a> {
    rows: &'a [f32],
    width: usize,
    to: &'a mut [f32],
}

#[cfg(target_arch = "x86_64")]
impl Compiled<Avx512> for Turned<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let (lanes, to) = (self.rows.len() / self.width, self.to.as_mut_ptr());
        for first in (0..self.width).step_by(NEAR) {
            for lane in (0..lanes).step_by(NEAR) {
                let from = self.rows.as_ptr().add(lane * self.width + first);
                let mut numbers = [_mm512_setzero_ps(); NEAR];
                for row in 0..NEAR {
                    numbers[row] = _mm512_loadu_ps(from.add(row * self.width));
                }
                let turned = transposed(numbers);
                for place in 0..NEAR {
                    _mm512_storeu_ps(to.add((first + place) * lanes + lane), turned[place]);
                }
            }
        }
    }
}

/// The sum of numbers, in eight sums side by side.
fn total(numbers: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    for part in numbers.chunks_exact(8) {
        for (sum, number) in sums.iter_mut().zip(part) {
            *sum += number;
        }
    }
    sums.iter().sum()
}

/// Puts the numbers of even places first.
fn split(block: &mut [f32]) {
    let mut split = [0.0; BLOCK];
    for (place, pair) in block.chunks_exact(2).enumerate() {
        (split[place], split[place + BLOCK / 2]) = (pair[0], pair[1]);
    }
    block.copy_from_slice(&split);
}
