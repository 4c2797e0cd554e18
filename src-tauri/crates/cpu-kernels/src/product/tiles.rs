//! Products of many rows with matrices of 4 and 8 bits by AMX's tiles of bytes, or by AVX-512's instructions for bytes.
//!
//! Rows are [rounded](super::tiled) to 16 bits, in two halves of 8 bits, and what is stored becomes bytes in the cache.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use crate::isa::Isa;
use crate::lanes::amx::{prefetch_for_writing, Line, Tiles, SIDE};
use crate::lanes::avx512::transposed;
use crate::lanes::{Avx512, Compiled, Lanes};
use crate::pool::Pool;
use crate::product::code::Widened;
use crate::product::tiled::{depth, Panel, Tiled};
use crate::product::{Finish, Matrix, Scratch};

/// Bytes of outputs that stay in a core's cache beside rows.
const PART: usize = 512 << 10;

/// Parts for each thread at least: one that is interrupted leaves its next ones to others.
const PARTS: usize = 2;

/// Inputs of a panel that stay in the nearest cache while outputs are multiplied with it.
const NEAR: usize = 640;

/// Outputs of a part, which have so many inputs: as many tiles as may be, for they share what is read of the rows, but
/// so that all threads are done at once.
pub fn part_length(inputs: usize, outputs: usize) -> usize {
    let (threads, tiles) = (Pool::get().threads(), outputs.div_ceil(SIDE));
    let most = (PART / inputs / SIDE).min(tiles / (PARTS * threads)).max(1);
    let of_thread = |length: &usize| tiles.div_ceil(*length).div_ceil(threads) * length;
    SIDE * (1..=most).rev().min_by_key(of_thread).unwrap_or(1)
}

/// Multiplies all rows of a job with outputs `range` of the first `outputs`, and with those that belong to them.
///
/// # Safety
///
/// The matrix has these outputs, no other thread computes them, and the processor has the instruction set, which is
/// AVX-512 or more.
pub unsafe fn multiply_part<F: Finish>(
    isa: Isa,
    x: &Tiled,
    (job, matrix): (usize, &Matrix),
    outputs: usize,
    range: Range<usize>,
    finish: &F,
    scratch: &mut Scratch,
) {
    let (groups, count, depth) = (matrix.groups(), range.len(), depth(&matrix.format));
    let columns = count.div_ceil(SIDE);
    let (bytes, kept) = (columns * SIDE * matrix.inputs, columns * SIDE * SIDE);
    let factors = columns * groups * 2 * SIDE;
    let (of_one, widened) = (bytes / 4 + factors, count * groups);
    // A line's length more is there to begin with a whole line.
    let all = SIDE + F::TOGETHER * of_one + kept + 2 * widened;
    let Scratch { numbers, products } = scratch;
    numbers.resize(all.max(numbers.len()), 0.0);
    products.resize((F::TOGETHER * SIDE * count).max(products.len()), 0.0);
    let start = numbers.as_mut_ptr();
    let start = start.add(start.align_offset(Line::BYTES));
    let kept_from = start.add(F::TOGETHER * of_one);
    let (scales, biases) = (kept_from.add(kept), kept_from.add(kept + widened));
    let unpacked = |group: usize| Unpacked {
        outputs: start.add(group * of_one).cast(),
        factors: start.add(group * of_one + bytes / 4).cast(),
        depth,
        groups,
        inputs: matrix.inputs,
        count,
    };
    for group in 0..F::TOGETHER {
        let first = range.start + group * outputs;
        Avx512::call(Widened {
            matrix,
            first,
            count,
            scales,
            biases,
            biased: true,
            factor: 1.0,
        });
        let unpacking = Unpacking {
            matrix,
            first,
            widened: [scales, biases],
            to: unpacked(group),
        };
        match matrix.format.splits() {
            true => Avx512::call(Of::<4>(unpacking)),
            false => Avx512::call(Of::<8>(unpacking)),
        }
    }
    let tiles = (isa == Isa::Amx).then(|| Tiles::new(depth));
    let mut wholes = [[Line::ZERO; 2 * SIDE]; 2];
    let length = groups.div_ceil(matrix.inputs.div_ceil(NEAR));
    for (index, panel) in x.panels().enumerate() {
        let row = |row: usize| index * SIDE + row.min(panel.rows - 1);
        let places = std::array::from_fn(|index| finish.place(job, row(index), range.start));
        for group in 0..F::TOGETHER {
            for first in (0..groups).step_by(length) {
                let task = Task {
                    wholes: &mut wholes,
                    from: unpacked(group),
                    panel,
                    groups: first..groups.min(first + length),
                    kept: kept_from.cast(),
                    places: (group + 1 == F::TOGETHER).then_some(&places),
                    to: products[group * SIDE * count..].as_mut_ptr(),
                };
                match (&tiles, matrix.format.group > depth) {
                    (Some(tiles), true) => Avx512::call(Products::<2>(tiles, task)),
                    (Some(tiles), false) => Avx512::call(Products::<1>(tiles, task)),
                    (None, true) => Avx512::call(ByRegisters::<2>(task)),
                    (None, false) => Avx512::call(ByRegisters::<1>(task)),
                }
            }
        }
        // At once, so that the memory that is written comes while tiles multiply the next rows.
        for row in 0..panel.rows {
            let of = |group: usize| &products[(group % F::TOGETHER * SIDE + row) * count..][..count];
            finish.finish(job, index * SIDE + row, range.clone(), [of(0), of(1)]);
        }
    }
}

