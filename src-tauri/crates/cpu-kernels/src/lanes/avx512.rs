//! AVX-512 with its parts BW, DQ, VL and VNNI: Intel's servers since 2019, Ice Lake and later, and AMD since Zen 4.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::shuffle::Shuffle;
use super::{Compiled, Lanes, FLOAT4, FLOAT8_FACTOR, GREATEST_F16};

/// Sixteen floats.
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

/// Half a block of numbers in lanes of 32 bits.
#[inline(always)]
unsafe fn floats(numbers: __m512i) -> Avx512 {
    Avx512(_mm512_cvtepi32_ps(numbers))
}

/// Sixteen bytes in lanes of 32 bits.
#[inline(always)]
unsafe fn widened(from: *const u8) -> __m512i {
    _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()))
}

/// Sixteen packed numbers from `first` on of a block of 32.
#[inline(always)]
unsafe fn packed(from: *const u8, shuffle: &Shuffle<64, 16>, half: bool, mask: i32) -> Avx512 {
    let from = from.add(shuffle.start);
    let loaded = match half {
        true => _mm_loadl_epi64(from.cast()),
        false => _mm_loadu_si128(from.cast()),
    };
    let spread = _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(loaded),
        _mm512_loadu_si512(shuffle.bytes.as_ptr().cast()),
    );
    let shifted = _mm512_srlv_epi32(spread, _mm512_loadu_si512(shuffle.shifts.as_ptr().cast()));
    floats(_mm512_and_si512(shifted, _mm512_set1_epi32(mask)))
}

struct Packed<const BITS: usize>;

impl<const BITS: usize> Packed<BITS> {
    /// Eight bytes are loaded where a block has fewer than sixteen.
    const HALF: bool = 4 * BITS < 16;
    const LOADED: usize = if Self::HALF { 8 } else { 16 };
    const FIRST: Shuffle<64, 16> = Shuffle::new(BITS, 0, Self::LOADED);
    const SECOND: Shuffle<64, 16> = Shuffle::new(BITS, 16, Self::LOADED);
}

/// Codes of four bits as floats.
const CODES: [f32; 16] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
];

/// The values of a block's codes of four bits. The lowest four bits of a lane choose.
#[inline(always)]
unsafe fn chosen(from: *const u8, values: &[f32; 16]) -> [Avx512; 2] {
    let (bytes, values) = (widened(from), _mm512_loadu_ps(values.as_ptr()));
    [
        Avx512(_mm512_permutexvar_ps(bytes, values)),
        Avx512(_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), values)),
    ]
}

/// E4M3 floats in the lowest bytes of the lanes.
#[inline(always)]
unsafe fn float8(bytes: __m512i) -> Avx512 {
    let magnitude = _mm512_slli_epi32(_mm512_and_si512(bytes, _mm512_set1_epi32(0x7F)), 20);
    let sign = _mm512_slli_epi32(_mm512_and_si512(bytes, _mm512_set1_epi32(0x80)), 24);
    let number = _mm512_castsi512_ps(_mm512_or_si512(magnitude, sign));
    Avx512(_mm512_mul_ps(number, _mm512_set1_ps(FLOAT8_FACTOR)))
}

impl Avx512 {
    /// The same as [`Lanes::nibble_products`] for numbers of eight bits, in their order.
    ///
    /// # Safety
    ///
    /// There are so many halves, and the processor has the instruction set.
    #[inline(always)]
    pub unsafe fn byte_products(numbers: __m512i, halves: *const i8) -> Self {
        let zero = _mm512_setzero_si512();
        let half = |index: usize| _mm512_loadu_si512(halves.add(64 * index).cast());
        let high = _mm512_dpbusd_epi32(zero, numbers, half(0));
        let low = _mm512_dpbusd_epi32(zero, numbers, half(1));
        floats(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low))
    }
}

