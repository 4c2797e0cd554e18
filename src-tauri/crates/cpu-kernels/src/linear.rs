//! Rows times the transpose of a matrix, as operations.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use mlx::fused::{Epilogue, GateActivation, ResidualInput, Rows};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::format::{Format, Stored};
use crate::gate::gated;
use crate::isa::Isa;
use crate::norm::Sum;
use crate::primitive::{describe, describe_one, is_f32, Kernel, View};
use crate::product::{multiply, Activations, Finish, Job, Matrix, Precision};
use crate::shared::Shared;

thread_local! {
    static ROWS: RefCell<Activations> = RefCell::default();
}

/// `x` `[rows, inputs]` times the transpose of a matrix, `[rows, outputs]`; with `gated`, the activation of the first
/// half of that times the second half. `None` if there is no kernel for the matrix.
pub fn linear(x: &Tensor, matrix: Rows<'_>, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
    let (Some(stored), &[rows, width]) = (Stored::of(matrix), x.shape()) else {
        return Ok(None);
    };
    let &[outputs] = stored.outputs() else {
        return Ok(None);
    };
    let halves = gated.is_none() || outputs % 2 == 0;
    if !is_f32(&[x]) || width as usize != stored.inputs || rows == 0 || !halves {
        return Ok(None);
    }
    let outputs = if gated.is_some() { outputs / 2 } else { outputs };
    let mut arrays = vec![x];
    arrays.extend(&stored.arrays);
    let kernel = Linear {
        format: stored.format,
        precision: Precision::chosen(),
        arrays: arrays.len(),
        inputs: stored.inputs,
        gated,
    };
    describe_one(kernel, &arrays, &[rows, outputs]).map(Some)
}

/// The normed rows times the transpose of the matrix, `[rows, outputs]`, and the rows before their norm. `None` if there
/// is no kernel for it.
pub fn norm_linear(row: ResidualInput<'_>, matrix: Rows<'_>, after: Epilogue<'_>) -> Result<Option<(Tensor, Tensor)>> {
    let (Some((sum, mut arrays)), Some(stored)) = (Sum::new(row), Stored::of(matrix)) else {
        return Ok(None);
    };
    let &[outputs] = stored.outputs() else {
        return Ok(None);
    };
    let (outputs, after) = match after {
        Epilogue::Plain => (outputs, After::Plain),
        Epilogue::Gated(_) if outputs % 2 > 0 => return Ok(None),
        Epilogue::Gated(activation) => (outputs / 2, After::Gated(activation)),
        Epilogue::Times(activation, other) => {
            if other.shape() != [row.h.dim(0), outputs] || !is_f32(&[other]) {
                return Ok(None);
            }
            arrays.push(other);
            (outputs, After::Times(activation))
        }
    };
    if sum.width != stored.inputs {
        return Ok(None);
    }
    let own = arrays.len();
    arrays.extend(&stored.arrays);
    let kernel = NormLinear {
        sum,
        own,
        arrays: arrays.len(),
        format: stored.format,
        precision: Precision::chosen(),
        after,
    };
    let shape = [row.h.dim(0), outputs];
    let mut both = describe(kernel, &arrays, &[&shape, row.h.shape()])?;
    let sum = both.pop();
    Ok(both.pop().zip(sum))
}

/// The treatment of products; their factors, if there are any, are the last array before the matrix.
#[derive(Clone, Copy)]
enum After {
    Plain,
    Gated(GateActivation),
    Times(GateActivation),
}

struct NormLinear {
    sum: Sum,
    /// Arrays before those of the matrix.
    own: usize,
    arrays: usize,
    format: Format,
    precision: Precision,
    after: After,
}

// SAFETY: it writes the rows of its outputs and reads its inputs.
unsafe impl Kernel for NormLinear {
    fn arrays(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let width = self.sum.width;
        let (own, stored) = inputs.split_at(self.own);
        let matrix = Matrix::new(self.format, width, &stored[0], stored.get(1), stored.get(2));
        let (count, length) = (outputs[0].last(0), outputs[0].last(1));
        let (to, sum) = (Shared(outputs[0].data::<f32>()), Shared(outputs[1].data::<f32>()));
        let read = self.sum.read(own);
        ROWS.with_borrow_mut(|rows| {
            rows.set(
                (Isa::chosen(), self.precision),
                &self.format,
                width,
                length,
                |row, normed| {
                    // SAFETY: each row is written by one thread.
                    unsafe {
                        read.row(
                            row,
                            std::slice::from_raw_parts_mut(sum.at(row * width), width),
                            Some(normed),
                        )
                    };
                },
            );
            let (jobs, isa) = ([Job { x: rows, matrix }], Isa::chosen());
            // SAFETY: the arrays live and have the shapes that were looked at when the operation was described.
            unsafe {
                match self.after {
                    After::Plain => multiply(isa, &jobs, count, &Written { to, count }),
                    After::Gated(activation) => multiply(isa, &jobs, count, &Gated { to, count, activation }),
                    After::Times(activation) => {
                        let other = &own[self.own - 1];
                        multiply(
                            isa,
                            &jobs,
                            count,
                            &Times {
                                to,
                                count,
                                activation,
                                other,
                            },
                        );
                    }
                }
            }
        });
    }
}

/// The activation of products times other numbers.
struct Times<'a> {
    to: Shared<f32>,
    count: usize,
    activation: GateActivation,
    other: &'a View,
}

impl Finish for Times<'_> {
    const TOGETHER: usize = 1;

    fn place(&self, _job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(row * self.count + output)
    }

    unsafe fn finish(&self, _job: usize, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
        let (start, stride) = (
            self.other.data::<f32>().add(row * self.other.last_stride(1)),
            self.other.last_stride(0),
        );
        let others: Vec<f32> = range.clone().map(|output| *start.add(output * stride)).collect();
        let to = std::slice::from_raw_parts_mut(self.to.at(row * self.count + range.start), range.len());
        gated(self.activation, products, &others, to);
    }
}

struct Linear {
    format: Format,
    precision: Precision,
    arrays: usize,
    inputs: usize,
    gated: Option<GateActivation>,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for Linear {
    fn arrays(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, output) = (&inputs[0], &outputs[0]);
        let matrix = Matrix::new(self.format, self.inputs, &inputs[1], inputs.get(2), inputs.get(3));
        let count = output.last(0);
        let to = Shared(output.data::<f32>());
        ROWS.with_borrow_mut(|rows| {
            rows.set(
                (Isa::chosen(), self.precision),
                &self.format,
                self.inputs,
                x.last(1),
                |row, to| unsafe { x.read(row, to) },
            );
            // SAFETY: the arrays live and have the shapes that were looked at when the operation was described.
            unsafe {
                let jobs = [Job { x: rows, matrix }];
                match self.gated {
                    None => multiply(Isa::chosen(), &jobs, count, &Written { to, count }),
                    Some(activation) => multiply(Isa::chosen(), &jobs, count, &Gated { to, count, activation }),
                }
            }
        });
    }
}

/// Products as they are.
struct Written {
    to: Shared<f32>,
    count: usize,
}

impl Finish for Written {
    const TOGETHER: usize = 1;

    fn place(&self, _job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(row * self.count + output)
    }

    unsafe fn finish(&self, _job: usize, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
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

    fn place(&self, _job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(row * self.count + output)
    }

    unsafe fn finish(&self, _job: usize, row: usize, range: Range<usize>, [gates, ups]: [&[f32]; 2]) {
        let to = std::slice::from_raw_parts_mut(self.to.at(row * self.count + range.start), range.len());
        gated(self.activation, gates, ups, to);
    }
}
