//! Rows times the transpose of a matrix, as operations.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use mlx::fused::GateActivation;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::format::Format;
use crate::isa::Isa;
use crate::math::{gelu, silu};
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::product::activations::Shared;
use crate::product::{multiply, Activations, Finish, Matrix};

thread_local! {
    static ROWS: RefCell<Activations> = RefCell::default();
}

/// `x` `[rows, inputs]` times the transpose of a quantized matrix, `[rows, outputs]`; with `gated`, the activation of
/// the first half of that times the second half. `None` if there is no kernel for the matrix.
pub fn quantized(x: &Tensor, matrix: &QuantizedTensor, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
    let (Some(format), &[outputs, groups]) = (Format::of(matrix), matrix.scales.shape()) else {
        return Ok(None);
    };
    let inputs = groups * matrix.format.group_size;
    let mut arrays = vec![x, &matrix.weight, &matrix.scales];
    arrays.extend(&matrix.biases);
    linear(format, [inputs, outputs], &arrays, gated)
}

/// The same for a matrix of plain numbers `[outputs, inputs]`.
pub fn plain(x: &Tensor, rows: &Tensor, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
    match (Format::plain(rows.dtype()), rows.shape()) {
        (Some(format), &[outputs, inputs]) => linear(format, [inputs, outputs], &[x, rows], gated),
        _ => Ok(None),
    }
}

fn linear(
    format: Format,
    [inputs, outputs]: [i32; 2],
    arrays: &[&Tensor],
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let x = arrays[0];
    let &[rows, width] = x.shape() else {
        return Ok(None);
    };
    let halves = gated.is_none() || outputs % 2 == 0;
    if !is_f32(&[x]) || width != inputs || rows == 0 || (format.group == 16 && inputs % 32 != 0) || !halves {
        return Ok(None);
    }
    let outputs = if gated.is_some() { outputs / 2 } else { outputs };
    let kernel = Linear { format, arrays: arrays.len(), inputs: inputs as usize, gated };
    describe_one(kernel, arrays, &[rows, outputs]).map(Some)
}

struct Linear {
    format: Format,
    arrays: usize,
    inputs: usize,
    gated: Option<GateActivation>,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for Linear {
    fn inputs(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, output) = (&inputs[0], &outputs[0]);
        let matrix = Matrix::new(self.format, self.inputs, &inputs[1], inputs.get(2), inputs.get(3));
        let count = output.last(0);
        let to = Shared(output.data::<f32>());
        ROWS.with_borrow_mut(|rows| {
            rows.set(&self.format, self.inputs, x.last(1), |row, to| unsafe { read_row(x, row, to) });
            // SAFETY: the arrays live and have the shapes that were looked at when the operation was described.
            unsafe {
                match self.gated {
                    None => multiply(Isa::chosen(), rows, &matrix, count, &Written { to, count }),
                    Some(activation) => multiply(Isa::chosen(), rows, &matrix, count, &Gated { to, count, activation }),
                }
            }
        });
    }
}

/// A row of an array of two axes.
///
/// # Safety
///
/// There is such a row, of as many 32 bit floats as the slice has.
pub unsafe fn read_row(from: &View, row: usize, to: &mut [f32]) {
    let (start, stride) = (from.data::<f32>().add(row * from.last_stride(1)), from.last_stride(0));
    match stride {
        1 => to.copy_from_slice(std::slice::from_raw_parts(start, to.len())),
        _ => {
            for (place, number) in to.iter_mut().enumerate() {
                *number = *start.add(place * stride);
            }
        }
    }
}

/// Products as they are.
struct Written {
    to: Shared<f32>,
    count: usize,
}

impl Finish for Written {
    const TOGETHER: usize = 1;

    unsafe fn finish(&self, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
        let to = std::slice::from_raw_parts_mut(self.to.at(row * self.count + range.start), range.len());
        to.copy_from_slice(products);
    }
}

/// The activation of one product times another.
struct Gated {
    to: Shared<f32>,
    count: usize,
    activation: GateActivation,
}

impl Finish for Gated {
    const TOGETHER: usize = 2;

    unsafe fn finish(&self, row: usize, range: Range<usize>, [gates, ups]: [&[f32]; 2]) {
        let to = std::slice::from_raw_parts_mut(self.to.at(row * self.count + range.start), range.len());
        let all = to.iter_mut().zip(gates).zip(ups);
        match self.activation {
            GateActivation::Silu => all.for_each(|((to, gate), up)| *to = silu(*gate) * up),
            GateActivation::Gelu => all.for_each(|((to, gate), up)| *to = gelu(*gate) * up),
        }
    }
}
