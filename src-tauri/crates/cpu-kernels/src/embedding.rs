//! Rows of a table by their numbers.
#![allow(unsafe_code)]

use mlx::fused::Rows;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::format::{Format, Stored};
use crate::isa::Isa;
use crate::lanes::BLOCK;
use crate::primitive::{describe_one, Kernel, View};
use crate::product::{numbers, Matrix};

/// The rows of `ids` `[length]` as 32 bit floats, `[length, width]`. `None` if there is no kernel for the table.
pub fn embedding(table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
    let (Some(stored), &[length]) = (Stored::of(table), ids.shape()) else {
        return Ok(None);
    };
    let fits = stored.outputs().len() == 1 && stored.inputs.is_multiple_of(BLOCK);
    if !fits || ids.dtype() != Dtype::Uint32 || length == 0 {
        return Ok(None);
    }
    let mut arrays = vec![ids];
    arrays.extend(&stored.arrays);
    let kernel = Embedding {
        format: stored.format,
        arrays: arrays.len(),
        inputs: stored.inputs,
    };
    describe_one(kernel, &arrays, &[length, stored.inputs as i32]).map(Some)
}

struct Embedding {
    format: Format,
    arrays: usize,
    inputs: usize,
}

// SAFETY: it writes the rows of its output and reads its inputs; numbers beyond the table are those of its last row.
unsafe impl Kernel for Embedding {
    fn arrays(&self) -> usize {
        self.arrays
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (ids, weight) = (&inputs[0], &inputs[1]);
        let matrix = Matrix::new(self.format, self.inputs, weight, inputs.get(2), inputs.get(3));
        let last = weight.last(1) - 1;
        for index in 0..ids.last(0) {
            let row = *ids.data::<u32>().add(index * ids.last_stride(0)) as usize;
            let to = outputs[0].data::<f32>().add(index * self.inputs);
            // SAFETY: the table has the row, and the output a place for it.
            let to = unsafe { std::slice::from_raw_parts_mut(to, self.inputs) };
            // SAFETY: as above.
            unsafe { numbers(Isa::chosen(), &matrix, row.min(last), to) };
        }
    }
}
