//! NEON, which every 64 bit processor of ARM has.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::shuffle::Shuffle;
use super::{first, first_of_eight, Compiled, Lanes, FLOAT4, GREATEST_F16};

/// Eight floats in two registers: one alone would have to wait for its own last sum.
#[derive(Clone, Copy)]
pub struct Neon(float32x4_t, float32x4_t);

/// A quarter of a block of numbers in lanes of 16 bits.
#[inline(always)]
unsafe fn floats(numbers: uint16x8_t) -> Neon {
    Neon(
        vcvtq_f32_u32(vmovl_u16(vget_low_u16(numbers))),
        vcvtq_f32_u32(vmovl_high_u16(numbers)),
    )
}

/// A quarter of a block of IEEE's 16 bit floats.
#[inline(always)]
unsafe fn from_f16(numbers: uint16x8_t) -> Neon {
    let numbers = vreinterpretq_f16_u16(numbers);
    Neon(vcvt_f32_f16(vget_low_f16(numbers)), vcvt_high_f32_f16(numbers))
}

/// A quarter of a block of floats of which these are the higher halves.
#[inline(always)]
unsafe fn from_bf16(numbers: uint16x8_t) -> Neon {
    let zero = vdupq_n_u16(0);
    Neon(
        vreinterpretq_f32_u16(vzip1q_u16(zero, numbers)),
        vreinterpretq_f32_u16(vzip2q_u16(zero, numbers)),
    )
}

/// Eight packed numbers of a block of 32.
#[inline(always)]
unsafe fn packed<const BITS: usize>(from: *const u8, quarter: usize) -> Neon {
    let shuffle = &Packed::<BITS>::QUARTERS[quarter];
    let loaded = vcombine_u8(vld1_u8(from.add(shuffle.start)), vdup_n_u8(0));
    let spread = vreinterpretq_u16_u8(vqtbl1q_u8(loaded, vld1q_u8(shuffle.bytes.as_ptr())));
    let shifted = vshlq_u16(spread, vld1q_s16(Packed::<BITS>::SHIFTS[quarter].as_ptr()));
    floats(vandq_u16(shifted, vdupq_n_u16((1 << BITS) - 1)))
}

struct Packed<const BITS: usize>;

impl<const BITS: usize> Packed<BITS> {
    const QUARTERS: [Shuffle<16, 8>; 4] = [
        Shuffle::new(BITS, 0, 8),
        Shuffle::new(BITS, 8, 8),
        Shuffle::new(BITS, 16, 8),
        Shuffle::new(BITS, 24, 8),
    ];
    /// Shifts to the right are shifts to the left by less than nothing.
    const SHIFTS: [[i16; 8]; 4] = {
        let mut shifts = [[0; 8]; 4];
        let mut place = 0;
        while place < 32 {
            let (quarter, lane) = (place / 8, place % 8);
            shifts[quarter][lane] = -(Self::QUARTERS[quarter].shifts[lane] as i16);
            place += 1;
        }
        shifts
    };
}

/// Values of the codes of four bits by the third and the fourth byte of their floats; the others are zero.
struct Values([u8; 16], [u8; 16]);

impl Values {
    const fn new(values: [f32; 16]) -> Self {
        let (mut third, mut fourth, mut code) = ([0; 16], [0; 16], 0);
        while code < 16 {
            let bits = values[code].to_bits();
            assert!(bits & 0xFFFF == 0, "the value has two bytes");
            (third[code], fourth[code]) = ((bits >> 16) as u8, (bits >> 24) as u8);
            code += 1;
        }
        Self(third, fourth)
    }
}

const FLOATS: Values = Values::new(FLOAT4);
const CODES: Values = Values::new([
    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
]);

/// The values of a block's codes of four bits.
#[inline(always)]
unsafe fn chosen(from: *const u8, Values(third, fourth): &Values) -> [Neon; 4] {
    let bytes = vld1q_u8(from);
    let (third, fourth) = (vld1q_u8(third.as_ptr()), vld1q_u8(fourth.as_ptr()));
    let half = |codes: uint8x16_t| {
        let (third, fourth) = (vqtbl1q_u8(third, codes), vqtbl1q_u8(fourth, codes));
        let of = |bytes: uint8x16_t| from_bf16(vreinterpretq_u16_u8(bytes));
        [of(vzip1q_u8(third, fourth)), of(vzip2q_u8(third, fourth))]
    };
    let [one, two] = half(vandq_u8(bytes, vdupq_n_u8(15)));
    let [three, four] = half(vshrq_n_u8::<4>(bytes));
    [one, two, three, four]
}

