//! Code for every processor, and what the others are compared with.
#![allow(unsafe_code)]

use super::{first, Compiled, Lanes, BLOCK, FLOAT4, FLOAT8_FACTOR, GREATEST_F16};

const COUNT: usize = 8;

const BYTES: usize = 4 * COUNT;

/// Eight floats.
#[derive(Clone, Copy)]
pub struct Plain([f32; COUNT]);

impl Plain {
    #[inline(always)]
    fn with(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|lane| operation(self.0[lane], other.0[lane])))
    }
}

/// 32 numbers by their place.
#[inline(always)]
fn block(number: impl Fn(usize) -> f32) -> [f32; BLOCK] {
    std::array::from_fn(number)
}

/// Four bits of a block, even places first.
#[inline(always)]
unsafe fn nibble(from: *const u8, place: usize) -> usize {
    let (byte, high) = (place % 16, place / 16);
    usize::from(*from.add(byte) >> (4 * high) & 15)
}

/// The sums of what each lane's four bytes give.
#[inline(always)]
fn products(of: impl Fn(usize) -> i32) -> Plain {
    Plain(std::array::from_fn(|lane| {
        (4 * lane..4 * lane + 4).map(&of).sum::<i32>() as f32
    }))
}

/// A number of IEEE's 16 bit type.
#[inline(always)]
pub fn from_f16(half: u16) -> f32 {
    let (sign, exponent, mantissa) = (u32::from(half & 0x8000) << 16, half >> 10 & 31, u32::from(half & 0x3FF));
    let magnitude = match exponent {
        0 => mantissa as f32 / (1 << 24) as f32,
        31 => f32::from_bits(0x7F80_0000 | mantissa << 13),
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | mantissa << 13),
    };
    f32::from_bits(magnitude.to_bits() | sign)
}

