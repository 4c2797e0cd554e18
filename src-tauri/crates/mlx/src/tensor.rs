//! The handle to an MLX array.
//!
//! A [`Tensor`] is neither `Send` nor `Sync`: the compiler proves that no array leaves the thread that created it, from
//! load to drop. Each thread counts its living handles.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::path::Path;

use mlx_rs::{Array, Dtype};
use mlx_sys::mlx_array;

use crate::device::check;
use crate::error::{Error, Result};
use crate::origin::{self, is_recording, Launched, Origin};

thread_local! {
    static LIVING: Cell<i64> = const { Cell::new(0) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
}

/// The number of handles that this thread has created and not dropped.
#[cfg(feature = "test-support")]
pub fn live_tensors() -> i64 {
    LIVING.get()
}

/// How many operations this thread has described.
#[cfg(feature = "test-support")]
pub fn operations() -> u64 {
    OPERATIONS.get()
}

/// An array of this thread. Cloning copies the handle, not the data.
pub struct Tensor {
    array: Array,
    tag: Tag,
    thread_bound: PhantomData<*const ()>,
}

/// A number that clones share and no other tensor of this thread has, or the place of what a recorded launch writes; in
/// one word, because a model holds thousands of handles.
#[derive(Clone, Copy)]
struct Tag(u64);

impl Tag {
    /// Marks what an operation of MLX's makes during a recording.
    const DESCRIBED: u64 = 1 << 63;
    /// Marks what a recorded launch writes.
    const LAUNCHED: u64 = 1 << 62;
}

impl Tensor {
    /// Takes an array that was created on this thread.
    fn new(array: Array) -> Self {
        let described = if is_recording() { Tag::DESCRIBED } else { 0 };
        let number = NEXT_ID.replace(NEXT_ID.get() + 1);
        Self::with_tag(array, Tag(number | described))
    }

    fn with_tag(array: Array, tag: Tag) -> Self {
        LIVING.set(LIVING.get() + 1);
        Self {
            array,
            tag,
            thread_bound: PhantomData,
        }
    }

    /// Runs an operation of MLX's C interface that writes one array.
    pub fn make(operation: impl FnOnce(*mut mlx_array) -> i32) -> Result<Self> {
        // SAFETY: an empty handle is valid to write into and valid to free.
        let mut handle = unsafe { mlx_sys::mlx_array_new() };
        let status = operation(&mut handle);
        OPERATIONS.set(OPERATIONS.get() + 1);
        // SAFETY: the handle was written by MLX or is still empty; from here on `array` owns it.
        let array = unsafe { Array::from_ptr(handle) };
        check(status)?;
        Ok(Self::new(array))
    }

    /// Runs an operation of MLX's C interface that writes a list of `count` arrays.
    pub fn make_several(
        count: usize,
        operation: impl FnOnce(*mut mlx_sys::mlx_vector_array) -> i32,
    ) -> Result<Vec<Self>> {
        // SAFETY: an empty list is valid to write into, and `list` frees it once.
        let mut list = Handles(unsafe { mlx_sys::mlx_vector_array_new() });
        check(operation(&mut list.0))?;
        (0..count)
            // SAFETY: MLX checks the index and writes a handle of its own.
            .map(|index| Self::make(|result| unsafe { mlx_sys::mlx_vector_array_get(result, list.0, index) }))
            .collect()
    }

    /// Floats from this program's memory.
    pub fn from_f32(data: &[f32], shape: &[i32]) -> Self {
        Self::new(Array::from_slice(data, shape))
    }

    /// Integers from this program's memory.
    pub fn from_i32(data: &[i32], shape: &[i32]) -> Self {
        Self::new(Array::from_slice(data, shape))
    }

    /// Truth values from this program's memory.
    pub fn from_bool(data: &[bool], shape: &[i32]) -> Self {
        Self::new(Array::from_slice(data, shape))
    }

    /// Numbers of any type as files hold them, the lowest byte first.
    ///
    /// # Errors
    /// If there are not as many bytes as type and shape make.
    pub fn from_bytes(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Self> {
        let length = i32::try_from(bytes.len()).map_err(|_| Error::Failed(format!("{} bytes at once", bytes.len())))?;
        Self::new(Array::from_slice(bytes, &[length]))
            .view(dtype)?
            .reshape(shape)
    }

    /// Waits for all elements and copies them out as files hold them, the lowest byte first.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let plain = self.contiguous()?.reshape(&[-1])?.view(Dtype::Uint8)?;
        eval([&plain])?;
        let slice = plain
            .array
            .try_as_slice::<u8>()
            .map_err(|error| Error::Failed(error.to_string()))?;
        Ok(slice.to_vec())
    }

    /// The handle, for calls into MLX.
    pub fn raw(&self) -> mlx_array {
        self.array.as_ptr()
    }

    /// A number that clones share and no other tensor of this thread has.
    pub fn id(&self) -> u64 {
        self.tag.0
    }

    /// The source of its numbers.
    pub fn origin(&self) -> Origin {
        match self.tag.0 {
            tag if tag & Tag::DESCRIBED > 0 => Origin::Described,
            tag if tag & Tag::LAUNCHED > 0 => origin::launched((tag & !Tag::LAUNCHED) as usize),
            _ => Origin::Memory,
        }
    }

    /// The same, whose numbers no recorded launch changes.
    pub fn from_memory(mut self) -> Self {
        self.tag.0 &= !Tag::DESCRIBED;
        self
    }

    /// The same shape and type, with numbers that a recorded launch writes.
    pub fn from_launch(mut self, launched: Launched) -> Self {
        self.tag = Tag(origin::keep(launched) as u64 | Tag::LAUNCHED);
        self
    }

    /// The elements from one place of each axis to the next.
    pub fn strides(&self) -> Vec<i64> {
        match self.origin() {
            Origin::Launch(launched) => launched.strides[..self.shape().len()].to_vec(),
            Origin::Memory | Origin::Described => self.array.strides().iter().map(|step| *step as i64).collect(),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> &[i32] {
        self.array.shape()
    }

    /// The length of one axis; negative ones count from the end.
    pub fn dim(&self, axis: i32) -> i32 {
        self.array.dim(axis)
    }

    /// The number of its elements.
    pub fn size(&self) -> usize {
        self.array.size()
    }

    /// The size of its elements in bytes.
    pub fn nbytes(&self) -> usize {
        self.array.nbytes()
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.array.dtype()
    }

    /// True if it has been computed.
    #[cfg(feature = "test-support")]
    pub fn is_available(&self) -> Result<bool> {
        let mut available = false;
        // SAFETY: the handle lives as long as `self`.
        check(unsafe { mlx_sys::_mlx_array_is_available(&mut available, self.raw()) })?;
        Ok(available)
    }

    /// Overwrites its 32 bit floats from `start` on where they lie, on a CPU, as a recorded step does on a card.
    #[cfg(feature = "test-support")]
    pub fn overwrite(&self, start: usize, numbers: &[f32]) -> Result<()> {
        eval([self])?;
        assert!(self.dtype() == Dtype::Float32 && start + numbers.len() <= self.size());
        // SAFETY: the array is computed, lies without gaps as what was just allocated does, and has as many numbers; no
        // operation that reads it is under way, because this thread waits for each that it begins.
        unsafe {
            let first = mlx_sys::mlx_array_data_float32(self.raw()).cast_mut().add(start);
            std::slice::from_raw_parts_mut(first, numbers.len()).copy_from_slice(numbers);
        }
        Ok(())
    }

    /// Waits for all elements, unsigned integers, and copies them out.
    pub fn to_u32(&self) -> Result<Vec<u32>> {
        // A view, such as a row that is broadcast, has fewer elements in memory than it shows.
        let plain = self.contiguous()?;
        eval([&plain])?;
        let slice = plain
            .array
            .try_as_slice::<u32>()
            .map_err(|error| Error::Failed(error.to_string()))?;
        Ok(slice.to_vec())
    }

    /// Waits for all elements and copies them out as 32 bit floats.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        let plain = self.astype(Dtype::Float32)?.contiguous()?;
        eval([&plain])?;
        let slice = plain
            .array
            .try_as_slice::<f32>()
            .map_err(|error| Error::Failed(error.to_string()))?;
        Ok(slice.to_vec())
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        Self::with_tag(self.array.clone(), self.tag)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        LIVING.set(LIVING.get() - 1);
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({:?}, {:?})", self.shape(), self.dtype())
    }
}

/// A list of handles as MLX's C interface takes it.
pub struct Handles(pub mlx_sys::mlx_vector_array);

impl Handles {
    /// The list of these tensors' handles.
    pub fn new<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Self {
        let handles: Vec<mlx_array> = tensors.into_iter().map(Tensor::raw).collect();
        // SAFETY: MLX copies the handles, which live during the call.
        Self(unsafe { mlx_sys::mlx_vector_array_new_data(handles.as_ptr(), handles.len()) })
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { mlx_sys::mlx_vector_array_free(self.0) };
    }
}

/// Computes tensors and waits for them.
pub fn eval<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    let handles = Handles::new(tensors);
    // SAFETY: the handles live during the call.
    check(unsafe { mlx_sys::mlx_eval(handles.0) })
}

/// Begins to compute tensors and returns at once.
pub fn async_eval<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    let handles = Handles::new(tensors);
    // SAFETY: the handles live during the call.
    check(unsafe { mlx_sys::mlx_async_eval(handles.0) })
}