/// A quarter of a block of E4M3 floats. Their bits are put where floats of 16 bits have theirs, which are too small then
/// by the difference of both biases.
#[inline(always)]
unsafe fn float8(from: *const u8) -> Neon {
    const FACTOR: f32 = (1 << 8) as f32;
    // The sign fills the place above the exponent, too.
    let shifted = vshlq_n_s16::<7>(vmovl_s8(vld1_s8(from.cast())));
    let numbers = from_f16(vandq_u16(vreinterpretq_u16_s16(shifted), vdupq_n_u16(0xBFFF)));
    numbers.mul(Neon::splat(FACTOR))
}

/// The sums of each lane's products of four numbers of four bits with even places and as many with odd ones.
#[inline(always)]
unsafe fn sums(even: int8x16_t, odd: int8x16_t, with_even: *const i8, with_odd: *const i8) -> int32x4_t {
    let (with_even, with_odd) = (vld1q_s8(with_even), vld1q_s8(with_odd));
    // Four products of 15 · 128 fit into 16 bits.
    let low = vmull_s8(vget_low_s8(even), vget_low_s8(with_even));
    let low = vmlal_s8(low, vget_low_s8(odd), vget_low_s8(with_odd));
    let high = vmlal_high_s8(vmull_high_s8(even, with_even), odd, with_odd);
    vpaddlq_s16(vpaddq_s16(low, high))
}

/// Half of [`Lanes::nibble_products`]; those for odd places are two registers after those for even ones.
#[inline(always)]
unsafe fn products(numbers: uint8x16_t, with: *const i8) -> float32x4_t {
    let even = vreinterpretq_s8_u8(vandq_u8(numbers, vdupq_n_u8(15)));
    let odd = vreinterpretq_s8_u8(vshrq_n_u8::<4>(numbers));
    vcvtq_f32_s32(sums(even, odd, with, with.add(32)))
}

/// The first numbers of 16 bits.
#[inline(always)]
unsafe fn first_halves(from: *const u16, count: usize) -> uint16x8_t {
    let [low, high] = first_of_eight(from, count);
    vcombine_u16(vcreate_u16(low), vcreate_u16(high))
}

/// Half of [`Lanes::choose`], by the four bytes of each number.
#[inline(always)]
unsafe fn choose(from: uint8x16x2_t, places: *const i32) -> float32x4_t {
    let places = vreinterpretq_u32_s32(vld1q_s32(places));
    let bytes = vmlaq_u32(vdupq_n_u32(0x0302_0100), places, vdupq_n_u32(0x0404_0404));
    vreinterpretq_f32_u8(vqtbl2q_u8(from, vreinterpretq_u8_u32(bytes)))
}

