//! AVX2 with FMA and F16C: processors of Intel since 2013 and of AMD since 2015.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::shuffle::Shuffle;
use super::{first_of_eight, Compiled, Lanes, FLOAT4, FLOAT8_FACTOR, GREATEST_F16};

/// Eight floats.
#[derive(Clone, Copy)]
pub struct Avx2(__m256);

/// A quarter of a block of numbers in lanes of 32 bits.
#[inline(always)]
unsafe fn floats(numbers: __m256i) -> Avx2 {
    Avx2(_mm256_cvtepi32_ps(numbers))
}

/// Eight bytes in lanes of 32 bits.
#[inline(always)]
unsafe fn widened(from: *const u8) -> __m256i {
    _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()))
}

/// Eight packed numbers of a block of 32.
#[inline(always)]
unsafe fn packed(from: *const u8, shuffle: &Shuffle<32, 8>, mask: i32) -> Avx2 {
    let loaded = _mm_loadl_epi64(from.add(shuffle.start).cast());
    let spread = _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(loaded),
        _mm256_loadu_si256(shuffle.bytes.as_ptr().cast()),
    );
    let shifted = _mm256_srlv_epi32(spread, _mm256_loadu_si256(shuffle.shifts.as_ptr().cast()));
    floats(_mm256_and_si256(shifted, _mm256_set1_epi32(mask)))
}

/// The first numbers of 16 bits.
#[inline(always)]
unsafe fn first_halves(from: *const u16, count: usize) -> __m128i {
    let [low, high] = first_of_eight(from, count);
    _mm_set_epi64x(high as i64, low as i64)
}

struct Packed<const BITS: usize>;

impl<const BITS: usize> Packed<BITS> {
    const QUARTERS: [Shuffle<32, 8>; 4] = [
        Shuffle::new(BITS, 0, 8),
        Shuffle::new(BITS, 8, 8),
        Shuffle::new(BITS, 16, 8),
        Shuffle::new(BITS, 24, 8),
    ];
}

/// The value of E2M1 by the lower four bits of each lane.
#[inline(always)]
unsafe fn chosen(codes: __m256i) -> Avx2 {
    // The lower three bits choose the magnitude, the fourth is the sign.
    let magnitude = _mm256_permutevar8x32_ps(_mm256_loadu_ps(FLOAT4.as_ptr()), codes);
    let sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(8)), 28);
    Avx2(_mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign)))
}

/// E4M3 floats in the lowest bytes of the lanes.
#[inline(always)]
unsafe fn float8(bytes: __m256i) -> Avx2 {
    let magnitude = _mm256_slli_epi32(_mm256_and_si256(bytes, _mm256_set1_epi32(0x7F)), 20);
    let sign = _mm256_slli_epi32(_mm256_and_si256(bytes, _mm256_set1_epi32(0x80)), 24);
    let number = _mm256_castsi256_ps(_mm256_or_si256(magnitude, sign));
    Avx2(_mm256_mul_ps(number, _mm256_set1_ps(FLOAT8_FACTOR)))
}

// SAFETY: callers have the instruction set, and the loads of each function end within what its caller vouches for.
unsafe impl Lanes for Avx2 {
    const COUNT: usize = 8;
    const HALVES: usize = 1;
    const TILE: (usize, usize) = (2, 6);
    type Block = [Self; 4];
    type Bytes = __m256i;

