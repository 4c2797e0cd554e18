//! Rows of tables: those of several joined, and such of unit length.

use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::file_tensors::StoredTensor;
use super::Weights;
use crate::error::Result;

impl Weights<'_> {
    /// Joins the rows of these tensors, if all are there, under the name `joined`.
    pub fn join_rows(&mut self, names: &[&str], joined: &str) -> Result<()> {
        if !names.iter().all(|name| self.has(name)) {
            return Ok(());
        }
        let parts = names.iter().filter_map(|name| self.tensors.remove(*name));
        let parts = parts.map(StoredTensor::read).collect::<Result<Vec<_>>>()?;
        let all = concatenate(&parts.iter().collect::<Vec<_>>(), 0)?;
        self.tensors.insert(joined.to_owned(), StoredTensor::from(all));
        Ok(())
    }

    /// Makes unit vectors of the rows of a matrix that is not quantized.
    pub fn unit_rows(&mut self, path: &str) -> Result<()> {
        let name = format!("{path}.weight");
        if self.has(&format!("{path}.scales")) {
            return Ok(());
        }
        let Some(stored) = self.tensors.remove(&name) else {
            return Ok(());
        };
        let rows = stored.read()?;
        let wide = rows.astype(Dtype::Float32)?;
        let least = Tensor::scalar(f32::MIN_POSITIVE, Dtype::Float32)?;
        let length = wide.square()?.sum(-1, true)?.maximum(&least)?.rsqrt()?;
        let unit = wide.mul(&length)?.astype(rows.dtype())?.contiguous()?;
        self.tensors.insert(name, StoredTensor::from(unit));
        Ok(())
    }
}
