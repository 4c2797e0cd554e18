//! Registers of 32 bit floats, by instruction set. [`Plain`] is the reference that the others are compared with.
//!
//! Everything here is inlined into functions that enable the instruction set: see [`Lanes::call`].
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod plain;
mod shuffle;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use plain::Plain;

/// Numbers of a [`Lanes::Block`].
pub const BLOCK: usize = 32;

/// A computation that is compiled for an instruction set, on its own.
pub trait Compiled<L> {
    /// Computes.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set.
    unsafe fn run(self);
}

/// A register of floats. A block is 32 numbers of a matrix in several registers. In blocks of [`Lanes::nibbles`] and
/// [`Lanes::float4`] numbers with even places come first; in the others they stand in their order.
///
/// # Safety
///
/// The processor has the instruction set, and every pointer is good for what is read or written: `COUNT` numbers, or
/// the bytes of a block.
pub unsafe trait Lanes: Copy + 'static {
    /// Floats of a register.
    const COUNT: usize;
    /// Times 8 bits that rows are rounded to: twice where more rows are multiplied in tiles, which have 16 bits, so that an
    /// answer does not depend on how many are made together.
    const HALVES: usize;
    /// Registers of rows of activations, and rows of a matrix, whose products fit into the processor's registers.
    const TILE: (usize, usize);
    /// 32 numbers.
    type Block: Copy;
    /// Four bytes for each lane.
    type Bytes: Copy;

    /// Runs a kernel as compiled for the instruction set.
    unsafe fn call<K: Compiled<Self>>(kernel: K);

    /// Asks for memory that will be read; any address will do.
    unsafe fn prefetch(from: *const u8);
    /// Zeros.
    unsafe fn zero() -> Self;
    /// One number everywhere.
    unsafe fn splat(number: f32) -> Self;
    /// Numbers from memory.
    unsafe fn load(from: *const f32) -> Self;
    /// The numbers to memory.
    unsafe fn store(self, to: *mut f32);
    /// The numbers to memory in IEEE's 16 bit type. Greater ones than it has become its greatest.
    unsafe fn store_f16(self, to: *mut u16);
    /// The sum of two.
    unsafe fn add(self, other: Self) -> Self;
    /// The product of two.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self · other + sum`.
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self;
    /// The sum of all lanes, in the order of additions of [`Lanes::sums`].
    unsafe fn sum(self) -> f32;
    /// The sums of the lanes of four.
    unsafe fn sums(four: [Self; 4]) -> [f32; 4];
    /// Numbers of IEEE's 16 bit type.
    unsafe fn load_f16(from: *const u16) -> Self;
    /// Numbers of the type with the exponent of 32 bits.
    unsafe fn load_bf16(from: *const u16) -> Self;

    /// The first `count` numbers from memory, and zeros.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;
    /// The same of IEEE's 16 bit type.
    unsafe fn load_first_f16(from: *const u16, count: usize) -> Self;
    /// The same of the type with the exponent of 32 bits.
    unsafe fn load_first_bf16(from: *const u16, count: usize) -> Self;

    /// 32 numbers of four bits, 0 to 15, even places first.
    unsafe fn nibbles(from: *const u8) -> Self::Block;
    /// The same for floats of four bits (E2M1, as OCP's microscaling formats have them).
    unsafe fn float4(from: *const u8) -> Self::Block;
    /// 32 numbers of so many bits, packed one after another from the lowest bit on.
    unsafe fn bits<const BITS: usize>(from: *const u8) -> Self::Block;
    /// 32 floats of eight bits (E4M3).
    unsafe fn float8(from: *const u8) -> Self::Block;
    /// 32 numbers from memory.
    unsafe fn block(from: *const f32) -> Self::Block;
    /// 32 numbers of IEEE's 16 bit type.
    unsafe fn block_f16(from: *const u16) -> Self::Block;
    /// 32 numbers of the type with the exponent of 32 bits.
    unsafe fn block_bf16(from: *const u16) -> Self::Block;
    /// The block times 32 numbers from memory.
    unsafe fn scale(block: Self::Block, by: *const f32) -> Self::Block;
    /// `sum` and the products with 32 numbers from memory, lane by lane.
    unsafe fn dot(block: Self::Block, with: *const f32, sum: Self) -> Self;
    /// Numbers of these, chosen by their places, one for each lane.
    unsafe fn choose(self, places: *const i32) -> Self;
    /// Bytes from memory.
    unsafe fn bytes(from: *const u8) -> Self::Bytes;
    /// The first `count` bytes from memory, and zeros.
    unsafe fn first_bytes(from: *const u8, count: usize) -> Self::Bytes;
    /// The sums of each lane's products of numbers of four bits with numbers of 8 or 16 bits, of which there are the higher
    /// halves for even places, those for odd places, and then the lower halves, if there are such.
    unsafe fn nibble_products(numbers: Self::Bytes, halves: *const i8) -> Self;
    /// `block · by + sum`.
    unsafe fn add_scaled(block: Self::Block, by: f32, sum: Self::Block) -> Self::Block;
    /// `block · scale + bias` to memory.
    unsafe fn write(block: Self::Block, scale: f32, bias: f32, to: *mut f32);
}

/// The first `count` numbers from memory, of at most `N`, and zeros.
#[inline(always)]
unsafe fn first<T: Copy + Default, const N: usize>(from: *const T, count: usize) -> [T; N] {
    let mut numbers = [T::default(); N];
    for (place, number) in numbers.iter_mut().enumerate().take(count) {
        *number = from.add(place).read_unaligned();
    }
    numbers
}

/// The first `count` numbers of 16 bits, of at most eight, and zeros: the lower four, and the higher four. They need no
/// memory on their way into a register, which would have to wait for it.
#[inline(always)]
unsafe fn first_of_eight(from: *const u16, count: usize) -> [u64; 2] {
    if count == 8 {
        return from.cast::<[u64; 2]>().read_unaligned();
    }
    let (rest, mut bits) = (from.add(count & 4), 0);
    if count & 2 > 0 {
        bits = u64::from(rest.cast::<u32>().read_unaligned());
    }
    if count & 1 > 0 {
        let shift = 16 * (count & 2);
        bits |= u64::from(rest.add(count & 2).read_unaligned()) << shift;
    }
    match count & 4 > 0 {
        true => [from.cast::<u64>().read_unaligned(), bits],
        false => [bits, 0],
    }
}

/// The greatest number of IEEE's 16 bit type.
pub const GREATEST_F16: f32 = 65_504.0;

/// The value of E2M1 by its code.
pub const FLOAT4: [f32; 16] = [
    0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
];

/// The factor by which an E4M3 float is too small whose bits were put where 32 bit floats have theirs: the difference
/// of both biases, as a power of two. It makes subnormal numbers right, too.
pub const FLOAT8_FACTOR: f32 = (1u128 << 120) as f32;
