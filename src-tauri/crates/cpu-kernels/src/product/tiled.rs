//! Many rows that are rounded to 16 bits of the greatest number of each group, in the order in which tiles are multiplied:
//! those add up whole groups, and so many bits lose less than a sum of so many products loses in 32 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::cell::RefCell;

use crate::format::Format;
use crate::lanes::amx::{Line, SIDE};
use crate::lanes::avx512::transposed;
use crate::lanes::{Avx512, Compiled, Lanes};
use crate::pool::Pool;
use crate::product::rounded::{greatest_whole, step_of};
use crate::shared::Shared;

/// Inputs of a tile: no more than a group has.
pub fn depth(format: &Format) -> usize {
    format.group.min(Line::BYTES)
}

/// Rows in panels of 16; those that there are not are zeros. Of so many inputs as a tile has, a panel has the higher
/// halves `[inputs / 4, rows, 4]`, and then the lower ones.
#[derive(Default)]
pub struct Tiled {
    halves: Vec<Line>,
    /// The step of each row, group by group.
    steps: Vec<Line>,
    /// The sum of each row's group, as rounded.
    sums: Vec<Line>,
    rows: usize,
    inputs: usize,
    groups: usize,
}

/// Some rows.
#[derive(Clone, Copy)]
pub struct Panel {
    /// Their numbers.
    pub halves: *const u8,
    /// Their steps.
    pub steps: *const Line,
    /// Their sums.
    pub sums: *const Line,
    /// How many there are.
    pub rows: usize,
}

thread_local! {
    /// A row, and a panel's rows one after another: the higher halves of all, then the lower ones.
    static NEAR: RefCell<(Vec<f32>, Vec<Line>)> = RefCell::default();
}

impl Tiled {
    /// Takes rows for matrices of this format, on a processor with AVX-512. `row` writes one into the slice that it
    /// is given.
    pub fn set(&mut self, format: &Format, inputs: usize, rows: usize, row: impl Fn(usize, &mut [f32]) + Sync) {
        let (panels, groups) = (rows.div_ceil(SIDE), inputs / format.group);
        (self.rows, self.inputs, self.groups) = (rows, inputs, groups);
        let of_panel = self.lines();
        for (lines, of_panel) in [
            (&mut self.halves, of_panel),
            (&mut self.steps, groups),
            (&mut self.sums, groups),
        ] {
            lines.resize((panels * of_panel).max(lines.len()), Line::ZERO);
        }
        let (halves, steps, sums) = (
            Shared(self.halves.as_mut_ptr()),
            Shared(self.steps.as_mut_ptr()),
            Shared(self.sums.as_mut_ptr()),
        );
        // Rows a line farther apart than they are long do not all fall into the same places of the cache.
        let stride = inputs + Line::BYTES;
        Pool::get().run(panels, &|panel| {
            NEAR.with_borrow_mut(|(numbers, near)| {
                numbers.resize(inputs, 0.0);
                let count = SIDE.min(rows - panel * SIDE);
                if count < SIDE {
                    near.clear();
                }
                near.resize((2 * SIDE * stride / Line::BYTES).max(near.len()), Line::ZERO);
                let near = near.as_mut_ptr().cast::<u8>();
                // SAFETY: each panel is written by one thread, there is room for all, and the processor has AVX-512.
                unsafe {
                    let (steps, sums) = (steps.slice(panel * groups, groups), sums.slice(panel * groups, groups));
                    steps.fill(Line::ZERO);
                    sums.fill(Line::ZERO);
                    for lane in 0..count {
                        row(panel * SIDE + lane, numbers);
                        let rounding = Rounding {
                            row: numbers,
                            halves: [near.add(lane * stride), near.add((SIDE + lane) * stride)],
                            lane,
                            steps,
                            sums,
                        };
                        match format.group {
                            32 => Avx512::call(Rounded::<2>(rounding)),
                            64 => Avx512::call(Rounded::<4>(rounding)),
                            _ => Avx512::call(Rounded::<8>(rounding)),
                        }
                    }
                    Avx512::call(Turning {
                        near,
                        stride,
                        inputs,
                        splits: format.group < Line::BYTES,
                        to: halves.at(panel * of_panel),
                    });
                }
            });
        });
    }