// SAFETY: every processor that this is compiled for has the instruction set, and the loads of each function end within
// what its caller vouches for.
unsafe impl Lanes for Neon {
    const COUNT: usize = 8;
    // Twenty-four sums, four numbers of a panel and a weight, of 32 registers.
    const HALVES: usize = 1;
    const TILE: (usize, usize) = (2, 6);
    type Block = [Self; 4];
    type Bytes = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn call<K: Compiled<Self>>(kernel: K) {
        kernel.run();
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: it reads nothing and ignores addresses that there are not.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) from, options(readonly, nostack, preserves_flags)) };
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self::splat(0.0)
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self(vdupq_n_f32(number), vdupq_n_f32(number))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(vld1q_f32(from), vld1q_f32(from.add(4)))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        vst1q_f32(to, self.0);
        vst1q_f32(to.add(4), self.1);
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        let (most, least) = (vdupq_n_f32(GREATEST_F16), vdupq_n_f32(-GREATEST_F16));
        let limited = |numbers| vmaxq_f32(vminq_f32(numbers, most), least);
        let halves = vcvt_high_f16_f32(vcvt_f16_f32(limited(self.0)), limited(self.1));
        vst1q_u16(to, vreinterpretq_u16_f16(halves));
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(vaddq_f32(self.0, other.0), vaddq_f32(self.1, other.1))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(vmulq_f32(self.0, other.0), vmulq_f32(self.1, other.1))
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        Self(vfmaq_f32(sum.0, self.0, other.0), vfmaq_f32(sum.1, self.1, other.1))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        vaddvq_f32(vaddq_f32(self.0, self.1))
    }

    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        let [one, two, three, four] = four.map(|lanes| vaddq_f32(lanes.0, lanes.1));
        let mut to = [0.0; 4];
        vst1q_f32(
            to.as_mut_ptr(),
            vpaddq_f32(vpaddq_f32(one, two), vpaddq_f32(three, four)),
        );
        to
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        from_f16(vld1q_u16(from))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        from_bf16(vld1q_u16(from))
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Self::load(first::<_, 8>(from, count).as_ptr())
    }

    #[inline(always)]
    unsafe fn load_first_f16(from: *const u16, count: usize) -> Self {
        from_f16(first_halves(from, count))
    }

    #[inline(always)]
    unsafe fn load_first_bf16(from: *const u16, count: usize) -> Self {
        from_bf16(first_halves(from, count))
    }

    #[inline(always)]
    unsafe fn nibbles(from: *const u8) -> Self::Block {
        chosen(from, &CODES)
    }

    #[inline(always)]
    unsafe fn float4(from: *const u8) -> Self::Block {
        chosen(from, &FLOATS)
    }

    #[inline(always)]
    unsafe fn bits<const BITS: usize>(from: *const u8) -> Self::Block {
        if BITS == 8 {
            return [
                floats(vmovl_u8(vld1_u8(from))),
                floats(vmovl_u8(vld1_u8(from.add(8)))),
                floats(vmovl_u8(vld1_u8(from.add(16)))),
                floats(vmovl_u8(vld1_u8(from.add(24)))),
            ];
        }
        [
            packed::<BITS>(from, 0),
            packed::<BITS>(from, 1),
            packed::<BITS>(from, 2),
            packed::<BITS>(from, 3),
        ]
    }

    #[inline(always)]
    unsafe fn float8(from: *const u8) -> Self::Block {
        [
            float8(from),
            float8(from.add(8)),
            float8(from.add(16)),
            float8(from.add(24)),
        ]
    }

    #[inline(always)]
    unsafe fn block(from: *const f32) -> Self::Block {
        [
            Self::load(from),
            Self::load(from.add(8)),
            Self::load(from.add(16)),
            Self::load(from.add(24)),
        ]
    }

    #[inline(always)]
    unsafe fn block_f16(from: *const u16) -> Self::Block {
        [
            Self::load_f16(from),
            Self::load_f16(from.add(8)),
            Self::load_f16(from.add(16)),
            Self::load_f16(from.add(24)),
        ]
    }

    #[inline(always)]
    unsafe fn block_bf16(from: *const u16) -> Self::Block {
        [
            Self::load_bf16(from),
            Self::load_bf16(from.add(8)),
            Self::load_bf16(from.add(16)),
            Self::load_bf16(from.add(24)),
        ]
    }

    #[inline(always)]
    unsafe fn scale(block: Self::Block, by: *const f32) -> Self::Block {
        let [one, two, three, four] = block;
        [
            one.mul(Self::load(by)),
            two.mul(Self::load(by.add(8))),
            three.mul(Self::load(by.add(16))),
            four.mul(Self::load(by.add(24))),
        ]
    }

    #[inline(always)]
    unsafe fn dot([one, two, three, four]: Self::Block, with: *const f32, sum: Self) -> Self {
        let sum = one.mul_add(Self::load(with), sum);
        let sum = two.mul_add(Self::load(with.add(8)), sum);
        let sum = three.mul_add(Self::load(with.add(16)), sum);
        four.mul_add(Self::load(with.add(24)), sum)
    }

    #[inline(always)]
    unsafe fn choose(self, places: *const i32) -> Self {
        let from = uint8x16x2_t(vreinterpretq_u8_f32(self.0), vreinterpretq_u8_f32(self.1));
        Self(choose(from, places), choose(from, places.add(4)))
    }

    #[inline(always)]
    unsafe fn bytes(from: *const u8) -> Self::Bytes {
        [vld1q_u8(from), vld1q_u8(from.add(16))]
    }

    #[inline(always)]
    unsafe fn first_bytes(from: *const u8, count: usize) -> Self::Bytes {
        let mut bytes = [0u8; 32];
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
        Self::bytes(bytes.as_ptr())
    }

    #[inline(always)]
    unsafe fn nibble_products([first, second]: Self::Bytes, with: *const i8) -> Self {
        Self(products(first, with), products(second, with.add(16)))
    }

    #[inline(always)]
    unsafe fn add_scaled(block: Self::Block, by: f32, sum: Self::Block) -> Self::Block {
        let by = Self::splat(by);
        [
            block[0].mul_add(by, sum[0]),
            block[1].mul_add(by, sum[1]),
            block[2].mul_add(by, sum[2]),
            block[3].mul_add(by, sum[3]),
        ]
    }

    #[inline(always)]
    unsafe fn write(block: Self::Block, scale: f32, bias: f32, to: *mut f32) {
        let (scale, bias) = (Self::splat(scale), Self::splat(bias));
        let [one, two, three, four] = block;
        one.mul_add(scale, bias).store(to);
        two.mul_add(scale, bias).store(to.add(8));
        three.mul_add(scale, bias).store(to.add(16));
        four.mul_add(scale, bias).store(to.add(24));
    }
}
