//! 16 bit floats in both formats.

/// A 16 bit format of scales and plain numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// IEEE's: fine steps up to 65,504.
    F16,
    /// The upper half of a 32 bit float: coarse steps, no bound.
    BF16,
}

impl Half {
    /// Its name in headers of safetensors files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "F16",
            Self::BF16 => "BF16",
        }
    }

    /// The nearest number.
    pub fn round(self, number: f32) -> u16 {
        match self {
            Self::F16 => to_f16(number),
            Self::BF16 => to_bf16(number),
        }
    }

    /// The number that these bits stand for.
    pub fn widen(self, bits: u16) -> f32 {
        match self {
            Self::F16 => from_f16(bits),
            Self::BF16 => f32::from_bits(u32::from(bits) << 16),
        }
    }
}

/// IEEE's half as a 32 bit float.
pub fn from_f16(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, bits >> 10 & 31, bits & 1023);
    let size = match exponent {
        // Steps of 2⁻²⁴ around 0.
        0 => f32::from(fraction) / 16_777_216.0,
        31 => f32::from_bits(0x7F80_0000 | u32::from(fraction) << 13),
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
    };
    f32::from_bits(size.to_bits() | sign)
}

fn to_f16(number: f32) -> u16 {
    let bits = number.to_bits();
    let (sign, size) = ((bits >> 16) as u16 & 0x8000, bits & 0x7FFF_FFFF);
    let half = match size {
        0x7F80_0001.. => 0x7E00,
        // Nearer to 65,536 than to the largest number.
        0x477F_F000.. => 0x7C00,
        ..0x3880_0000 => (f32::from_bits(size) * 16_777_216.0).round_ties_even() as u16,
        _ => ((size + 0xFFF + (size >> 13 & 1) - 0x3800_0000) >> 13) as u16,
    };
    sign | half
}

fn to_bf16(number: f32) -> u16 {
    let bits = number.to_bits();
    if number.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_itself_again_and_others_become_the_nearest() {
        for bits in 0..=u16::MAX {
            for half in [Half::F16, Half::BF16] {
                let wide = half.widen(bits);
                assert!(wide.is_nan() || half.round(wide) == bits, "{bits:x} {half:?}");
            }
        }
        for (number, bits) in [
            (65_519.0, 0x7BFF),
            (65_520.0, 0x7C00),
            (1.0 + 1.0 / 2048.0, 0x3C00),
            (1.0 + 3.0 / 2048.0, 0x3C02),
            (-6.0e-8, 0x8001),
            (2.0e-8, 0),
            (6.1e-5, 0x3FF),
        ] {
            assert_eq!(Half::F16.round(number), bits, "{number}");
        }
        assert_eq!(Half::BF16.round(1.0 + 1.0 / 256.0), 0x3F80);
        assert_eq!(Half::BF16.round(f32::MAX), 0x7F80);
    }
}
