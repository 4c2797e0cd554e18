//! Blocks of 32 stored numbers as floats, and scales as floats.
#![allow(unsafe_code)]

use crate::format::Number;
use crate::lanes::plain::{from_bf16, from_f16, from_float8};
use crate::lanes::{Compiled, Lanes};
use crate::product::Matrix;

/// A coding, known when a kernel is compiled.
pub trait Code {
    /// Bytes of a block.
    const BYTES: usize;
    /// True if groups have scales.
    const SCALED: bool = true;
    /// True if groups have biases.
    const BIASED: bool = false;

    /// A block.
    ///
    /// # Safety
    ///
    /// There are so many bytes, and the processor has the instruction set.
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block;
}

/// Integers of four bits.
pub struct Nibbles;

impl Code for Nibbles {
    const BYTES: usize = 16;
    const BIASED: bool = true;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::nibbles(from)
    }
}

/// Integers of other numbers of bits.
pub struct Bits<const BITS: usize>;

impl<const BITS: usize> Code for Bits<BITS> {
    const BYTES: usize = 4 * BITS;
    const BIASED: bool = true;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::bits::<BITS>(from)
    }
}

/// E2M1.
pub struct Float4;

impl Code for Float4 {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::float4(from)
    }
}

/// E4M3.
pub struct Float8;

impl Code for Float8 {
    const BYTES: usize = 32;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::float8(from)
    }
}

/// 32 bit floats.
pub struct F32;

impl Code for F32 {
    const BYTES: usize = 128;
    const SCALED: bool = false;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::block(from.cast())
    }
}

/// IEEE's 16 bit floats.
pub struct F16;

impl Code for F16 {
    const BYTES: usize = 64;
    const SCALED: bool = false;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::block_f16(from.cast())
    }
}

/// 16 bit floats with the exponent of 32 bits.
pub struct Bf16;

impl Code for Bf16 {
    const BYTES: usize = 64;
    const SCALED: bool = false;

    #[inline(always)]
    unsafe fn block<L: Lanes>(from: *const u8) -> L::Block {
        L::block_bf16(from.cast())
    }
}

/// The type of scales and biases, known when a kernel is compiled.
pub trait Scale {
    /// `count` of them from one on, as many as a register holds or fewer; the other lanes are zero.
    ///
    /// # Safety
    ///
    /// There are so many, and the processor has the instruction set.
    unsafe fn load<L: Lanes>(from: *const u8, first: usize, count: usize) -> L;
}

impl Scale for F32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8, first: usize, count: usize) -> L {
        L::load_first(from.cast::<f32>().add(first), count)
    }
}

impl Scale for F16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8, first: usize, count: usize) -> L {
        L::load_first_f16(from.cast::<u16>().add(first), count)
    }
}

impl Scale for Bf16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8, first: usize, count: usize) -> L {
        L::load_first_bf16(from.cast::<u16>().add(first), count)
    }
}

/// Calls a function that is generic over registers and a coding.
macro_rules! for_code {
    ($coding:expr, $function:ident::<$lanes:ident>($($argument:expr),* $(,)?)) => {{
        use $crate::format::{Coding, Number};
        use $crate::product::code;
        match $coding {
            Coding::Affine(2) => $function::<$lanes, code::Bits<2>>($($argument),*),
            Coding::Affine(3) => $function::<$lanes, code::Bits<3>>($($argument),*),
            Coding::Affine(4) => $function::<$lanes, code::Nibbles>($($argument),*),
            Coding::Affine(5) => $function::<$lanes, code::Bits<5>>($($argument),*),
            Coding::Affine(6) => $function::<$lanes, code::Bits<6>>($($argument),*),
            Coding::Affine(_) => $function::<$lanes, code::Bits<8>>($($argument),*),
            Coding::Float4 => $function::<$lanes, code::Float4>($($argument),*),
            Coding::Float8 => $function::<$lanes, code::Float8>($($argument),*),
            Coding::Plain(Number::F16) => $function::<$lanes, code::F16>($($argument),*),
            Coding::Plain(Number::Bf16) => $function::<$lanes, code::Bf16>($($argument),*),
            Coding::Plain(_) => $function::<$lanes, code::F32>($($argument),*),
        }
    }};
}
pub(super) use for_code;

/// The scales of rows as floats, and the biases times a factor.
pub struct Widened<'a> {
    pub matrix: &'a Matrix,
    pub first: usize,
    pub count: usize,
    pub scales: *mut f32,
    pub biases: *mut f32,
    pub biased: bool,
    pub factor: f32,
}

impl<L: Lanes> Compiled<L> for Widened<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let Self {
            matrix,
            first,
            count,
            scales,
            biases,
            biased,
            factor,
        } = self;
        let (number, groups) = (matrix.format.scales, matrix.groups());
        // Of a whole matrix all are neighbors, and there are too few of a row for a register.
        let (rows, length) = match matrix.has_adjoining_scales() {
            true => (1, count * groups),
            false => (count, groups),
        };
        for row in 0..rows {
            widen::<L>(
                number,
                matrix.scales(first + row),
                length,
                1.0,
                scales.add(row * groups),
            );
            if biased {
                widen::<L>(
                    number,
                    matrix.biases(first + row),
                    length,
                    factor,
                    biases.add(row * groups),
                );
            }
        }
    }
}

/// Scales or biases as floats, times a factor.
#[inline(always)]
unsafe fn widen<L: Lanes>(number: Number, from: *const u8, count: usize, factor: f32, to: *mut f32) {
    let whole = match number {
        Number::E8m0 | Number::E4m3 => 0,
        _ => count / L::COUNT * L::COUNT,
    };
    for place in (0..whole).step_by(L::COUNT) {
        let numbers = match number {
            Number::F16 => L::load_f16(from.cast::<u16>().add(place)),
            Number::Bf16 => L::load_bf16(from.cast::<u16>().add(place)),
            _ => L::load(from.cast::<f32>().add(place)),
        };
        numbers.mul(L::splat(factor)).store(to.add(place));
    }
    for place in whole..count {
        to.add(place).write(one(number, from, place) * factor);
    }
}

/// One of them.
#[inline(always)]
unsafe fn one(number: Number, from: *const u8, place: usize) -> f32 {
    match number {
        Number::F32 => from.cast::<f32>().add(place).read_unaligned(),
        Number::F16 => from_f16(from.cast::<u16>().add(place).read_unaligned()),
        Number::Bf16 => from_bf16(from.cast::<u16>().add(place).read_unaligned()),
        Number::E8m0 => match *from.add(place) {
            // The smallest one is below the normal floats.
            0 => f32::from_bits(1 << 22),
            exponent => f32::from_bits(u32::from(exponent) << 23),
        },
        Number::E4m3 => from_float8(*from.add(place)),
    }
}