    #[inline(always)]
    unsafe fn call<K: Compiled<Self>>(kernel: K) {
        #[target_feature(enable = "avx2,fma,f16c")]
        unsafe fn compiled<L, K: Compiled<L>>(kernel: K) {
            kernel.run();
        }
        compiled::<Self, K>(kernel);
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(_mm256_setzero_ps())
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self(_mm256_set1_ps(number))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(_mm256_loadu_ps(from))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        _mm256_storeu_ps(to, self.0);
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // Of two numbers that cannot be compared, the second one is taken.
        let limited = _mm256_min_ps(_mm256_set1_ps(GREATEST_F16), self.0);
        let limited = _mm256_max_ps(_mm256_set1_ps(-GREATEST_F16), limited);
        _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(limited));
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(_mm256_add_ps(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(_mm256_mul_ps(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        Self(_mm256_fmadd_ps(self.0, other.0, sum.0))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let pairs = _mm256_add_ps(self.0, _mm256_permute_ps::<0b10_11_00_01>(self.0));
        let halves = _mm256_add_ps(pairs, _mm256_permute_ps::<0b01_00_11_10>(pairs));
        let sum = _mm_add_ss(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
        _mm_cvtss_f32(sum)
    }

    #[inline(always)]
    unsafe fn sums([one, two, three, four]: [Self; 4]) -> [f32; 4] {
        let quarters = _mm256_hadd_ps(_mm256_hadd_ps(one.0, two.0), _mm256_hadd_ps(three.0, four.0));
        let sums = _mm_add_ps(_mm256_castps256_ps128(quarters), _mm256_extractf128_ps::<1>(quarters));
        let mut to = [0.0; 4];
        _mm_storeu_ps(to.as_mut_ptr(), sums);
        to
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        Self(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
        Self(_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)))
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places);
        Self(_mm256_maskload_ps(from, mask))
    }

    #[inline(always)]
    unsafe fn load_first_f16(from: *const u16, count: usize) -> Self {
        Self(_mm256_cvtph_ps(first_halves(from, count)))
    }

    #[inline(always)]
    unsafe fn load_first_bf16(from: *const u16, count: usize) -> Self {
        let wide = _mm256_cvtepu16_epi32(first_halves(from, count));
        Self(_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)))
    }

    #[inline(always)]
    unsafe fn nibbles(from: *const u8) -> Self::Block {
        let (low, high) = (widened(from), widened(from.add(8)));
        let mask = _mm256_set1_epi32(15);
        [
            floats(_mm256_and_si256(low, mask)),
            floats(_mm256_and_si256(high, mask)),
            floats(_mm256_srli_epi32(low, 4)),
            floats(_mm256_srli_epi32(high, 4)),
        ]
    }

    #[inline(always)]
    unsafe fn float4(from: *const u8) -> Self::Block {
        let (low, high) = (widened(from), widened(from.add(8)));
        [
            chosen(low),
            chosen(high),
            chosen(_mm256_srli_epi32(low, 4)),
            chosen(_mm256_srli_epi32(high, 4)),
        ]
    }

    #[inline(always)]
    unsafe fn bits<const BITS: usize>(from: *const u8) -> Self::Block {
        if BITS == 8 {
            return [
                floats(widened(from)),
                floats(widened(from.add(8))),
                floats(widened(from.add(16))),
                floats(widened(from.add(24))),
            ];
        }
        let mask = (1 << BITS) - 1;
        let [one, two, three, four] = &Packed::<BITS>::QUARTERS;
        [
            packed(from, one, mask),
            packed(from, two, mask),
            packed(from, three, mask),
            packed(from, four, mask),
        ]
    }

    #[inline(always)]
    unsafe fn float8(from: *const u8) -> Self::Block {
        [
            float8(widened(from)),
            float8(widened(from.add(8))),
            float8(widened(from.add(16))),
            float8(widened(from.add(24))),
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
        Self(_mm256_permutevar8x32_ps(self.0, _mm256_loadu_si256(places.cast())))
    }

    #[inline(always)]
    unsafe fn bytes(from: *const u8) -> Self::Bytes {
        _mm256_loadu_si256(from.cast())
    }

    #[inline(always)]
    unsafe fn first_bytes(from: *const u8, count: usize) -> Self::Bytes {
        let mut bytes = [0u8; 32];
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
        Self::bytes(bytes.as_ptr())
    }

    #[inline(always)]
    unsafe fn nibble_products(numbers: Self::Bytes, with: *const i8) -> Self {
        let mask = _mm256_set1_epi8(15);
        let even = _mm256_and_si256(numbers, mask);
        let odd = _mm256_and_si256(_mm256_srli_epi16(numbers, 4), mask);
        let with = |index: usize| _mm256_loadu_si256(with.add(32 * index).cast());
        // Four products of 15 · 128 fit into 16 bits.
        let sums = _mm256_add_epi16(_mm256_maddubs_epi16(even, with(0)), _mm256_maddubs_epi16(odd, with(1)));
        floats(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)))
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
