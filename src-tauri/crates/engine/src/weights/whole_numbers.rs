//! Lists of whole numbers among the weights.

use mlx::Dtype;

use super::{wrong_shape, Weights};
use crate::error::Result;

impl Weights<'_> {
    /// `count` whole numbers; those below zero become larger than any that counts something.
    pub fn take_numbers(&mut self, name: &str, count: i32) -> Result<Vec<u32>> {
        let tensor = self.take_raw(name)?;
        if tensor.shape() != [count] || tensor.dtype().is_float() {
            return Err(wrong_shape(name, &tensor, format!("[{count}] whole numbers")));
        }
        Ok(tensor.astype(Dtype::Uint32)?.to_u32()?)
    }
}
