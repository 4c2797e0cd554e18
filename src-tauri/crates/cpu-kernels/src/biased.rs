//! Projections with a bias, and the activation that follows them.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use mlx::fused::{PointwiseActivation, Rows};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::format::{Format, Stored};
use crate::isa::Isa;
use crate::norm::Factors;
use crate::pointwise::activate_sums;
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::product::{multiply, Activations, Finish, Job, Matrix, Precision};
use crate::shared::Shared;

thread_local! {
    static ROWS: RefCell<Activations> = RefCell::default();
}

/// `activation(x · matrixᵀ + bias)` of rows `[rows, inputs]`, `[rows, outputs]`. `None` if there is no kernel for the
/// matrix.
pub fn biased_linear(
    x: &Tensor,
    matrix: Rows<'_>,
    bias: &Tensor,
    activation: Option<PointwiseActivation>,
) -> Result<Option<Tensor>> {
    let (Some(stored), &[rows, width]) = (Stored::of(matrix), x.shape()) else {
        return Ok(None);
    };
    let &[outputs] = stored.outputs() else {
        return Ok(None);
    };
    let fits = bias.shape() == [1, outputs] && width as usize == stored.inputs && rows > 0;
    if !fits || !is_f32(&[x, bias]) {
        return Ok(None);
    }
    let mut arrays = vec![x, bias];
    arrays.extend(&stored.arrays);
    let kernel = BiasedLinear {
        format: stored.format,
        precision: Precision::chosen(),
        arrays: arrays.len(),
        inputs: stored.inputs,
        activation,
    };
    describe_one(kernel, &arrays, &[rows, outputs]).map(Some)
}

struct BiasedLinear {
    format: Format,
    precision: Precision,
    arrays: usize,
    inputs: usize,
    activation: Option<PointwiseActivation>,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for BiasedLinear {
    fn arrays(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, output, isa) = (&inputs[0], &outputs[0], Isa::chosen());
        let matrix = Matrix::new(self.format, self.inputs, &inputs[2], inputs.get(3), inputs.get(4));
        let count = output.last(0);
        let finish = Biased {
            to: Shared(output.data::<f32>()),
            count,
            bias: Factors::new(&inputs[1], 1, count),
            activation: self.activation,
            isa,
        };
        ROWS.with_borrow_mut(|rows| {
            rows.set(
                (isa, self.precision),
                &self.format,
                self.inputs,
                x.last(1),
                |row, to| unsafe { x.read(row, to) },
            );
            // SAFETY: the arrays live and have the shapes that were looked at when the operation was described.
            unsafe { multiply(isa, &[Job { x: rows, matrix }], count, &finish) };
        });
    }
}

/// The activation of products and their biases.
struct Biased {
    to: Shared<f32>,
    count: usize,
    bias: Factors,
    activation: Option<PointwiseActivation>,
    isa: Isa,
}

impl Finish for Biased {
    const TOGETHER: usize = 1;

    fn place(&self, _job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(row * self.count + output)
    }

    unsafe fn finish(&self, _job: usize, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
        let to = self.to.slice(row * self.count + range.start, range.len());
        activate_sums(self.isa, self.activation, [products, &self.bias.row(0)[range]], to);
    }
}