/// The tensors of a safetensors file by name, unread until they are computed.
///
/// # Errors
/// If the file cannot be opened or its header is broken.
pub fn load_safetensors(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let arrays = Array::load_safetensors(path).map_err(|error| Error::Failed(error.to_string()))?;
    Ok(arrays
        .into_iter()
        .map(|(name, array)| (name, Tensor::new(array)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::Tensor;
    use crate::ops::ids_tensor;
    use crate::Dtype;

    #[test]
    fn bytes_of_a_file_come_back_as_they_were() {
        crate::device::connect().unwrap();
        let bytes: Vec<u8> = (0..24).collect();
        for (dtype, shape) in [
            (Dtype::Uint8, [4, 6]),
            (Dtype::Bfloat16, [3, 4]),
            (Dtype::Float32, [3, 2]),
            (Dtype::Uint32, [6, 1]),
        ] {
            let tensor = Tensor::from_bytes(&bytes, &shape, dtype).unwrap();
            assert_eq!((tensor.shape(), tensor.dtype()), (&shape[..], dtype));
            assert_eq!(tensor.to_bytes().unwrap(), bytes);
            let turned = tensor.swapaxes(0, 1).unwrap().swapaxes(0, 1).unwrap();
            assert_eq!(turned.to_bytes().unwrap(), bytes);
        }
        assert!(Tensor::from_bytes(&bytes, &[5, 5], Dtype::Uint8).is_err());
    }

    #[test]
    fn a_broadcast_view_is_copied_out_as_it_is_seen() {
        crate::device::connect().unwrap();
        let ids = |ids: &[u32]| ids_tensor(ids).astype(Dtype::Uint32).unwrap();
        let seen = ids(&[7]).broadcast(&[4]).unwrap();
        assert_eq!(seen.to_u32().unwrap(), [7, 7, 7, 7]);
        let rows = ids(&[1, 2]).reshape(&[2, 1]).unwrap().broadcast(&[2, 3]).unwrap();
        assert_eq!(rows.to_u32().unwrap(), [1, 1, 1, 2, 2, 2]);
    }
}