/// The nearest number of IEEE's 16 bit type; of two that are as near, the even one.
#[inline(always)]
pub fn to_f16(number: f32) -> u16 {
    let sign = (number.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = match number.abs() {
        great if great > GREATEST_F16 => GREATEST_F16,
        magnitude => magnitude,
    };
    if magnitude.is_nan() {
        return sign | 0x7E00;
    }
    // Below the smallest normal number places count by a fixed step, which adding a number rounds to.
    let half = match magnitude < f32::from_bits(113 << 23) {
        true => (magnitude + 0.5).to_bits() - 0.5f32.to_bits(),
        false => {
            let bits = magnitude.to_bits() - (112 << 23);
            (bits + 0xFFF + (bits >> 13 & 1)) >> 13
        }
    };
    sign | half as u16
}

/// A number of the 16 bit type with the exponent of 32 bits.
#[inline(always)]
pub fn from_bf16(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// An E4M3 float.
#[inline(always)]
pub fn from_float8(byte: u8) -> f32 {
    let bits = u32::from(byte & 0x7F) << 20 | u32::from(byte & 0x80) << 24;
    f32::from_bits(bits) * FLOAT8_FACTOR
}

// SAFETY: it needs no instruction set.
unsafe impl Lanes for Plain {
    const COUNT: usize = COUNT;
    const HALVES: usize = 1;
    const TILE: (usize, usize) = (1, 4);
    type Block = [f32; BLOCK];
    type Bytes = [u8; BYTES];

    #[inline(always)]
    unsafe fn call<K: Compiled<Self>>(kernel: K) {
        kernel.run();
    }

    #[inline(always)]
    unsafe fn prefetch(_from: *const u8) {}

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; COUNT])
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self([number; COUNT])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(from.cast::<[f32; COUNT]>().read_unaligned())
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        to.cast::<[f32; COUNT]>().write_unaligned(self.0);
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        to.cast::<[u16; COUNT]>().write_unaligned(self.0.map(to_f16));
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.with(other, |one, two| one + two)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.with(other, |one, two| one * two)
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // A fused operation is a call into a library on processors without an instruction for it.
        self.mul(other).add(sum)
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.0.iter().sum()
    }

    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        four.map(|lanes| lanes.0.iter().sum())
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        Self(from.cast::<[u16; COUNT]>().read_unaligned().map(from_f16))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        Self(from.cast::<[u16; COUNT]>().read_unaligned().map(from_bf16))
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Self(first(from, count))
    }

    #[inline(always)]
    unsafe fn load_first_f16(from: *const u16, count: usize) -> Self {
        Self(first(from, count).map(from_f16))
    }

    #[inline(always)]
    unsafe fn load_first_bf16(from: *const u16, count: usize) -> Self {
        Self(first(from, count).map(from_bf16))
    }

    #[inline(always)]
    unsafe fn nibbles(from: *const u8) -> Self::Block {
        block(|place| nibble(from, place) as f32)
    }

    #[inline(always)]
    unsafe fn float4(from: *const u8) -> Self::Block {
        block(|place| FLOAT4[nibble(from, place)])
    }

    #[inline(always)]
    unsafe fn bits<const BITS: usize>(from: *const u8) -> Self::Block {
        block(|place| {
            let bit = BITS * place;
            let low = u32::from(*from.add(bit / 8)) >> (bit % 8);
            let high = match bit % 8 + BITS > 8 {
                true => u32::from(*from.add(bit / 8 + 1)) << (8 - bit % 8),
                false => 0,
            };
            ((low | high) & ((1 << BITS) - 1)) as f32
        })
    }

    #[inline(always)]
    unsafe fn float8(from: *const u8) -> Self::Block {
        block(|place| from_float8(*from.add(place)))
    }

    #[inline(always)]
    unsafe fn block(from: *const f32) -> Self::Block {
        from.cast::<Self::Block>().read_unaligned()
    }

    #[inline(always)]
    unsafe fn block_f16(from: *const u16) -> Self::Block {
        from.cast::<[u16; BLOCK]>().read_unaligned().map(from_f16)
    }

    #[inline(always)]
    unsafe fn block_bf16(from: *const u16) -> Self::Block {
        from.cast::<[u16; BLOCK]>().read_unaligned().map(from_bf16)
    }

    #[inline(always)]
    unsafe fn scale(numbers: Self::Block, by: *const f32) -> Self::Block {
        block(|place| numbers[place] * *by.add(place))
    }

    #[inline(always)]
    unsafe fn dot(block: Self::Block, with: *const f32, mut sum: Self) -> Self {
        for (place, number) in block.iter().enumerate() {
            sum.0[place % COUNT] += number * *with.add(place);
        }
        sum
    }

    #[inline(always)]
    unsafe fn choose(self, places: *const i32) -> Self {
        Self(std::array::from_fn(|lane| self.0[*places.add(lane) as usize]))
    }

    #[inline(always)]
    unsafe fn bytes(from: *const u8) -> Self::Bytes {
        std::array::from_fn(|byte| *from.add(byte))
    }

    #[inline(always)]
    unsafe fn first_bytes(from: *const u8, count: usize) -> Self::Bytes {
        std::array::from_fn(|byte| if byte < count { *from.add(byte) } else { 0 })
    }

    #[inline(always)]
    unsafe fn nibble_products(numbers: Self::Bytes, with: *const i8) -> Self {
        products(|byte| {
            let code = i32::from(numbers[byte]);
            (code & 15) * i32::from(*with.add(byte)) + (code >> 4) * i32::from(*with.add(BYTES + byte))
        })
    }

    #[inline(always)]
    unsafe fn add_scaled(block: Self::Block, by: f32, sum: Self::Block) -> Self::Block {
        self::block(|place| block[place] * by + sum[place])
    }

    #[inline(always)]
    unsafe fn write(block: Self::Block, scale: f32, bias: f32, to: *mut f32) {
        for (place, number) in block.iter().enumerate() {
            to.add(place).write(number * scale + bias);
        }
    }
}
