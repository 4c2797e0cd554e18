//! Keys and values as caches keep them: in 16 bits, which halves their memory and what a token reads of it.
#![allow(unsafe_code)]

use mlx::tensor::Tensor;
use mlx::Result;

use crate::isa::for_isa;
use crate::lanes::{Compiled, Lanes};
use crate::norm::for_rows;
use crate::primitive::{describe_typed, is_f32, Float, Kernel, View};
use crate::product::Precision;
use crate::shared::Shared;

/// The type in which operations of this thread write keys and values.
pub fn kv_dtype() -> Float {
    match Precision::chosen() {
        Precision::Rounded => Float::F16,
        Precision::Floats => Float::F32,
    }
}

/// Keys or values `[…, width]` in that type; `None` if they have it, or if there is no kernel for it.
pub fn to_kv_dtype(x: &Tensor) -> Result<Option<Tensor>> {
    let fits = (1..=4).contains(&x.shape().len()) && x.size() > 0;
    if kv_dtype() == Float::F32 || !is_f32(&[x]) || !fits {
        return Ok(None);
    }
    let mut narrowed = describe_typed(Narrow, &[x], &[x.shape()], &[Float::F16])?;
    Ok(narrowed.pop())
}

struct Narrow;

// SAFETY: it writes its output and reads its input.
unsafe impl Kernel for Narrow {
    fn arrays(&self) -> usize {
        1
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, to) = (&inputs[0], Shared(outputs[0].data::<u16>()));
        let width = x.last(0);
        for_rows(x.elements() / width, width, &|row| {
            let mut numbers = vec![0.0; width];
            x.read(row, &mut numbers);
            narrow(&numbers, to.slice(row * width, width));
        });
    }
}

/// The numbers in IEEE's 16 bit type.
pub fn narrow(from: &[f32], to: &mut [u16]) {
    unsafe fn call<L: Lanes>(narrowing: Narrowing<'_>) {
        L::call(narrowing);
    }
    // SAFETY: the instruction set is one of this processor.
    unsafe { for_isa!(Isa::chosen(), call(Narrowing { from, to })) };
}

struct Narrowing<'a> {
    from: &'a [f32],
    to: &'a mut [u16],
}

impl<L: Lanes> Compiled<L> for Narrowing<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let whole = self.from.len() / L::COUNT * L::COUNT;
        for place in (0..whole).step_by(L::COUNT) {
            L::load(self.from.as_ptr().add(place)).store_f16(self.to.as_mut_ptr().add(place));
        }
        if whole < self.from.len() {
            let rest = self.from.len() - whole;
            let mut near = [0u16; 16];
            L::load_first(self.from.as_ptr().add(whole), rest).store_f16(near.as_mut_ptr());
            self.to[whole..].copy_from_slice(&near[..rest]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::isa::Isa;
    use crate::lanes::plain::{from_f16, to_f16};

    use super::*;

    #[test]
    fn every_number_of_16_bits_is_its_own_nearest() {
        for half in 0..=u16::MAX {
            let wide = from_f16(half);
            if wide.is_finite() {
                assert_eq!(to_f16(wide), half, "{wide}");
            }
        }
    }

    #[test]
    fn numbers_become_the_nearest_by_every_instruction_set() {
        let mut numbers: Vec<f32> = (0..10_000u32).map(|place| f32::from_bits(place * 429_497)).collect();
        numbers.retain(|number| !number.is_nan());
        numbers.extend([
            1e9,
            -1e9,
            f32::INFINITY,
            f32::NEG_INFINITY,
            65_504.0,
            65_519.0,
            6e-8,
            2.9e-8,
            -0.0,
        ]);
        let right: Vec<u16> = numbers.iter().map(|number| to_f16(*number)).collect();
        for isa in Isa::available() {
            let mut found = vec![0; numbers.len()];
            unsafe fn call<L: Lanes>(narrowing: Narrowing<'_>) {
                L::call(narrowing);
            }
            let (from, to) = (&numbers[..], &mut found[..]);
            // SAFETY: the instruction set is one of this processor.
            unsafe { for_isa!(isa, call(Narrowing { from, to })) };
            assert_eq!(found, right, "{isa:?}");
        }
        for (number, half) in numbers.iter().zip(right) {
            let back = from_f16(half);
            let step = (number.abs() / 1024.0).max(6e-8);
            let limited = number.clamp(-65_504.0, 65_504.0);
            assert!((back - limited).abs() <= step / 2.0 * 1.001, "{number} became {back}");
        }
    }
}