/// Columns of 16 registers as registers.
#[inline(always)]
pub unsafe fn transposed(rows: [__m512; 16]) -> [__m512; 16] {
    let mut pairs = [_mm512_setzero_ps(); 16];
    for row in 0..8 {
        pairs[2 * row] = _mm512_unpacklo_ps(rows[2 * row], rows[2 * row + 1]);
        pairs[2 * row + 1] = _mm512_unpackhi_ps(rows[2 * row], rows[2 * row + 1]);
    }
    // Of each quarter of a register the same column, of four rows.
    let mut fours = [_mm512_setzero_ps(); 16];
    for four in 0..4 {
        for high in 0..2 {
            let one = _mm512_castps_pd(pairs[4 * four + high]);
            let two = _mm512_castps_pd(pairs[4 * four + 2 + high]);
            fours[4 * four + 2 * high] = _mm512_castpd_ps(_mm512_unpacklo_pd(one, two));
            fours[4 * four + 2 * high + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(one, two));
        }
    }
    let mut columns = [_mm512_setzero_ps(); 16];
    for column in 0..4 {
        let [one, two] = [fours[column], fours[4 + column]];
        let [three, four] = [fours[8 + column], fours[12 + column]];
        let even = (
            _mm512_shuffle_f32x4::<0x88>(one, two),
            _mm512_shuffle_f32x4::<0x88>(three, four),
        );
        let odd = (
            _mm512_shuffle_f32x4::<0xDD>(one, two),
            _mm512_shuffle_f32x4::<0xDD>(three, four),
        );
        columns[column] = _mm512_shuffle_f32x4::<0x88>(even.0, even.1);
        columns[4 + column] = _mm512_shuffle_f32x4::<0x88>(odd.0, odd.1);
        columns[8 + column] = _mm512_shuffle_f32x4::<0xDD>(even.0, even.1);
        columns[12 + column] = _mm512_shuffle_f32x4::<0xDD>(odd.0, odd.1);
    }
    columns
}

// SAFETY: callers have the instruction set, and the loads of each function end within what its caller vouches for.
unsafe impl Lanes for Avx512 {
    const COUNT: usize = 16;
    const HALVES: usize = 2;
    const TILE: (usize, usize) = (2, 10);
    type Block = [Self; 2];
    type Bytes = __m512i;

