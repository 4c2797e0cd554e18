//! The numbers of tensors, from llama.cpp's blocks to MLX's words, scales and biases.

mod decode;
mod halves;
#[cfg(test)]
mod tests;

use crate::config::{Mode, Quantization};
use crate::error::{Error, Result};
use crate::gguf::file::Kind;

use decode::{groups, nibbles, sixteens, Group, GROUP};
pub use halves::Half;

/// The way from a format to one of MLX's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Numbers stay numbers.
    Plain,
    /// Codes stay codes of so many bits.
    Kept(u32),
    /// Numbers get new codes of so many bits.
    Anew(u32),
    /// 4 bit floats stay such.
    Floats,
}

impl Way {
    /// The way of a format.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::F32 | Kind::F16 | Kind::BF16 => Self::Plain,
            Kind::Q4_0 | Kind::Q4_1 | Kind::Q4_K => Self::Kept(4),
            Kind::Q5_0 | Kind::Q5_1 | Kind::Q5_K => Self::Kept(5),
            // 16 levels that are no equal steps, as the whole numbers that they are.
            Kind::Q8_0 | Kind::IQ4_NL | Kind::IQ4_XS => Self::Kept(8),
            Kind::Q6_K => Self::Anew(8),
            Kind::Q3_K | Kind::Q2_K => Self::Anew(4),
            Kind::MXFP4 => Self::Floats,
        }
    }

    /// MLX's format; `None` for plain numbers.
    pub fn quantization(self) -> Option<Quantization> {
        let (bits, mode) = match self {
            Self::Plain => return None,
            Self::Kept(bits) | Self::Anew(bits) => (bits, Mode::Affine),
            Self::Floats => (4, Mode::Mxfp4),
        };
        Some(Quantization {
            group_size: GROUP as u32,
            bits,
            mode,
        })
    }
}

/// The loss of tensors whose numbers were rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loss {
    largest_error: f64,
    largest: f64,
    errors: f64,
    sizes: f64,
}

impl Loss {
    fn add(&mut self, before: f32, after: f32) {
        let (size, error) = (f64::from(before.abs()), f64::from((before - after).abs()));
        self.largest_error = self.largest_error.max(error);
        self.largest = self.largest.max(size);
        self.errors += error;
        self.sizes += size;
    }

    /// That of both together; the largest error by its own tensor's largest number stays.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let worse = if other.worst() > self.worst() { other } else { self };
        Self {
            largest_error: worse.largest_error,
            largest: worse.largest,
            errors: self.errors + other.errors,
            sizes: self.sizes + other.sizes,
        }
    }

    /// The largest error, by the largest number.
    pub fn worst(&self) -> f64 {
        if self.largest > 0.0 {
            self.largest_error / self.largest
        } else {
            0.0
        }
    }

    /// The mean error, by the mean size of numbers.
    pub fn mean(&self) -> f64 {
        if self.sizes > 0.0 {
            self.errors / self.sizes
        } else {
            0.0
        }
    }
}

/// The bytes of a tensor's parts as MLX has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Words of codes, or plain numbers.
    pub weight: Vec<u8>,
    /// A scale per group.
    pub scales: Vec<u8>,
    /// A bias per group, in the affine format.
    pub biases: Vec<u8>,
}

/// How numbers are written.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The format of scales, and of plain numbers; `None` if plain numbers stay 32 bits wide.
    pub half: Option<Half>,
    /// The change of plain numbers.
    pub change: Change,
}

/// The change of a plain number that undoes one of the converter of llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// None.
    Stays,
    /// This one is added.
    Add(f32),
    /// The logarithm of its negative.
    Logarithm,
}

impl Change {
    fn of(self, number: f32) -> f32 {
        match self {
            Self::Stays => number,
            Self::Add(added) => number + added,
            Self::Logarithm => (-number).ln(),
        }
    }
}

/// Rows of a tensor as MLX has them. `bytes` are whole rows.
///
/// # Errors
/// [`Error::Unsupported`] if a number is none that 16 bits hold.
pub fn convert(kind: Kind, target: Target, name: &str, bytes: &[u8], loss: &mut Loss) -> Result<Parts> {
    let mut parts = Parts::default();
    let half = target.half.unwrap_or(Half::F16);
    let blocks = bytes.chunks_exact(kind.bytes() as usize);
    let mut packer = Packer {
        parts: &mut parts,
        half,
        loss,
        beyond: None,
    };
    match Way::of(kind) {
        Way::Plain => packer.plain(kind, target, bytes),
        Way::Kept(bits) => blocks.for_each(|block| groups(kind, block, &mut |group| packer.group(&group, bits))),
        Way::Anew(bits) => {
            for block in blocks {
                let block = sixteens(kind, block);
                for (at, numbers) in block.numbers.chunks_exact(GROUP).enumerate() {
                    let steps = block.steps.get(2 * at..2 * at + 2).unwrap_or_default();
                    packer.anew(numbers, steps, bits);
                }
            }
        }
        Way::Floats => {
            for block in blocks {
                packer.pack(&nibbles(&block[1..]), 4);
                packer.parts.scales.push(block[0]);
                if block[0] == u8::MAX {
                    packer.beyond = Some(f32::NAN);
                }
            }
        }
    }
    match packer.beyond {
        Some(number) => Err(Error::Unsupported(format!(
            "the number {number} in `{name}`, which {} cannot hold",
            half.name()
        ))),
        None => Ok(parts),
    }
}

