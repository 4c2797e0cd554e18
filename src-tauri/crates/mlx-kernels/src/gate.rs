//! Gated activations.

use mlx::fused::GateActivation;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

const THREADS: i32 = 256;

/// Its number in the kernels.
pub fn number(activation: GateActivation) -> i32 {
    match activation {
        GateActivation::Silu => 0,
        GateActivation::Gelu => 1,
        GateActivation::ClippedSilu => 2,
    }
}

/// The activation of every element of `gate` times `up`, in 32 bits.
pub fn compose(activation: GateActivation, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let [mut gate, mut up] = [gate.astype(Dtype::Float32)?, up.astype(Dtype::Float32)?];
    let number = |value| Tensor::scalar(value, Dtype::Float32);
    let slope = match activation {
        GateActivation::Silu => gate.clone(),
        GateActivation::Gelu => {
            let cubic = gate.square()?.mul(&number(0.044_715)?)?.add(&number(1.0)?)?;
            gate.mul(&cubic)?.mul(&number(1.595_769)?)?
        }
        GateActivation::ClippedSilu => {
            gate = gate.minimum(&number(7.0)?)?;
            up = up.clip(&number(-7.0)?, &number(7.0)?)?.add(&number(1.0)?)?;
            gate.mul(&number(1.702)?)?
        }
    };
    slope.sigmoid()?.mul(&gate)?.mul(&up)
}

/// `activation(gate) · up` of rows. Without `up` both stand side by side in `gate` `[…, 2 · width]`; else both are
/// `[length, width]` and may be parts of wider rows. `None` if no kernel can be used.
pub fn gate(activation: GateActivation, gate: &Tensor, up: Option<&Tensor>) -> Result<Option<Tensor>> {
    let width = gate.dim(-1) / if up.is_none() { 2 } else { 1 };
    let fits = |up: &Tensor| up.dtype() == gate.dtype() && up.shape() == gate.shape() && gate.shape().len() == 2;
    if up.is_some_and(|up| !fits(up)) {
        return Ok(None);
    }
    let numbers = [1, width, i32::from(up.is_none()), number(activation)];
    let key = Key::new(Program::One, gate.dtype(), numbers);
    let kernel = find(key, |kernel| {
        compare(kernel, activation, width, gate.dtype(), up.is_none())
    });
    kernel.map(|kernel| launch(&kernel, width, gate, up)).transpose()
}

fn launch(kernel: &Kernel, width: i32, gate: &Tensor, up: Option<&Tensor>) -> Result<Tensor> {
    let mut shape = gate.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = width;
    }
    let rows: i32 = shape.iter().rev().skip(1).product();
    let blocks = ((width + THREADS - 1) / THREADS, rows);
    let up = up.unwrap_or(gate);
    let [out] = kernel.launch([gate, up, gate, gate], [(&shape, gate.dtype())], blocks, THREADS)?;
    Ok(out)
}

fn compare(kernel: &Kernel, activation: GateActivation, width: i32, dtype: Dtype, joined: bool) -> Result<f32> {
    let both = noise(&[3, 2 * width], dtype, 7)?.mul(&Tensor::scalar(3.0, dtype)?)?;
    let (first, second) = (both.slice(1, 0, width)?, both.slice(1, width, 2 * width)?);
    let made = if joined {
        launch(kernel, width, &both, None)?
    } else {
        launch(kernel, width, &first, Some(&second))?
    };
    let wanted = compose(activation, &first, &second)?;
    difference(&made, &wanted)
}