/// Outputs in tiles of 16; where there are fewer, the last one is there again.
#[derive(Clone, Copy)]
struct Unpacked {
    /// The numbers, `[outputs, depth]` for as many inputs as a tile has.
    outputs: *mut u8,
    /// The scales of 16 outputs and their biases, for each group.
    factors: *mut Line,
    depth: usize,
    groups: usize,
    inputs: usize,
    count: usize,
}

/// Turns outputs into bytes.
struct Unpacking<'a> {
    matrix: &'a Matrix,
    first: usize,
    /// Scales and biases, `[outputs, groups]`.
    widened: [*const f32; 2],
    to: Unpacked,
}

/// Numbers of so many bits.
struct Of<'a, const BITS: usize>(Unpacking<'a>);

impl<const BITS: usize> Compiled<Avx512> for Of<'_, BITS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Unpacking {
            matrix,
            first,
            widened,
            to,
        } = self.0;
        let Unpacked {
            outputs,
            factors,
            depth,
            groups,
            inputs,
            count,
        } = to;
        for tile in 0..count.div_ceil(SIDE) {
            let output = |index: usize| (tile * SIDE + index).min(count - 1);
            let rows: [_; SIDE] = std::array::from_fn(|index| matrix.row(first + output(index)));
            let ahead = SIDE * matrix.row_bytes();
            for place in (0..inputs).step_by(Line::BYTES) {
                let to = outputs.add(tile * SIDE * inputs + place * SIDE);
                for index in 0..SIDE {
                    let from = rows[index].add(place * BITS / 8);
                    // The next tile's.
                    Avx512::prefetch(from.wrapping_add(ahead));
                    let bytes = match BITS {
                        4 => nibbles(from),
                        _ => _mm512_loadu_si512(from.cast()),
                    };
                    let to = to.add(index * depth);
                    if depth == Line::BYTES {
                        _mm512_store_si512(to.cast(), bytes);
                    } else {
                        _mm256_store_si256(to.cast(), _mm512_castsi512_si256(bytes));
                        let second = to.add(SIDE * depth);
                        _mm256_store_si256(second.cast(), _mm512_extracti64x4_epi64::<1>(bytes));
                    }
                }
            }
            for (kind, from) in widened.into_iter().enumerate() {
                for some in (0..groups).step_by(SIDE) {
                    let (length, mut numbers) = ((groups - some).min(SIDE), [_mm512_setzero_ps(); SIDE]);
                    let mask = u16::MAX >> (SIDE - length);
                    for index in 0..SIDE {
                        numbers[index] = _mm512_maskz_loadu_ps(mask, from.add(output(index) * groups + some));
                    }
                    let numbers = transposed(numbers);
                    let to = factors.add((tile * groups + some) * 2 + kind);
                    for group in 0..SIDE {
                        // Loops whose length is not known would keep the registers in memory.
                        if group < length {
                            _mm512_store_ps(to.add(2 * group).cast(), numbers[group]);
                        }
                    }
                }
            }
        }
    }
}