struct Packer<'a> {
    parts: &'a mut Parts,
    half: Half,
    loss: &'a mut Loss,
    /// A number that the format cannot hold.
    beyond: Option<f32>,
}

impl Packer<'_> {
    fn round(&mut self, number: f32) -> u16 {
        let half = self.half.round(number);
        if !self.half.widen(half).is_finite() {
            self.beyond = Some(number);
        }
        half
    }

    fn plain(&mut self, kind: Kind, target: Target, bytes: &[u8]) {
        let stays = match (kind, target.half) {
            (Kind::F32, None) => true,
            (Kind::F16, Some(half)) => half == Half::F16,
            (Kind::BF16, Some(half)) => half == Half::BF16,
            _ => false,
        };
        if stays && target.change == Change::Stays {
            self.parts.weight.extend_from_slice(bytes);
            return;
        }
        for number in bytes.chunks_exact(kind.bytes() as usize) {
            let wide = match (kind, number) {
                (Kind::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
                (Kind::F16, &[a, b]) => Half::F16.widen(u16::from_le_bytes([a, b])),
                (_, &[a, b]) => Half::BF16.widen(u16::from_le_bytes([a, b])),
                _ => f32::NAN,
            };
            let wide = target.change.of(wide);
            if target.half.is_none() {
                self.parts.weight.extend(wide.to_le_bytes());
                continue;
            }
            let half = self.round(wide);
            self.loss.add(wide, self.half.widen(half));
            self.parts.weight.extend(half.to_le_bytes());
        }
    }

    /// Appends codes as one stream of bits, the first ones lowest.
    fn pack(&mut self, codes: &[u8; GROUP], bits: u32) {
        if bits == 8 {
            self.parts.weight.extend(codes);
            return;
        }
        let (mut held, mut count) = (0_u32, 0);
        for code in codes {
            held |= u32::from(*code) << count;
            count += bits;
            while count >= 8 {
                self.parts.weight.push(held as u8);
                held >>= 8;
                count -= 8;
            }
        }
    }

    fn group(&mut self, group: &Group, bits: u32) {
        let (scale, bias) = (self.round(group.scale), self.round(group.bias));
        let (near_scale, near_bias) = (self.half.widen(scale), self.half.widen(bias));
        self.pack(&group.codes, bits);
        self.parts.scales.extend(scale.to_le_bytes());
        self.parts.biases.extend(bias.to_le_bytes());
        let exact = (near_scale, near_bias) == (group.scale, group.bias);
        for code in group.codes {
            let before = group.scale * f32::from(code) + group.bias;
            let after = if exact {
                before
            } else {
                near_scale * f32::from(code) + near_bias
            };
            self.loss.add(before, after);
        }
    }

    /// New codes of a group: of equal steps from the least to the largest number, and of parts of one of its own
    /// steps around 0, which keep the half that has it, those that lose least.
    fn anew(&mut self, numbers: &[f32], steps: &[f32], bits: u32) {
        let most = (1_u32 << bits) - 1;
        let least = numbers.iter().copied().fold(f32::INFINITY, f32::min);
        let largest = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut best = self.coded(numbers, (largest - least) / most as f32, least, bits);
        for step in steps {
            // A quarter of 64 levels, a half of 8: the range stays.
            let parts = if bits == 8 { 4.0 } else { 2.0 };
            let start = -step / parts * (1_u32 << (bits - 1)) as f32;
            let other = self.coded(numbers, step / parts, start, bits);
            if other.error < best.error {
                best = other;
            }
        }
        let (scale, bias) = (self.round(best.scale), self.round(best.bias));
        for (code, number) in best.codes.iter().zip(numbers) {
            self.loss.add(*number, best.scale * f32::from(*code) + best.bias);
        }
        self.pack(&best.codes, bits);
        self.parts.scales.extend(scale.to_le_bytes());
        self.parts.biases.extend(bias.to_le_bytes());
    }

    /// The nearest codes, with a scale and a bias as they will be stored.
    fn coded(&self, numbers: &[f32], scale: f32, bias: f32, bits: u32) -> Coded {
        let most = ((1_u32 << bits) - 1) as f32;
        let near = |number: f32| self.half.widen(self.half.round(number));
        let mut coded = Coded {
            codes: [0; GROUP],
            scale: near(scale),
            bias: near(bias),
            error: 0.0,
        };
        for (code, number) in coded.codes.iter_mut().zip(numbers) {
            if coded.scale != 0.0 {
                *code = ((number - coded.bias) / coded.scale).round().clamp(0.0, most) as u8;
            }
            coded.error += (coded.scale * f32::from(*code) + coded.bias - number).powi(2);
        }
        coded
    }
}

/// Codes of a group, and the sum of their squared errors.
struct Coded {
    codes: [u8; GROUP],
    scale: f32,
    bias: f32,
    error: f32,
}
