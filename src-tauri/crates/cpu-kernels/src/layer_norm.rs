//! Norms by mean and variance, with the sum before them.
#![allow(unsafe_code)]

use mlx::tensor::Tensor;
use mlx::Result;

use crate::isa::{for_isa, Isa};
use crate::lanes::{Compiled, Lanes};
use crate::norm::{for_rows, Factors};
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::shared::Shared;

/// `(sum - mean) / sqrt(variance + eps) · weight + bias` over the last axis of `sum = x + added`. `None` if there is no
/// kernel for it.
pub fn layer_norm(
    x: &Tensor,
    added: Option<&Tensor>,
    (weight, bias): (&Tensor, &Tensor),
    eps: f32,
) -> Result<Option<Tensor>> {
    let Some(width) = x.shape().last().copied() else {
        return Ok(None);
    };
    let mut arrays = vec![weight, bias, x];
    arrays.extend(added);
    let fits = weight.shape() == [width]
        && bias.shape() == [width]
        && added.is_none_or(|added| added.shape() == x.shape())
        && x.shape().len() <= 4
        && x.size() > 0;
    if !fits || !is_f32(&arrays) {
        return Ok(None);
    }
    let kernel = LayerNorm {
        eps,
        sums: added.is_some(),
    };
    describe_one(kernel, &arrays, x.shape()).map(Some)
}

struct LayerNorm {
    eps: f32,
    /// True if something is added before.
    sums: bool,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for LayerNorm {
    fn arrays(&self) -> usize {
        3 + usize::from(self.sums)
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, added) = (&inputs[2], inputs.get(3));
        let (width, isa) = (x.last(0), Isa::chosen());
        let [weight, bias] = [&inputs[0], &inputs[1]].map(|view| Factors::new(view, 1, width));
        let to = Shared(outputs[0].data::<f32>());
        for_rows(x.elements() / width, width, &|row| {
            let to = to.slice(row * width, width);
            match added {
                None => x.read(row, to),
                Some(added) => SUMMAND.with_borrow_mut(|summand| {
                    summand.resize(width, 0.0);
                    added.read(row, summand);
                    x.read(row, to);
                    to.iter_mut().zip(summand).for_each(|(sum, number)| *sum += *number);
                }),
            }
            norm(isa, to, [weight.row(0), bias.row(0)], self.eps);
        });
    }
}

thread_local! {
    static SUMMAND: std::cell::RefCell<Vec<f32>> = std::cell::RefCell::default();
}

/// Norms numbers in place.
fn norm(isa: Isa, numbers: &mut [f32], factors: [&[f32]; 2], eps: f32) {
    unsafe fn call<L: Lanes>(norming: Norming<'_>) {
        L::call(norming);
    }
    let norming = Norming { numbers, factors, eps };
    // SAFETY: the instruction set is one of this processor.
    unsafe { for_isa!(isa, call(norming)) };
}

/// Numbers, and their weights and biases.
struct Norming<'a> {
    numbers: &'a mut [f32],
    factors: [&'a [f32]; 2],
    eps: f32,
}

impl<L: Lanes> Compiled<L> for Norming<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let count = self.numbers.len() as f32;
        let numbers = self.numbers;
        let mean = total(numbers, |number| number) / count;
        numbers.iter_mut().for_each(|number| *number -= mean);
        let variance = total(numbers, |number| number * number) / count;
        let scale = (variance + self.eps).sqrt().recip();
        let [weights, biases] = self.factors;
        for ((number, weight), bias) in numbers.iter_mut().zip(weights).zip(biases) {
            *number = *number * scale * weight + bias;
        }
    }
}

/// The sum of a function of numbers, in sums side by side.
#[inline(always)]
fn total(numbers: &[f32], function: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0f32; 32];
    let parts = numbers.chunks_exact(32);
    let rest: f32 = parts.remainder().iter().map(|number| function(*number)).sum();
    for part in parts {
        for (sum, number) in sums.iter_mut().zip(part) {
            *sum += function(*number);
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_those_of_the_formula_for_every_instruction_set() {
        for width in [1, 7, 32, 48, 384, 1001] {
            let numbers = |step: usize, off: f32| -> Vec<f32> {
                let number = |place: usize| ((place * step + 11) % 29) as f32 / 7.0 - off;
                (0..width).map(number).collect()
            };
            let (x, weights, biases) = (numbers(17, -40.0), numbers(13, 1.0), numbers(5, 2.0));
            let wide: Vec<f64> = x.iter().copied().map(f64::from).collect();
            let mean = wide.iter().sum::<f64>() / width as f64;
            let variance = wide.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / width as f64;
            for isa in Isa::available() {
                let mut found = x.clone();
                norm(isa, &mut found, [&weights, &biases], 1e-5);
                for place in 0..width {
                    let factor = f64::from(weights[place]) / (variance + 1e-5).sqrt();
                    let right = (wide[place] - mean) * factor + f64::from(biases[place]);
                    let off = (f64::from(found[place]) - right).abs();
                    assert!(off < 1e-4, "{isa:?}, {place} of {width}: {} {right}", found[place]);
                }
            }
        }
    }
}