    /// Lines of the halves of a panel.
    fn lines(&self) -> usize {
        2 * SIDE * self.inputs / Line::BYTES
    }

    /// The rows in panels.
    pub fn panels(&self) -> impl ExactSizeIterator<Item = Panel> + '_ {
        (0..self.rows.div_ceil(SIDE)).map(|panel| Panel {
            halves: self.halves[panel * self.lines()..].as_ptr().cast(),
            steps: self.steps[panel * self.groups..].as_ptr(),
            sums: self.sums[panel * self.groups..].as_ptr(),
            rows: SIDE.min(self.rows - panel * SIDE),
        })
    }
}

/// A row that is rounded.
struct Rounding<'a> {
    row: &'a [f32],
    /// The places of its higher and its lower halves.
    halves: [*mut u8; 2],
    lane: usize,
    steps: &'a mut [Line],
    sums: &'a mut [Line],
}

/// Rounds a row whose groups fill so many registers.
struct Rounded<'a, const REGISTERS: usize>(Rounding<'a>);

impl<const REGISTERS: usize> Compiled<Avx512> for Rounded<'_, REGISTERS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Rounding {
            row,
            halves: [high, low],
            lane,
            steps,
            sums,
        } = self.0;
        let group = REGISTERS * SIDE;
        for index in 0..row.len() / group {
            let mut numbers = [_mm512_setzero_ps(); REGISTERS];
            // By their bits, of which those that are no number have the greatest.
            let mut greatest = _mm512_setzero_si512();
            for place in 0..REGISTERS {
                numbers[place] = _mm512_loadu_ps(row.as_ptr().add(index * group + place * SIDE));
                greatest = _mm512_max_epu32(_mm512_castps_si512(_mm512_abs_ps(numbers[place])), greatest);
            }
            let (step, inverse) = step_of(f32::from_bits(_mm512_reduce_max_epu32(greatest)), greatest_whole(2));
            let mut sum = _mm512_setzero_si512();
            for place in 0..REGISTERS {
                let whole = _mm512_cvtps_epi32(_mm512_mul_ps(numbers[place], _mm512_set1_ps(inverse)));
                sum = _mm512_add_epi32(sum, whole);
                // The lower half is what is left of the number by its last byte with a sign.
                let upper = _mm512_srai_epi32::<8>(_mm512_add_epi32(whole, _mm512_set1_epi32(128)));
                let at = index * group + place * SIDE;
                _mm_storeu_si128(high.add(at).cast(), _mm512_cvtepi32_epi8(upper));
                _mm_storeu_si128(low.add(at).cast(), _mm512_cvtepi32_epi8(whole));
            }
            steps[index].0[lane] = step;
            sums[index].0[lane] = _mm512_reduce_add_epi32(sum) as f32 * step;
        }
    }
}

/// Puts four inputs of each row of a panel side by side.
struct Turning {
    near: *const u8,
    stride: usize,
    inputs: usize,
    /// True if a tile has half as many inputs as a line has bytes.
    splits: bool,
    to: *mut Line,
}

impl Compiled<Avx512> for Turning {
    #[inline(always)]
    unsafe fn run(self) {
        // Lines from one half to the other, and from eight lines of a half to the next eight.
        let (of_half, eight) = if self.splits { (8, 16) } else { (16, 8) };
        for first in (0..self.inputs).step_by(Line::BYTES) {
            for half in 0..2 {
                let mut rows = [_mm512_setzero_ps(); SIDE];
                for row in 0..SIDE {
                    rows[row] = _mm512_loadu_ps(self.near.add((half * SIDE + row) * self.stride + first).cast());
                }
                let rows = transposed(rows);
                for quad in 0..SIDE {
                    let line = first / 2 + half * of_half + quad / 8 * eight + quad % 8;
                    _mm512_store_ps(self.to.add(line).cast(), rows[quad]);
                }
            }
        }
    }
}
