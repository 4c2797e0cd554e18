//! Activations of single numbers.
#![allow(unsafe_code)]

use mlx::fused::PointwiseActivation;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::isa::{for_isa, Isa};
use crate::lanes::{Compiled, Lanes};
use crate::math::{exact_gelu, gelu, quick_gelu, relu, silu};
use crate::norm::for_rows;
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::shared::Shared;

/// The activation of every number. `None` if there is no kernel for it.
pub fn pointwise(activation: PointwiseActivation, x: &Tensor) -> Result<Option<Tensor>> {
    let fits = (1..=4).contains(&x.shape().len()) && x.size() > 0;
    if !fits || !is_f32(&[x]) {
        return Ok(None);
    }
    describe_one(Pointwise(activation), &[x], x.shape()).map(Some)
}

struct Pointwise(PointwiseActivation);

// SAFETY: it writes the rows of its output and reads its input.
unsafe impl Kernel for Pointwise {
    fn arrays(&self) -> usize {
        1
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, to) = (&inputs[0], Shared(outputs[0].data::<f32>()));
        let (width, isa) = (x.last(0), Isa::chosen());
        for_rows(x.elements() / width, width, &|row| {
            let to = to.slice(row * width, width);
            x.read(row, to);
            activate(isa, self.0, to);
        });
    }
}

/// Turns numbers into their activations.
fn activate(isa: Isa, activation: PointwiseActivation, numbers: &mut [f32]) {
    unsafe fn call<L: Lanes>(activation: PointwiseActivation, numbers: &mut [f32]) {
        match activation {
            PointwiseActivation::Gelu => L::call(Each(numbers, exact_gelu)),
            PointwiseActivation::GeluTanh => L::call(Each(numbers, gelu)),
            PointwiseActivation::QuickGelu => L::call(Each(numbers, quick_gelu)),
            PointwiseActivation::Relu => L::call(Each(numbers, relu)),
            PointwiseActivation::Silu => L::call(Each(numbers, silu)),
        }
    }
    // SAFETY: the instruction set is one of this processor.
    unsafe { for_isa!(isa, call(activation, numbers)) };
}

/// Writes the activations of products and their biases.
pub fn activate_sums(isa: Isa, activation: Option<PointwiseActivation>, terms: [&[f32]; 2], to: &mut [f32]) {
    unsafe fn call<L: Lanes>(activation: Option<PointwiseActivation>, terms: [&[f32]; 2], to: &mut [f32]) {
        match activation {
            None => L::call(EachSum(terms, to, |sum| sum)),
            Some(PointwiseActivation::Gelu) => L::call(EachSum(terms, to, exact_gelu)),
            Some(PointwiseActivation::GeluTanh) => L::call(EachSum(terms, to, gelu)),
            Some(PointwiseActivation::QuickGelu) => L::call(EachSum(terms, to, quick_gelu)),
            Some(PointwiseActivation::Relu) => L::call(EachSum(terms, to, relu)),
            Some(PointwiseActivation::Silu) => L::call(EachSum(terms, to, silu)),
        }
    }
    // SAFETY: the instruction set is one of this processor.
    unsafe { for_isa!(isa, call(activation, terms, to)) };
}

/// Numbers, and the function of each.
struct Each<'a, F>(&'a mut [f32], F);

impl<L: Lanes, F: Fn(f32) -> f32> Compiled<L> for Each<'_, F> {
    #[inline(always)]
    unsafe fn run(self) {
        for number in self.0 {
            *number = (self.1)(*number);
        }
    }
}

/// Two terms, the place of their sums, and the function of each.
struct EachSum<'a, F>([&'a [f32]; 2], &'a mut [f32], F);

impl<L: Lanes, F: Fn(f32) -> f32> Compiled<L> for EachSum<'_, F> {
    #[inline(always)]
    unsafe fn run(self) {
        let [ones, others] = self.0;
        for ((to, one), other) in self.1.iter_mut().zip(ones).zip(others) {
            *to = (self.2)(one + other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_those_of_the_formulas_for_every_instruction_set() {
        let numbers: Vec<f32> = (-120..=120).map(|step| step as f32 / 13.0).collect();
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let tanh_gelu = |x: f64| x * logistic(2.0 * 0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3)));
        let kinds: [(PointwiseActivation, &dyn Fn(f64) -> f64); 5] = [
            (PointwiseActivation::Gelu, &|x| {
                x * (1.0 + crate::math::erf_by_series(x / 2f64.sqrt())) / 2.0
            }),
            (PointwiseActivation::GeluTanh, &tanh_gelu),
            (PointwiseActivation::QuickGelu, &|x| x * logistic(1.702 * x)),
            (PointwiseActivation::Relu, &|x| x.max(0.0)),
            (PointwiseActivation::Silu, &|x| x * logistic(x)),
        ];
        for isa in Isa::available() {
            for (kind, formula) in &kinds {
                let (mut found, mut of_sums) = (numbers.clone(), vec![f32::NAN; numbers.len()]);
                activate(isa, *kind, &mut found);
                // Halves are exact.
                let halves: Vec<f32> = numbers.iter().map(|number| number / 2.0).collect();
                activate_sums(isa, Some(*kind), [&halves, &halves], &mut of_sums);
                assert_eq!(found, of_sums, "{isa:?} {kind:?}");
                for (x, found) in numbers.iter().zip(found) {
                    let right = formula(f64::from(*x));
                    assert!(
                        (f64::from(found) - right).abs() < 2e-6,
                        "{isa:?} {kind:?} {x}: {found} {right}"
                    );
                }
            }
        }
    }
}