    #[inline(always)]
    unsafe fn call<K: Compiled<Self>>(kernel: K) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
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
        Self(_mm512_setzero_ps())
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self(_mm512_set1_ps(number))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(_mm512_loadu_ps(from))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        _mm512_storeu_ps(to, self.0);
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // Of two numbers that cannot be compared, the second one is taken.
        let limited = _mm512_min_ps(_mm512_set1_ps(GREATEST_F16), self.0);
        let limited = _mm512_max_ps(_mm512_set1_ps(-GREATEST_F16), limited);
        _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(limited));
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(_mm512_add_ps(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(_mm512_mul_ps(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        Self(_mm512_fmadd_ps(self.0, other.0, sum.0))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // In the order of `sums`, and not in that which the compiler chooses for `_mm512_reduce_add_ps` in each kernel:
        // answers would depend on how many are made together.
        let pairs = _mm512_add_ps(self.0, _mm512_permute_ps::<0b01_00_11_10>(self.0));
        let quarters = _mm512_add_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs));
        let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps::<1>(quarters));
        let sum = _mm_add_ss(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
        _mm_cvtss_f32(sum)
    }

    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        let [one, two, three, four] = four.map(|lanes| lanes.0);
        let pairs = |one, two| _mm512_add_ps(_mm512_unpacklo_ps(one, two), _mm512_unpackhi_ps(one, two));
        // Each quarter has a part of all four sums, the second and the third one in each other's place.
        let (even, odd) = (_mm512_castps_pd(pairs(one, three)), _mm512_castps_pd(pairs(two, four)));
        let low = _mm512_castpd_ps(_mm512_unpacklo_pd(even, odd));
        let high = _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd));
        let quarters = _mm512_add_ps(low, high);
        let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps::<1>(quarters));
        let sums = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
        let mut to = [0.0; 4];
        _mm_storeu_ps(to.as_mut_ptr(), sums);
        [to[0], to[2], to[1], to[3]]
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        Self(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
        Self(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)))
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Self(_mm512_maskz_loadu_ps(u16::MAX >> (16 - count), from))
    }

    #[inline(always)]
    unsafe fn load_first_f16(from: *const u16, count: usize) -> Self {
        let mask = u16::MAX >> (16 - count);
        Self(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())))
    }

    #[inline(always)]
    unsafe fn load_first_bf16(from: *const u16, count: usize) -> Self {
        let mask = u16::MAX >> (16 - count);
        let wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from.cast()));
        Self(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)))
    }

    #[inline(always)]
    unsafe fn nibbles(from: *const u8) -> Self::Block {
        chosen(from, &CODES)
    }

    #[inline(always)]
    unsafe fn float4(from: *const u8) -> Self::Block {
        chosen(from, &FLOAT4)
    }

    #[inline(always)]
    unsafe fn bits<const BITS: usize>(from: *const u8) -> Self::Block {
        if BITS == 8 {
            return [floats(widened(from)), floats(widened(from.add(16)))];
        }
        let mask = (1 << BITS) - 1;
        [
            packed(from, &Packed::<BITS>::FIRST, Packed::<BITS>::HALF, mask),
            packed(from, &Packed::<BITS>::SECOND, Packed::<BITS>::HALF, mask),
        ]
    }

    #[inline(always)]
    unsafe fn float8(from: *const u8) -> Self::Block {
        [float8(widened(from)), float8(widened(from.add(16)))]
    }

    #[inline(always)]
    unsafe fn block(from: *const f32) -> Self::Block {
        [Self::load(from), Self::load(from.add(16))]
    }

    #[inline(always)]
    unsafe fn block_f16(from: *const u16) -> Self::Block {
        [Self::load_f16(from), Self::load_f16(from.add(16))]
    }

    #[inline(always)]
    unsafe fn block_bf16(from: *const u16) -> Self::Block {
        [Self::load_bf16(from), Self::load_bf16(from.add(16))]
    }

    #[inline(always)]
    unsafe fn scale([one, two]: Self::Block, by: *const f32) -> Self::Block {
        [one.mul(Self::load(by)), two.mul(Self::load(by.add(16)))]
    }

    #[inline(always)]
    unsafe fn dot([one, two]: Self::Block, with: *const f32, sum: Self) -> Self {
        two.mul_add(Self::load(with.add(16)), one.mul_add(Self::load(with), sum))
    }

    #[inline(always)]
    unsafe fn choose(self, places: *const i32) -> Self {
        Self(_mm512_permutexvar_ps(_mm512_loadu_si512(places.cast()), self.0))
    }

    #[inline(always)]
    unsafe fn bytes(from: *const u8) -> Self::Bytes {
        _mm512_loadu_si512(from.cast())
    }

    #[inline(always)]
    unsafe fn first_bytes(from: *const u8, count: usize) -> Self::Bytes {
        _mm512_maskz_loadu_epi8(u64::MAX >> (64 - count), from.cast())
    }

    #[inline(always)]
    unsafe fn nibble_products(numbers: Self::Bytes, halves: *const i8) -> Self {
        let (mask, zero) = (_mm512_set1_epi8(15), _mm512_setzero_si512());
        let even = _mm512_and_si512(numbers, mask);
        let odd = _mm512_and_si512(_mm512_srli_epi16(numbers, 4), mask);
        let half = |index: usize| _mm512_loadu_si512(halves.add(64 * index).cast());
        let high = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, even, half(0)), odd, half(1));
        let low = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, even, half(2)), odd, half(3));
        floats(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low))
    }

    #[inline(always)]
    unsafe fn add_scaled(block: Self::Block, by: f32, sum: Self::Block) -> Self::Block {
        let by = Self::splat(by);
        [block[0].mul_add(by, sum[0]), block[1].mul_add(by, sum[1])]
    }

    #[inline(always)]
    unsafe fn write([one, two]: Self::Block, scale: f32, bias: f32, to: *mut f32) {
        let (scale, bias) = (Self::splat(scale), Self::splat(bias));
        one.mul_add(scale, bias).store(to);
        two.mul_add(scale, bias).store(to.add(16));
    }
}
