//! Kinds of numbers that tensors hold.

use crate::error::{Error, Result};

/// The format of a tensor's numbers. Blocks of `block()` numbers of a row take `bytes()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub enum Kind {
    /// 32 bit floats.
    F32,
    /// 16 bit floats.
    F16,
    /// The upper halves of 32 bit floats.
    BF16,
    /// 4 bits times a scale, around 0.
    Q4_0,
    /// 4 bits times a scale, above a minimum.
    Q4_1,
    /// 5 bits, as `Q4_0`.
    Q5_0,
    /// 5 bits, as `Q4_1`.
    Q5_1,
    /// 8 bits times a scale.
    Q8_0,
    /// 2 bits in blocks of 16 whose scales are quantized.
    Q2_K,
    /// 3 bits in blocks of 16 whose scales are quantized.
    Q3_K,
    /// 4 bits in blocks of 32 whose scales are quantized.
    Q4_K,
    /// 5 bits in blocks of 32 whose scales are quantized.
    Q5_K,
    /// 6 bits in blocks of 16 whose scales are quantized.
    Q6_K,
    /// 4 bits that choose one of 16 levels.
    IQ4_NL,
    /// The same in blocks whose scales are quantized.
    IQ4_XS,
    /// 4 bit floats with a power of two for 32.
    MXFP4,
}

/// The numbers of the formats in files, their names, the numbers of a block and its bytes.
const KINDS: [(u32, Kind, &str, u64, u64); 16] = [
    (0, Kind::F32, "F32", 1, 4),
    (1, Kind::F16, "F16", 1, 2),
    (30, Kind::BF16, "BF16", 1, 2),
    (2, Kind::Q4_0, "Q4_0", 32, 18),
    (3, Kind::Q4_1, "Q4_1", 32, 20),
    (6, Kind::Q5_0, "Q5_0", 32, 22),
    (7, Kind::Q5_1, "Q5_1", 32, 24),
    (8, Kind::Q8_0, "Q8_0", 32, 34),
    (10, Kind::Q2_K, "Q2_K", 256, 84),
    (11, Kind::Q3_K, "Q3_K", 256, 110),
    (12, Kind::Q4_K, "Q4_K", 256, 144),
    (13, Kind::Q5_K, "Q5_K", 256, 176),
    (14, Kind::Q6_K, "Q6_K", 256, 210),
    (20, Kind::IQ4_NL, "IQ4_NL", 32, 18),
    (23, Kind::IQ4_XS, "IQ4_XS", 256, 136),
    (39, Kind::MXFP4, "MXFP4", 32, 17),
];

/// Formats that are known by name alone.
const REFUSED: [(u32, &str); 17] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (40, "NVFP4"),
];

impl Kind {
    /// The format of this number.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with its name.
    pub(super) fn of(number: u32, tensor: &str) -> Result<Self> {
        if let Some((_, kind, ..)) = KINDS.iter().find(|(known, ..)| *known == number) {
            return Ok(*kind);
        }
        let name = REFUSED.iter().find(|(known, _)| *known == number);
        let name = name.map_or_else(|| format!("number {number}"), |(_, name)| (*name).to_owned());
        Err(Error::Unsupported(format!("weights of the format {name} (`{tensor}`)")))
    }

    fn row(self) -> &'static (u32, Kind, &'static str, u64, u64) {
        KINDS.iter().find(|(_, kind, ..)| *kind == self).unwrap_or(&KINDS[0])
    }

    /// Its name in llama.cpp.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Numbers of a block.
    pub fn block(self) -> u64 {
        self.row().3
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        self.row().4
    }

    /// True for numbers without scales.
    pub fn is_plain(self) -> bool {
        self.block() == 1
    }
}