/// Numbers of four bits as bytes, in their order.
#[inline(always)]
unsafe fn nibbles(from: *const u8) -> __m512i {
    let pairs = _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast()));
    let spread = _mm512_or_si512(pairs, _mm512_slli_epi16::<4>(pairs));
    _mm512_and_si512(spread, _mm512_set1_epi8(15))
}

/// Outputs and a panel of rows.
struct Task<'a> {
    /// The products of two groups, as tiles write them.
    wholes: &'a mut [[Line; 2 * SIDE]; 2],
    from: Unpacked,
    panel: Panel,
    /// The groups that are multiplied now.
    groups: Range<usize>,
    /// The sums of groups that were, until all are.
    kept: *mut Line,
    to: *mut f32,
    /// The memory that outputs of each row will be written to, if that is soon.
    places: Option<&'a [*const f32; SIDE]>,
}

/// The products by AMX, where groups have `STEPS` tiles of inputs.
struct Products<'a, const STEPS: usize>(&'a Tiles, Task<'a>);

impl<const STEPS: usize> Compiled<Avx512> for Products<'_, STEPS> {
    #[inline(always)]
    unsafe fn run(self) {
        let tiles = self.0;
        let Task {
            wholes,
            from,
            panel,
            groups,
            kept,
            to,
            places,
        } = self.1;
        let (of_group, rows) = (STEPS * SIDE * from.depth, panel.halves);
        let [first, second] = wholes.each_mut().map(|wholes| wholes.as_mut_ptr());
        for tile in 0..from.count.div_ceil(SIDE) {
            let outputs = from.outputs.add(tile * SIDE * from.inputs);
            let factors = from.factors.add(tile * from.groups * 2);
            let kept = kept.add(tile * SIDE);
            let mut sums = [_mm512_setzero_ps(); SIDE];
            if let (Some(places), true) = (places, groups.end == from.groups) {
                for row in 0..SIDE {
                    prefetch_for_writing(places[row].wrapping_add(tile * SIDE));
                }
            }
            if groups.start > 0 {
                for output in 0..SIDE {
                    sums[output] = _mm512_load_ps(kept.add(output).cast());
                }
            }
            // A group is multiplied while the one before it is stored and the one before that is added: each takes a
            // while until the next can go on with it. Of an odd number of groups the first one is on its own.
            let (start, end) = (groups.start, groups.end);
            let mut group = start + (end - start) % 2;
            if group > start {
                tiles.multiply::<true, STEPS>(outputs.add(start * of_group), rows.add(start * 2 * of_group));
            }
            while group < end {
                tiles.multiply::<false, STEPS>(outputs.add(group * of_group), rows.add(group * 2 * of_group));
                if group > start {
                    tiles.store::<true>(second);
                }
                if group > start + 1 {
                    add(first, &panel, factors, group - 2, &mut sums);
                }
                tiles.multiply::<true, STEPS>(
                    outputs.add((group + 1) * of_group),
                    rows.add((group + 1) * 2 * of_group),
                );
                tiles.store::<false>(first);
                if group > start {
                    add(second, &panel, factors, group - 1, &mut sums);
                }
                group += 2;
            }
            tiles.store::<true>(second);
            if end - start > 1 {
                add(first, &panel, factors, end - 2, &mut sums);
            }
            add(second, &panel, factors, end - 1, &mut sums);
            if groups.end < from.groups {
                for output in 0..SIDE {
                    _mm512_store_ps(kept.add(output).cast(), sums[output]);
                }
                continue;
            }
            write(transposed(sums), &panel, &from, tile, to);
        }
    }
}

/// Outputs whose sums are in registers at once.
const OUTPUTS: usize = 8;

/// The same by registers of AVX-512, where there are no tiles.
struct ByRegisters<'a, const STEPS: usize>(Task<'a>);

