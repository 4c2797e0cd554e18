//! Blocks of llama.cpp's formats as their numbers: codes with a scale and a bias where the format is one of those, else
//! the numbers themselves. Layouts as in `ggml-quants.c`.

use super::halves::from_f16;
use crate::gguf::file::Kind;

/// Numbers that share a scale in what is made of blocks.
pub const GROUP: usize = 32;

/// Numbers as `scale · code + bias`.
pub struct Group {
    /// The codes.
    pub codes: [u8; GROUP],
    /// The scale.
    pub scale: f32,
    /// The bias.
    pub bias: f32,
}

/// The levels of `IQ4_NL` and `IQ4_XS`.
const LEVELS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

fn half(bytes: &[u8], at: usize) -> f32 {
    from_f16(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Codes of 4 bits: the lower halves of 16 bytes, then the upper ones.
pub fn nibbles(bytes: &[u8]) -> [u8; GROUP] {
    let mut codes = [0; GROUP];
    for (at, byte) in bytes.iter().take(16).enumerate() {
        (codes[at], codes[at + 16]) = (byte & 15, byte >> 4);
    }
    codes
}

/// The groups of a block of a format that is affine.
pub fn groups(kind: Kind, block: &[u8], tell: &mut dyn FnMut(Group)) {
    let group = |codes, scale, bias| Group { codes, scale, bias };
    match kind {
        Kind::Q4_0 => tell(group(nibbles(&block[2..]), half(block, 0), -8.0 * half(block, 0))),
        Kind::Q4_1 => tell(group(nibbles(&block[4..]), half(block, 0), half(block, 2))),
        Kind::Q5_0 => {
            let codes = with_fifth(nibbles(&block[6..]), &block[2..6]);
            tell(group(codes, half(block, 0), -16.0 * half(block, 0)));
        }
        Kind::Q5_1 => {
            let codes = with_fifth(nibbles(&block[8..]), &block[4..8]);
            tell(group(codes, half(block, 0), half(block, 2)));
        }
        Kind::Q8_0 => {
            let mut codes = [0; GROUP];
            for (code, byte) in codes.iter_mut().zip(&block[2..]) {
                *code = byte.wrapping_add(128);
            }
            tell(group(codes, half(block, 0), -128.0 * half(block, 0)));
        }
        Kind::Q4_K | Kind::Q5_K => k_groups(kind, block, tell),
        Kind::IQ4_NL => tell(group(levels(&block[2..]), half(block, 0), -128.0 * half(block, 0))),
        Kind::IQ4_XS => {
            let upper = u16::from_le_bytes([block[2], block[3]]);
            for part in 0..8 {
                let low = block[4 + part / 2] >> (4 * (part % 2)) & 15;
                let scale = i32::from(low) | i32::from(upper >> (2 * part) & 3) << 4;
                let scale = half(block, 0) * (scale - 32) as f32;
                tell(group(levels(&block[8 + 16 * part..]), scale, -128.0 * scale));
            }
        }
        // The others are no groups of this kind.
        _ => {}
    }
}

fn with_fifth(mut codes: [u8; GROUP], bits: &[u8]) -> [u8; GROUP] {
    for (at, code) in codes.iter_mut().enumerate() {
        *code |= (bits[at / 8] >> (at % 8) & 1) << 4;
    }
    codes
}

fn levels(bytes: &[u8]) -> [u8; GROUP] {
    nibbles(bytes).map(|code| LEVELS[usize::from(code)].wrapping_add(-128) as u8)
}

fn k_groups(kind: Kind, block: &[u8], tell: &mut dyn FnMut(Group)) {
    let (scale, least) = (half(block, 0), half(block, 2));
    let packed = &block[4..16];
    let (fifths, codes) = match kind {
        Kind::Q5_K => (Some(&block[16..48]), &block[48..]),
        _ => (None, &block[16..]),
    };
    for part in 0..8 {
        let (factor, minimum) = match part {
            0..4 => (packed[part] & 63, packed[part + 4] & 63),
            _ => (
                packed[part + 4] & 15 | packed[part - 4] >> 6 << 4,
                packed[part + 4] >> 4 | packed[part] >> 6 << 4,
            ),
        };
        let mut group = Group {
            codes: [0; GROUP],
            scale: scale * f32::from(factor),
            bias: -least * f32::from(minimum),
        };
        for (at, code) in group.codes.iter_mut().enumerate() {
            *code = codes[part / 2 * 32 + at] >> (4 * (part % 2)) & 15;
            if let Some(fifths) = fifths {
                *code |= (fifths[at] >> part & 1) << 4;
            }
        }
        tell(group);
    }
}

/// A block whose scales are for 16 numbers.
pub struct Sixteens {
    /// The numbers.
    pub numbers: [f32; 256],
    /// The difference of neighboring levels of each 16, around 0; empty if levels are not around 0.
    pub steps: Vec<f32>,
}

/// The numbers of a block of a format whose scales are for 16 numbers.
pub fn sixteens(kind: Kind, block: &[u8]) -> Sixteens {
    let mut numbers = [0.0; 256];
    let mut steps = Vec::new();
    match kind {
        Kind::Q2_K => {
            let (scale, least) = (half(block, 80), half(block, 82));
            for (at, number) in numbers.iter_mut().enumerate() {
                let packed = block[at / 16];
                let code = block[16 + at / 128 * 32 + at % 32] >> (at % 128 / 32 * 2) & 3;
                *number = scale * f32::from(packed & 15) * f32::from(code) - least * f32::from(packed >> 4);
            }
        }
        Kind::Q3_K => {
            let scale = half(block, 108);
            for (at, number) in numbers.iter_mut().enumerate() {
                let (part, shift) = (at / 16, at % 128 / 32);
                let low = block[96 + part % 8] >> (part / 8 * 4) & 15;
                let factor = i16::from(low | (block[104 + part % 4] >> (part / 4 * 2) & 3) << 4) - 32;
                if at % 16 == 0 {
                    steps.push(scale * f32::from(factor));
                }
                let code = i16::from(block[32 + at / 128 * 32 + at % 32] >> (2 * shift) & 3);
                let upper = block[at % 32] >> (at / 128 * 4 + shift) & 1;
                let code = if upper == 1 { code } else { code - 4 };
                *number = scale * f32::from(factor) * f32::from(code);
            }
        }
        Kind::Q6_K => {
            let scale = half(block, 208);
            for (at, number) in numbers.iter_mut().enumerate() {
                let (side, quarter) = (at / 128, at % 128 / 32);
                let low = block[64 * side + quarter % 2 * 32 + at % 32] >> (quarter / 2 * 4) & 15;
                let high = block[128 + 32 * side + at % 32] >> (2 * quarter) & 3;
                let factor = f32::from(block[192 + at / 16] as i8);
                if at % 16 == 0 {
                    steps.push(scale * factor);
                }
                *number = scale * factor * f32::from(i16::from(low | high << 4) - 32);
            }
        }
        // The others are groups or plain.
        _ => {}
    }
    Sixteens { numbers, steps }
}
