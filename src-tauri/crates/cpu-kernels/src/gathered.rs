//! Rows times the matrices of a stack that indices choose: experts.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::format::{Format, Stored};
use crate::gate::gated;
use crate::isa::Isa;
use crate::primitive::{describe_one, is_f32, Kernel, View};
use crate::product::{multiply, Activations, Finish, Job, Matrix, Precision};
use crate::shared::Shared;

thread_local! {
    static ROWS: RefCell<Vec<Activations>> = RefCell::default();
}

/// `x` `[…, 1, inputs]` times the transposes of the matrices that `indices` choose of a stack, `[…, 1, outputs]`; with
/// `gated`, the activation of the first half of that times the second half. `None` if there is no kernel for it.
pub fn gathered_linear(
    x: &Tensor,
    stack: Rows<'_>,
    indices: &Tensor,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let Some(stored) = Stored::of(stack) else {
        return Ok(None);
    };
    let (&[_, outputs], &[ref axes @ .., 1, inputs]) = (stored.outputs(), x.shape()) else {
        return Ok(None);
    };
    let chosen = indices.shape();
    let stretched = axes.len() == chosen.len() && axes.iter().zip(chosen).all(|(own, all)| own == all || *own == 1);
    let fits = inputs as usize == stored.inputs && stretched && chosen.len() <= 2 && indices.size() > 0;
    if !fits || !is_f32(&[x]) || indices.dtype() != Dtype::Uint32 || (gated.is_some() && outputs % 2 != 0) {
        return Ok(None);
    }
    let mut arrays = vec![x, indices];
    arrays.extend(&stored.arrays);
    let mut shape = chosen.to_vec();
    shape.extend([1, if gated.is_some() { outputs / 2 } else { outputs }]);
    let kernel = Gathered {
        format: stored.format,
        precision: Precision::chosen(),
        arrays: arrays.len(),
        inputs: stored.inputs,
        gated,
    };
    describe_one(kernel, &arrays, &shape).map(Some)
}

struct Gathered {
    format: Format,
    precision: Precision,
    arrays: usize,
    inputs: usize,
    gated: Option<GateActivation>,
}

/// The pairs of a row and its matrix, by matrix.
struct Pairs {
    /// The matrices that are used.
    matrices: Vec<usize>,
    /// The pairs of each of them.
    of: Vec<Vec<usize>>,
}

impl Pairs {
    fn new(chosen: &[usize]) -> Self {
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.sort_by_key(|pair| chosen[*pair]);
        let mut pairs = Self {
            matrices: Vec::new(),
            of: Vec::new(),
        };
        for pair in order {
            if pairs.matrices.last() != Some(&chosen[pair]) {
                pairs.matrices.push(chosen[pair]);
                pairs.of.push(Vec::new());
            }
            if let Some(last) = pairs.of.last_mut() {
                last.push(pair);
            }
        }
        pairs
    }
}

// SAFETY: it writes the rows of its output and reads its inputs; indices beyond the stack are those of its last matrix.
unsafe impl Kernel for Gathered {
    fn arrays(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, indices, weight, output) = (&inputs[0], &inputs[1], &inputs[2], &outputs[0]);
        let count = weight.shape()[0] as usize;
        let places = Places { x, indices };
        let chosen: Vec<usize> = (0..places.count())
            // SAFETY: there are so many indices.
            .map(|pair| (unsafe { places.index(pair) } as usize).min(count - 1))
            .collect();
        let pairs = Pairs::new(&chosen);
        let to = Output {
            to: Shared(output.data::<f32>()),
            count: output.last(0),
            pairs: &pairs.of,
        };
        ROWS.with_borrow_mut(|all| {
            all.resize_with(pairs.of.len().max(all.len()), Activations::default);
            for (rows, pairs) in all.iter_mut().zip(&pairs.of) {
                // SAFETY: the row of the pair is in the array.
                let read = |row: usize, to: &mut [f32]| unsafe { places.read(pairs[row], to) };
                rows.set(
                    (Isa::chosen(), self.precision),
                    &self.format,
                    self.inputs,
                    pairs.len(),
                    read,
                );
            }
            let jobs: Vec<Job<'_>> = all
                .iter()
                .zip(&pairs.matrices)
                .map(|(x, index)| {
                    let weight = weight.part(*index, self.format.word_bytes());
                    let of_groups = |array: &View| array.part(*index, self.format.scales.bytes());
                    let [scales, biases] = [inputs.get(3).map(of_groups), inputs.get(4).map(of_groups)];
                    Job {
                        x,
                        matrix: Matrix::new(self.format, self.inputs, &weight, scales.as_ref(), biases.as_ref()),
                    }
                })
                .collect();
            // SAFETY: the arrays live and have the shapes that were looked at when the operation was described.
            unsafe {
                match self.gated {
                    None => multiply(Isa::chosen(), &jobs, to.count, &to),
                    Some(activation) => multiply(Isa::chosen(), &jobs, to.count, &Gate { to: &to, activation }),
                }
            }
        });
    }
}

/// The rows and indices of pairs.
struct Places<'a> {
    x: &'a View,
    indices: &'a View,
}

impl Places<'_> {
    fn count(&self) -> usize {
        self.indices.shape().iter().product::<i64>() as usize
    }

    /// The sum of a pair's steps along the axes of the indices.
    fn offset(&self, pair: usize, view: &View) -> usize {
        let (mut rest, mut offset) = (pair, 0);
        for (axis, length) in self.indices.shape().iter().enumerate().rev() {
            let place = rest % *length as usize;
            rest /= *length as usize;
            if view.shape()[axis] > 1 {
                offset += place * view.strides()[axis] as usize;
            }
        }
        offset
    }

    unsafe fn index(&self, pair: usize) -> u32 {
        *self.indices.data::<u32>().add(self.offset(pair, self.indices))
    }

    unsafe fn read(&self, pair: usize, to: &mut [f32]) {
        let (start, stride) = (
            self.x.data::<f32>().add(self.offset(pair, self.x)),
            self.x.last_stride(0),
        );
        for (place, number) in to.iter_mut().enumerate() {
            *number = *start.add(place * stride);
        }
    }
}

/// Products, each to the place of its pair.
struct Output<'a> {
    to: Shared<f32>,
    count: usize,
    pairs: &'a [Vec<usize>],
}

impl Output<'_> {
    /// The place of an output of a row of a job.
    fn place_of(&self, job: usize, row: usize, output: usize) -> usize {
        self.pairs[job][row] * self.count + output
    }
}

impl Finish for Output<'_> {
    const TOGETHER: usize = 1;

    fn place(&self, job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(self.place_of(job, row, output))
    }

    unsafe fn finish(&self, job: usize, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
        self.to
            .slice(self.place_of(job, row, range.start), range.len())
            .copy_from_slice(products);
    }
}

/// The activation of one product times another.
struct Gate<'a> {
    to: &'a Output<'a>,
    activation: GateActivation,
}

impl Finish for Gate<'_> {
    const TOGETHER: usize = 2;

    fn place(&self, job: usize, row: usize, output: usize) -> *const f32 {
        self.to.place(job, row, output)
    }

    unsafe fn finish(&self, job: usize, row: usize, range: Range<usize>, [gates, ups]: [&[f32]; 2]) {
        let to = self.to.to.slice(self.to.place_of(job, row, range.start), range.len());
        gated(self.activation, gates, ups, to);
    }
}
