//! Operations on single numbers in a recorded step. MLX has them too; a recording repeats its own.

use std::rc::Rc;

use mlx::recording::{Elementwise, MAX_AXES};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::compiler::Entry;
use crate::program;
use crate::recorder;

const THREADS: u32 = 256;

const ENTRY: Entry = Entry {
    inputs: &["p", "sizes", "a", "b"],
    outputs: &["out"],
    call: "ponder_elementwise_entry(p_shape, sizes_shape, a, a_shape, b, b_shape, out);",
    waits: false,
};

fn number(operation: Elementwise) -> i32 {
    match operation {
        Elementwise::Add => 0,
        Elementwise::Subtract => 1,
        Elementwise::Multiply => 2,
        Elementwise::Divide => 3,
        Elementwise::Tanh => 4,
        Elementwise::Sigmoid => 5,
        Elementwise::Square => 6,
    }
}

/// Records an operation; `None` if its numbers are not of one type, or have more axes than the kernel walks.
pub fn elementwise(operation: Elementwise, a: &Tensor, b: &Tensor) -> Result<Option<Tensor>> {
    let axes = a.shape().len().max(b.shape().len());
    if a.dtype() != b.dtype() || axes > MAX_AXES || program::element(a.dtype()).is_none() {
        return Ok(None);
    }
    let mut sizes = [1; MAX_AXES];
    for tensor in [a, b] {
        let first = MAX_AXES - tensor.shape().len();
        for (size, length) in sizes[first..].iter_mut().zip(tensor.shape()) {
            *size = (*size).max(*length);
        }
    }
    let count: i32 = sizes.iter().product();
    let functions = include_str!("cuda/elementwise.cuh");
    let module = Rc::new(program::module("elementwise", a.dtype(), ENTRY, functions)?);
    let shape = &sizes[MAX_AXES - axes..];
    let numbers = [number(operation) + 1, count + 1];
    let steps = [steps(a, &sizes), steps(b, &sizes)];
    let grid = ((count as u32).div_ceil(THREADS), 1, THREADS);
    recorder::launch_elementwise(module, (&numbers, &sizes), [a, b], &steps, (shape, grid)).map(Some)
}

/// Elements from one place of each axis to the next, 0 where the tensor has one place for all.
fn steps(tensor: &Tensor, sizes: &[i32; MAX_AXES]) -> [i32; MAX_AXES] {
    let mut all = [0; MAX_AXES];
    let first = MAX_AXES - tensor.shape().len();
    for (axis, (step, length)) in tensor.strides().iter().zip(tensor.shape()).enumerate() {
        let stretched = *length == 1 && sizes[first + axis] > 1;
        all[first + axis] = if stretched { 0 } else { *step as i32 };
    }
    all
}
