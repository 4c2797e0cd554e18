//! The tensors of a file, unread until they are computed or taken.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use checkpoint::{Header, TensorPlace};
use mlx::fused::FileTensor;
use mlx::tensor::{load_safetensors, Tensor};
use mlx::Dtype;

use crate::error::Result;
use crate::kernels::kernels;

/// A tensor of a file.
pub struct StoredTensor {
    tensor: Tensor,
    /// The file and the place in it, if the tensor may be read by itself.
    place: Option<(Rc<Path>, FileTensor)>,
}

impl StoredTensor {
    /// The tensor as MLX describes it.
    pub fn described(&self) -> &Tensor {
        &self.tensor
    }

    /// The tensor, read now if the device's kernels read it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(self) -> Result<Tensor> {
        let read = |(path, place): &(Rc<Path>, FileTensor)| kernels().read_tensor(path, place, &self.tensor);
        let read = self.place.as_ref().map(read).transpose()?.flatten();
        Ok(read.unwrap_or(self.tensor))
    }
}

impl From<Tensor> for StoredTensor {
    fn from(tensor: Tensor) -> Self {
        Self { tensor, place: None }
    }
}

/// The tensors of a file with this header by name.
pub fn file_tensors(path: &Path, header: &Header) -> Result<Vec<(String, StoredTensor)>> {
    let places: Vec<TensorPlace<'_>> = header.places().collect();
    let known: Option<Vec<FileTensor>> = places.iter().map(file_tensor).collect();
    if let Some(tensors) = known
        .map(|known| kernels().file_tensors(path, &known))
        .transpose()?
        .flatten()
    {
        let names = places.iter().map(|place| place.name.to_owned());
        return Ok(names.zip(tensors.into_iter().map(StoredTensor::from)).collect());
    }
    let file: Rc<Path> = path.into();
    let by_name: HashMap<&str, &TensorPlace<'_>> = places.iter().map(|place| (place.name, place)).collect();
    let stored = load_safetensors(path)?.into_iter().map(|(name, tensor)| {
        let place = by_name.get(name.as_str()).and_then(|place| file_tensor(place));
        let place = place.map(|place| (file.clone(), place));
        (name, StoredTensor { tensor, place })
    });
    Ok(stored.collect())
}

/// The tensor at a place; `None` if MLX has no such numbers, and reads them as others.
fn file_tensor(place: &TensorPlace<'_>) -> Option<FileTensor> {
    let shape = place.shape.iter().map(|length| i32::try_from(*length).ok());
    Some(FileTensor {
        offset: place.offset,
        dtype: dtype_of(place.dtype)?,
        shape: shape.collect::<Option<_>>()?,
    })
}

/// The type that headers call so; `None` if MLX has no such numbers.
pub fn dtype_of(name: &str) -> Option<Dtype> {
    Some(match name {
        "BOOL" => Dtype::Bool,
        "U8" => Dtype::Uint8,
        "U16" => Dtype::Uint16,
        "U32" => Dtype::Uint32,
        "U64" => Dtype::Uint64,
        "I8" => Dtype::Int8,
        "I16" => Dtype::Int16,
        "I32" => Dtype::Int32,
        "I64" => Dtype::Int64,
        "F16" => Dtype::Float16,
        "BF16" => Dtype::Bfloat16,
        "F32" => Dtype::Float32,
        "F64" => Dtype::Float64,
        _ => return None,
    })
}
