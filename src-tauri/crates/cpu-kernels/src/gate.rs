//! Gates: the activation of some numbers times others.
#![allow(unsafe_code)]

use mlx::fused::GateActivation;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::math::{clipped_silu, gelu, silu};
use crate::norm::for_rows;
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::shared::Shared;

/// `activation(gate) · up` of rows. Without `up` both stand side by side in the last axis of `gate`. `None` if there is
/// no kernel for it.
pub fn gate(activation: GateActivation, gate: &Tensor, up: Option<&Tensor>) -> Result<Option<Tensor>> {
    let mut shape = gate.shape().to_vec();
    let Some(width) = shape.last_mut() else {
        return Ok(None);
    };
    let fits = match up {
        Some(up) => up.shape() == gate.shape() && is_f32(&[up]),
        None => *width % 2 == 0,
    };
    if !fits || !is_f32(&[gate]) || gate.size() == 0 || gate.shape().len() > 4 {
        return Ok(None);
    }
    if up.is_none() {
        *width /= 2;
    }
    let mut arrays = vec![gate];
    arrays.extend(up);
    describe_one(
        Gate {
            activation,
            apart: up.is_some(),
        },
        &arrays,
        &shape,
    )
    .map(Some)
}

struct Gate {
    activation: GateActivation,
    apart: bool,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for Gate {
    fn arrays(&self) -> usize {
        1 + usize::from(self.apart)
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let width = outputs[0].last(0);
        let to = Shared(outputs[0].data::<f32>());
        for_rows(outputs[0].elements() / width, width, &|row| {
            let to = std::slice::from_raw_parts_mut(to.at(row * width), width);
            let mut numbers = vec![0.0; 2 * width];
            match inputs.get(1) {
                Some(up) => {
                    inputs[0].read(row, &mut numbers[..width]);
                    up.read(row, &mut numbers[width..]);
                }
                None => inputs[0].read(row, &mut numbers),
            }
            let (gates, ups) = numbers.split_at(width);
            gated(self.activation, gates, ups, to);
        });
    }
}

/// The activation of `gates` times `ups`.
pub fn gated(activation: GateActivation, gates: &[f32], ups: &[f32], to: &mut [f32]) {
    let all = to.iter_mut().zip(gates).zip(ups);
    match activation {
        GateActivation::Silu => all.for_each(|((to, gate), up)| *to = silu(*gate) * up),
        GateActivation::Gelu => all.for_each(|((to, gate), up)| *to = gelu(*gate) * up),
        GateActivation::ClippedSilu => all.for_each(|((to, gate), up)| *to = clipped_silu(*gate, *up)),
    }
}