impl<const STEPS: usize> Compiled<Avx512> for ByRegisters<'_, STEPS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Task {
            from,
            panel,
            groups,
            kept,
            to,
            ..
        } = self.0;
        let half = SIDE * from.depth;
        for tile in 0..from.count.div_ceil(SIDE) {
            let kept = kept.add(tile * SIDE);
            for first in (0..SIDE).step_by(OUTPUTS) {
                let outputs = from.outputs.add(tile * SIDE * from.inputs + first * from.depth);
                let mut sums = [_mm512_setzero_ps(); OUTPUTS];
                if groups.start > 0 {
                    for output in 0..OUTPUTS {
                        sums[output] = _mm512_load_ps(kept.add(first + output).cast());
                    }
                }
                for group in groups.clone() {
                    let mut high = [_mm512_setzero_si512(); OUTPUTS];
                    let mut low = [_mm512_setzero_si512(); OUTPUTS];
                    for step in group * STEPS..(group + 1) * STEPS {
                        let (rows, outputs) = (panel.halves.add(step * 2 * half), outputs.add(step * half));
                        for quad in 0..from.depth / 4 {
                            let rows = rows.add(quad * Line::BYTES);
                            let highs = _mm512_load_si512(rows.cast());
                            let lows = _mm512_load_si512(rows.add(half).cast());
                            for output in 0..OUTPUTS {
                                let number = outputs.add(output * from.depth + quad * 4).cast::<i32>().read();
                                let number = _mm512_set1_epi32(number);
                                high[output] = _mm512_dpbusd_epi32(high[output], number, highs);
                                low[output] = _mm512_dpbusd_epi32(low[output], number, lows);
                            }
                        }
                    }
                    let steps = _mm512_load_ps(panel.steps.add(group).cast());
                    let of_rows = _mm512_load_ps(panel.sums.add(group).cast());
                    let factors = from.factors.add((tile * from.groups + group) * 2);
                    let (scales, biases) = (&*factors, &*factors.add(1));
                    for output in 0..OUTPUTS {
                        let whole = _mm512_add_epi32(_mm512_slli_epi32::<8>(high[output]), low[output]);
                        let product = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), steps);
                        let scale = _mm512_set1_ps(scales.0[first + output]);
                        let sum = _mm512_fmadd_ps(product, scale, sums[output]);
                        sums[output] = _mm512_fmadd_ps(of_rows, _mm512_set1_ps(biases.0[first + output]), sum);
                    }
                }
                for output in 0..OUTPUTS {
                    _mm512_store_ps(kept.add(first + output).cast(), sums[output]);
                }
            }
            if groups.end == from.groups {
                let mut sums = [_mm512_setzero_ps(); SIDE];
                for output in 0..SIDE {
                    sums[output] = _mm512_load_ps(kept.add(output).cast());
                }
                write(transposed(sums), &panel, &from, tile, to);
            }
        }
    }
}

/// Writes the products of a tile.
#[inline(always)]
unsafe fn write(products: [__m512; SIDE], panel: &Panel, from: &Unpacked, tile: usize, to: *mut f32) {
    let to = to.add(tile * SIDE);
    let mask = u16::MAX >> (SIDE - (from.count - tile * SIDE).min(SIDE));
    for row in 0..SIDE {
        if row < panel.rows {
            _mm512_mask_storeu_ps(to.add(row * from.count), mask, products[row]);
        }
    }
}

/// Adds the products of a group, of which there are sums of whole numbers, and its biases.
#[inline(always)]
unsafe fn add(wholes: *const Line, panel: &Panel, factors: *const Line, group: usize, sums: &mut [__m512; SIDE]) {
    let steps = _mm512_load_ps(panel.steps.add(group).cast());
    let of_rows = _mm512_load_ps(panel.sums.add(group).cast());
    let (scales, biases) = (&*factors.add(2 * group), &*factors.add(2 * group + 1));
    for output in 0..SIDE {
        let high = _mm512_load_si512(wholes.add(output).cast());
        let low = _mm512_load_si512(wholes.add(SIDE + output).cast());
        let whole = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
        let product = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), steps);
        let sum = _mm512_fmadd_ps(product, _mm512_set1_ps(scales.0[output]), sums[output]);
        sums[output] = _mm512_fmadd_ps(of_rows, _mm512_set1_ps(biases.0[output]), sum);
    }
}
