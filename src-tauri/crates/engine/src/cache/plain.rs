//! The cache of full attention.

use crate::error::Result;
use crate::layers::Parameters;
use crate::ops::concatenate;
use crate::tensor::Tensor;

/// Positions that are added at once when the space is used up.
const STEP: i32 = 256;

/// Keeps every position, in buffers that grow by steps and are written in place.
#[derive(Default)]
pub struct PlainCache {
    buffers: Option<(Tensor, Tensor)>,
    offset: i32,
}

impl PlainCache {
    /// How many positions have been read.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// Adds positions and returns all.
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let (start, end) = (self.offset, self.offset + keys.dim(2));
        // The buffers are taken out, so that the handles below are the only ones and MLX may write in place.
        let (old_keys, old_values) = match self.buffers.take() {
            Some((old_keys, old_values)) => (grown(old_keys, start, end)?, grown(old_values, start, end)?),
            None => (space(keys, end)?, space(values, end)?),
        };
        let all_keys = old_keys.slice_update(keys, 2, start)?;
        let all_values = old_values.slice_update(values, 2, start)?;
        let seen = (all_keys.slice(2, 0, end)?, all_values.slice(2, 0, end)?);
        self.buffers = Some((all_keys, all_values));
        self.offset = end;
        Ok(seen)
    }
}

fn space(like: &Tensor, positions: i32) -> Result<Tensor> {
    Tensor::zeros(&[1, like.dim(1), (positions + STEP - 1) / STEP * STEP, like.dim(3)], like.dtype())
}

fn grown(buffer: Tensor, used: i32, needed: i32) -> Result<Tensor> {
    if needed <= buffer.dim(2) {
        return Ok(buffer);
    }
    concatenate(&[&buffer.slice(2, 0, used)?, &space(&buffer, needed - used)?], 2)
}

impl Parameters for PlainCache {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self { buffers, offset: _ } = self;
        if let Some((keys, values)) = buffers {
            visitor(keys);
            visitor(values);
        }
    }
}
