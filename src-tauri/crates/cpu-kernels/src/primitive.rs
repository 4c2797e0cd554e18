//! Operations of MLX's graph that are computed here: `src-tauri/mlx/primitive.cpp` calls back with the arrays' memory.
#![allow(unsafe_code)]

use std::ffi::c_void;

use mlx::sys::{mlx_array, mlx_stream, mlx_vector_array};
use mlx::tensor::{Handles, Tensor};
use mlx::{device, Dtype, Error, Result};

/// Axes of an array at most, as in `primitive.cpp`.
const AXES: usize = 4;

/// The memory of an array. Strides count elements.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct View {
    data: *mut c_void,
    shape: [i64; AXES],
    strides: [i64; AXES],
    axes: i32,
}

// SAFETY: it only says where memory is; reading and writing that is unsafe.
unsafe impl Sync for View {}

impl View {
    /// The first element.
    pub fn data<T>(&self) -> *mut T {
        self.data.cast()
    }

    /// The lengths of its axes.
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.axes as usize]
    }

    /// The distances of neighbors along its axes.
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.axes as usize]
    }

    /// How many elements there are.
    pub fn elements(&self) -> usize {
        self.shape().iter().product::<i64>() as usize
    }

    /// Numbers of one row of the last axis: rows are counted through all axes before it.
    ///
    /// # Safety
    ///
    /// There is such a row, of at least as many 32 bit floats as the slice has, and the array lives.
    pub unsafe fn read(&self, row: usize, to: &mut [f32]) {
        let (mut rest, mut start) = (row, self.data::<f32>());
        let leading = self.axes as usize - 1;
        for axis in (0..leading).rev() {
            let length = self.shape[axis] as usize;
            start = start.add(rest % length * self.strides[axis] as usize);
            rest /= length;
        }
        match self.last_stride(0) {
            1 => to.copy_from_slice(std::slice::from_raw_parts(start, to.len())),
            stride => {
                for (place, number) in to.iter_mut().enumerate() {
                    *number = *start.add(place * stride);
                }
            }
        }
    }

    /// One entry of the first axis, of elements of so many bytes.
    pub fn part(&self, index: usize, bytes: usize) -> Self {
        let mut part = Self {
            axes: self.axes - 1,
            ..*self
        };
        part.shape.copy_within(1.., 0);
        part.strides.copy_within(1.., 0);
        part.data = self
            .data::<u8>()
            .wrapping_add(index * self.strides[0] as usize * bytes)
            .cast();
        part
    }

    /// The length of one axis, counted from the last one.
    pub fn last(&self, axis: usize) -> usize {
        self.shape()[self.axes as usize - 1 - axis] as usize
    }

    /// The distance of neighbors along an axis, counted from the last one.
    pub fn last_stride(&self, axis: usize) -> usize {
        self.strides()[self.axes as usize - 1 - axis] as usize
    }
}

#[cfg(test)]
impl View {
    /// An array of this shape in this memory, which a test keeps. Strides count elements, so that bytes may stand for
    /// numbers of any size.
    pub fn of<T>(memory: &mut [T], lengths: &[usize]) -> Self {
        let mut view = Self {
            data: memory.as_mut_ptr().cast(),
            shape: [1; AXES],
            strides: [1; AXES],
            axes: lengths.len() as i32,
        };
        let mut stride = 1;
        for (axis, length) in lengths.iter().enumerate().rev() {
            (view.shape[axis], view.strides[axis]) = (*length as i64, stride);
            stride *= *length as i64;
        }
        view
    }
}

/// A computation over arrays.
///
/// # Safety
///
/// `compute` writes every output and reads and writes nothing else but its inputs.
pub unsafe trait Kernel: Send + Sync + 'static {
    /// How many inputs it takes.
    fn arrays(&self) -> usize;

    /// Computes. Outputs are contiguous; inputs may be parts of other arrays.
    ///
    /// # Safety
    ///
    /// The views are of arrays that live, of the types and shapes that the operation was described with.
    unsafe fn compute(&self, inputs: &[View], outputs: &[View]);
}

