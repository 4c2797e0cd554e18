//! The tensors of a file, unread until they are computed.

use std::path::Path;

use checkpoint::{Header, TensorPlace};
use mlx::fused::FileTensor;
use mlx::tensor::{load_safetensors, Tensor};
use mlx::Dtype;

use crate::error::Result;
use crate::kernels::kernels;

/// The tensors of a file with this header by name.
pub fn file_tensors(path: &Path, header: &Header) -> Result<Vec<(String, Tensor)>> {
    let places: Vec<TensorPlace<'_>> = header.places().collect();
    let tensors: Option<Vec<FileTensor>> = places.iter().map(file_tensor).collect();
    let Some(tensors) = tensors else {
        return Ok(load_safetensors(path)?);
    };
    Ok(match kernels().file_tensors(path, &tensors)? {
        Some(tensors) => places.iter().map(|place| place.name.to_owned()).zip(tensors).collect(),
        None => load_safetensors(path)?,
    })
}

/// The tensor at a place; `None` if MLX has no such numbers, and reads them as others.
fn file_tensor(place: &TensorPlace<'_>) -> Option<FileTensor> {
    let shape = place.shape.iter().map(|length| i32::try_from(*length).ok());
    Some(FileTensor {
        offset: place.offset,
        dtype: dtype(place.dtype)?,
        shape: shape.collect::<Option<_>>()?,
    })
}

fn dtype(name: &str) -> Option<Dtype> {
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
