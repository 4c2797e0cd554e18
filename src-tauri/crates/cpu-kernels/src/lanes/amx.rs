//! Tiles of AMX, which multiply bytes: Intel's servers since 2023.
//!
//! The language has no stable functions for them, so that the instructions are written out.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Rows of a tile, and numbers of 32 bits in each.
pub const SIDE: usize = 16;

/// A line of the cache: a row of a tile, or a register of AVX-512.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Line(pub [f32; SIDE]);

impl Line {
    /// Zeros.
    pub const ZERO: Self = Self([0.0; SIDE]);
    /// Its bytes.
    pub const BYTES: usize = 4 * SIDE;
}

/// True if the processor has tiles of bytes and the system lets this process use them.
pub fn is_available() -> bool {
    const FEATURES: u32 = 7;
    const TILES_OF_BYTES: u32 = 1 << 24 | 1 << 25;
    /// `ARCH_REQ_XCOMP_PERM` of Linux, and the number of the registers that are asked for.
    const ASK: libc::c_int = 0x1023;
    const TILES: libc::c_ulong = 18;
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        __cpuid_count(FEATURES, 0).edx & TILES_OF_BYTES == TILES_OF_BYTES
            // SAFETY: Linux keeps the registers of this process's threads from now on; nothing else changes.
            && unsafe { libc::syscall(libc::SYS_arch_prctl, ASK, TILES) } == 0
    })
}

/// Asks for memory that will be written; any address will do.
#[inline(always)]
pub unsafe fn prefetch_for_writing(to: *const f32) {
    asm!("prefetchw [{}]", in(reg) to, options(nostack, preserves_flags, readonly));
}

/// The shapes of the tiles, as the processor reads them.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

/// The tiles of this thread while they are used. Registers in use make switches between threads slow.
pub struct Tiles {
    depth: usize,
    of_thread: PhantomData<*const ()>,
}

impl Tiles {
    /// Tiles of `depth` inputs, 32 or 64.
    ///
    /// # Safety
    ///
    /// They are [available](is_available), and this thread has no others.
    pub unsafe fn new(depth: usize) -> Self {
        let mut shapes = Shapes {
            palette: 1,
            start: 0,
            reserved: [0; 14],
            bytes: [0; 16],
            rows: [0; 16],
        };
        // Two sets of sums; outputs for the first; both halves of rows; outputs for the second.
        let (sums, outputs, rows) = ((SIDE, Line::BYTES), (SIDE, depth), (depth / 4, Line::BYTES));
        let all = [sums, sums, sums, sums, outputs, rows, rows, outputs];
        for (tile, (rows, bytes)) in all.into_iter().enumerate() {
            (shapes.rows[tile], shapes.bytes[tile]) = (rows as u8, bytes as u16);
        }
        asm!("ldtilecfg [{}]", in(reg) &shapes, options(nostack, preserves_flags, readonly));
        Self {
            depth,
            of_thread: PhantomData,
        }
    }

    /// Multiplies 16 outputs `[outputs, depth]` of unsigned bytes with 16 rows, of which there are the higher halves
    /// `[depth / 4, rows, 4]` and then the lower ones. With `STEPS` of 2, `depth` more inputs follow in both.
    ///
    /// The sums stay in tiles, of which there are two sets, until they are [stored](Self::store): the compiler uses no
    /// tiles itself.
    ///
    /// # Safety
    ///
    /// There are so many bytes.
    #[inline(always)]
    pub unsafe fn multiply<const SECOND: bool, const STEPS: usize>(&self, outputs: *const u8, rows: *const u8) {
        macro_rules! multiply {
            ($high:tt, $low:tt, $outputs:tt) => {{
                asm!(
                    concat!("tilezero ", $high),
                    concat!("tilezero ", $low),
                    out($high) _, out($low) _,
                    options(nostack, preserves_flags, nomem)
                );
                for step in 0..STEPS {
                    let rows = rows.add(2 * step * SIDE * self.depth);
                    asm!(
                        "tileloadd tmm5, [{rows} + {line}*1]",
                        concat!("tileloadd ", $outputs, ", [{outputs} + {depth}*1]"),
                        "tileloadd tmm6, [{low} + {line}*1]",
                        concat!("tdpbusd ", $high, ", ", $outputs, ", tmm5"),
                        concat!("tdpbusd ", $low, ", ", $outputs, ", tmm6"),
                        rows = in(reg) rows,
                        low = in(reg) rows.add(SIDE * self.depth),
                        outputs = in(reg) outputs.add(step * SIDE * self.depth),
                        depth = in(reg) self.depth,
                        line = in(reg) Line::BYTES,
                        out($high) _, out($low) _, out($outputs) _, out("tmm5") _, out("tmm6") _,
                        options(nostack, preserves_flags, readonly)
                    );
                }
            }};
        }
        match SECOND {
            false => multiply!("tmm0", "tmm1", "tmm4"),
            true => multiply!("tmm2", "tmm3", "tmm7"),
        }
    }

    /// Writes the sums of a set as whole numbers `[outputs, rows]`: of the higher halves, then of the lower ones.
    ///
    /// # Safety
    ///
    /// There is room for two tiles.
    #[inline(always)]
    pub unsafe fn store<const SECOND: bool>(&self, to: *mut Line) {
        macro_rules! store {
            ($high:tt, $low:tt) => {
                asm!(
                    concat!("tilestored [{to} + {line}*1], ", $high),
                    concat!("tilestored [{to} + {line}*1 + 1024], ", $low),
                    to = in(reg) to,
                    line = in(reg) Line::BYTES,
                    options(nostack, preserves_flags)
                )
            };
        }
        match SECOND {
            false => store!("tmm0", "tmm1"),
            true => store!("tmm2", "tmm3"),
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: whoever has made this had tiles.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) };
    }
}