extern "C" {
    fn ponder_kernel(
        list: *mut mlx_vector_array,
        shapes: *const i32,
        axes: *const i32,
        bytes: *const i32,
        outputs: usize,
        inputs: *const mlx_array,
        count: usize,
        kernel: *mut c_void,
        compute: unsafe extern "C" fn(*const c_void, *const View, *const View),
        drop: unsafe extern "C" fn(*mut c_void),
        stream: mlx_stream,
    ) -> i32;

    fn ponder_join(tensors: mlx_vector_array) -> i32;
}

/// A kernel and how many outputs it has.
struct Described<K> {
    kernel: K,
    outputs: usize,
}

/// Describes the operation; outputs of 32 bit floats of these shapes.
pub fn describe<K: Kernel>(kernel: K, inputs: &[&Tensor], shapes: &[&[i32]]) -> Result<Vec<Tensor>> {
    describe_typed(kernel, inputs, shapes, &vec![Float::F32; shapes.len()])
}

/// The type of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Float {
    /// IEEE's 16 bit type.
    F16,
    /// 32 bits.
    F32,
}

/// Describes the operation; outputs of these shapes and types.
pub fn describe_typed<K: Kernel>(
    kernel: K,
    inputs: &[&Tensor],
    shapes: &[&[i32]],
    types: &[Float],
) -> Result<Vec<Tensor>> {
    assert_eq!(shapes.len(), types.len(), "a type for each output");
    let bytes = types.iter().map(|of| if *of == Float::F16 { 2 } else { 4 });
    let bytes: Vec<i32> = bytes.collect();
    assert_eq!(inputs.len(), kernel.arrays(), "as many arrays as the kernel reads");
    let axes: Vec<i32> = shapes.iter().map(|shape| shape.len() as i32).collect();
    let lengths = shapes.concat();
    let handles: Vec<mlx_array> = inputs.iter().map(|input| input.raw()).collect();
    let described = Box::into_raw(Box::new(Described {
        kernel,
        outputs: shapes.len(),
    }));
    Tensor::make_several(shapes.len(), |list| {
        // SAFETY: the handles are borrowed from living tensors, the slices live during the call, the box is given away,
        // and `compute` and `drop` are called with it alone.
        unsafe {
            ponder_kernel(
                list,
                lengths.as_ptr(),
                axes.as_ptr(),
                bytes.as_ptr(),
                axes.len(),
                handles.as_ptr(),
                handles.len(),
                described.cast(),
                compute::<K>,
                drop_kernel::<K>,
                device::stream(),
            )
        }
    })
}

/// Describes an operation with one output.
pub fn describe_one<K: Kernel>(kernel: K, inputs: &[&Tensor], shape: &[i32]) -> Result<Tensor> {
    let mut outputs = describe(kernel, inputs, &[shape])?;
    Ok(outputs.swap_remove(0))
}

/// Makes one operation of those that follow each other and lead to these tensors.
pub fn join(tensors: &[&Tensor]) -> Result<()> {
    let handles = Handles::new(tensors.iter().copied());
    // SAFETY: the handles live during the call.
    match unsafe { ponder_join(handles.0) } {
        0 => Ok(()),
        _ => Err(Error::Failed("operations could not be joined".into())),
    }
}

/// True for arrays that kernels read as activations.
pub fn is_f32(tensors: &[&Tensor]) -> bool {
    tensors.iter().all(|tensor| tensor.dtype() == Dtype::Float32)
}

unsafe extern "C" fn compute<K: Kernel>(described: *const c_void, inputs: *const View, outputs: *const View) {
    // SAFETY: `describe` passed this box, and as many arrays as the slices have.
    let (described, inputs, outputs) = unsafe {
        let described = &*described.cast::<Described<K>>();
        (
            described,
            std::slice::from_raw_parts(inputs, described.kernel.arrays()),
            std::slice::from_raw_parts(outputs, described.outputs),
        )
    };
    // SAFETY: MLX keeps the arrays until this returns.
    unsafe { described.kernel.compute(inputs, outputs) };
}

unsafe extern "C" fn drop_kernel<K: Kernel>(described: *mut c_void) {
    // SAFETY: `describe` gave this box away, and it is dropped once.
    drop(unsafe { Box::from_raw(described.cast::<Described<K>>()) });
}
