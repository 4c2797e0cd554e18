//! The handle to an MLX array, and the thread's connection to MLX.
//!
//! A [`Tensor`] is neither `Send` nor `Sync`: the compiler proves that no array leaves the thread that made it, from
//! load to drop. Each thread counts its living handles.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void, CStr};
use std::marker::PhantomData;
use std::sync::Once;

use mlx_rs::{Array, Dtype};
use mlx_sys::{mlx_array, mlx_stream};

use crate::blas;
use crate::error::{Error, Result};

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Cpu,
    /// Apple's GPU.
    Metal,
    /// An NVIDIA GPU.
    Cuda,
}

impl Device {
    /// Its name in a model's information.
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Metal => "metal",
            Device::Cuda => "cuda",
        }
    }
}

#[derive(Clone, Copy)]
struct Connection {
    stream: mlx_stream,
    device: Device,
    /// Whether kernels of our own can be launched.
    kernels: bool,
    /// Whether the processor computes, also if a test chooses the operations that GPUs get.
    on_cpu: bool,
}

thread_local! {
    static CONNECTION: Cell<Option<Connection>> = const { Cell::new(None) };
    static LAST_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
    static LIVING: Cell<i64> = const { Cell::new(0) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    #[cfg(feature = "test-support")]
    static WRONG_INPUTS: Cell<i32> = const { Cell::new(0) };
}

static ERROR_HANDLER: Once = Once::new();

extern "C" fn keep_error(message: *const c_char, _data: *mut c_void) {
    // SAFETY: MLX passes a terminated string that lives during the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    LAST_ERROR.set(Some(message));
}

/// Names the file of compiled kernels to MLX. It counts only if nothing of MLX was called in this process before, not even its allocator, because
/// the device takes its kernels when it is made.
#[cfg(target_os = "macos")]
pub fn use_metal_library(path: &std::path::Path) -> Result<()> {
    let unnameable = || Error::Mlx(format!("{} cannot be named to MLX, because it is not UTF-8", path.display()));
    Ok(mlx_rs::metal::set_metallib_path(path.to_str().ok_or_else(unnameable)?)?)
}

/// Connects this thread with MLX; only a thread that called this may touch a [`Tensor`].
pub fn connect() -> Result<Device> {
    ERROR_HANDLER.call_once(|| {
        // mlx-rs installs its handler with its first call. Ours replaces it, because this crate calls MLX itself and the
        // messages that mlx-rs keeps are out of its reach.
        let _ = mlx_rs::memory::active_memory();
        // SAFETY: the handler is a function that lives for ever and needs no data.
        unsafe { mlx_sys::mlx_set_error_handler(Some(keep_error), std::ptr::null_mut(), None) };
        blas::set_up();
    });
    // SAFETY: plain queries with valid out-pointers; the device handle is freed once.
    let connection = unsafe {
        let mut device = mlx_sys::mlx_device_new();
        check(mlx_sys::mlx_get_default_device(&mut device))?;
        let mut kind = mlx_sys::mlx_device_type__MLX_CPU;
        check(mlx_sys::mlx_device_get_type(&mut kind, device))?;
        let mut stream = mlx_sys::mlx_stream_new();
        check(mlx_sys::mlx_get_default_stream(&mut stream, device))?;
        mlx_sys::mlx_device_free(device);
        let mut metal = false;
        check(mlx_sys::mlx_metal_is_available(&mut metal))?;
        let device = match kind {
            mlx_sys::mlx_device_type__MLX_CPU => Device::Cpu,
            _ if metal => Device::Metal,
            _ => Device::Cuda,
        };
        let kernels = device == Device::Cuda && std::env::var_os("PONDER_KERNELS").is_none_or(|wanted| wanted != "0");
        Connection {
            stream,
            device,
            kernels,
            on_cpu: device == Device::Cpu,
        }
    };
    CONNECTION.set(Some(connection));
    Ok(connection.device)
}

/// Ends what [`connect`] began; every tensor of this thread must be gone.
pub fn disconnect() {
    if let Some(connection) = CONNECTION.take() {
        // SAFETY: the stream came from `connect` and is not used again; the thread's queues hold no work of living arrays.
        unsafe {
            mlx_sys::mlx_synchronize(connection.stream);
            mlx_sys::mlx_stream_free(connection.stream);
            mlx_sys::mlx_clear_streams();
        }
    }
}

/// Waits until everything that was begun on this thread is done.
pub fn synchronize() -> Result<()> {
    // SAFETY: the stream belongs to this thread.
    check(unsafe { mlx_sys::mlx_synchronize(connection().stream) })
}

fn connection() -> Connection {
    CONNECTION.get().expect("only the engine's worker, which connects first, computes")
}

/// The version of MLX that this program was linked with.
pub fn version() -> Result<String> {
    // SAFETY: the string is made here, filled by MLX, and freed once, after its last use.
    unsafe {
        let mut text = mlx_sys::mlx_string_new();
        let told =
            check(mlx_sys::mlx_version(&mut text)).map(|()| CStr::from_ptr(mlx_sys::mlx_string_data(text)).to_string_lossy().into_owned());
        mlx_sys::mlx_string_free(text);
        told
    }
}

/// What MLX calls the device that computes on this thread, such as `NVIDIA H200`; empty if it has no name for it.
pub fn device_name() -> String {
    device_info(c"device_name")
}

/// What the device's machine code is called, such as `sm_90`; empty if it is not known.
pub fn architecture() -> String {
    device_info(c"architecture")
}

fn device_info(key: &CStr) -> String {
    // SAFETY: plain queries with valid out-pointers; what is made here is freed once, and the text is copied before.
    unsafe {
        let mut device = mlx_sys::mlx_device_new();
        let mut info = mlx_sys::mlx_device_info_new();
        let mut text: *const c_char = std::ptr::null();
        let told = mlx_sys::mlx_get_default_device(&mut device) == 0
            && mlx_sys::mlx_device_info_get(&mut info, device) == 0
            && mlx_sys::mlx_device_info_get_string(&mut text, info, key.as_ptr()) == 0;
        let text = match told && !text.is_null() {
            true => CStr::from_ptr(text).to_string_lossy().into_owned(),
            false => String::new(),
        };
        mlx_sys::mlx_device_info_free(info);
        mlx_sys::mlx_device_free(device);
        text
    }
}

/// The device that computes on this thread.
pub fn device() -> Device {
    connection().device
}

/// Makes this thread choose the operations that GPUs get, which MLX also has for the CPU.
#[cfg(feature = "test-support")]
pub fn pretend_gpu() {
    CONNECTION.set(Some(Connection {
        device: Device::Cuda,
        ..connection()
    }));
}

/// Makes products of several rows with packed matrices of so many inputs wrong on this thread, as MLX's are on some devices.
#[cfg(feature = "test-support")]
pub fn plant_wrong_products(inputs: i32) {
    WRONG_INPUTS.set(inputs);
}

/// Whether this product is to be wrong.
#[cfg(feature = "test-support")]
pub(crate) fn is_planted_wrong(rows: &Tensor, matrix: &crate::ops::QuantizedTensor) -> bool {
    let axes = rows.shape().len();
    WRONG_INPUTS.get() == rows.dim(-1) && axes > 1 && rows.dim(-2) > 1 && matrix.scales.shape().len() != 3
}

/// Whether kernels of our own can be launched on this thread; `PONDER_KERNELS=0` says no.
pub fn has_kernels() -> bool {
    connection().kernels
}

/// Whether MLX's kernels for the processor compute.
pub(crate) fn on_cpu() -> bool {
    connection().on_cpu
}

/// The stream of this thread, for calls into MLX.
pub(crate) fn stream() -> mlx_stream {
    connection().stream
}

/// How many handles this thread has made and not dropped.
#[cfg(feature = "test-support")]
pub fn live_tensors() -> i64 {
    LIVING.get()
}

/// How many operations this thread has described.
#[cfg(feature = "test-support")]
pub fn operations() -> u64 {
    OPERATIONS.get()
}

/// Turns a status of MLX into a result with MLX's message.
pub(crate) fn check(status: i32) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let message = LAST_ERROR.take().unwrap_or_else(|| format!("status {status}"));
    Err(Error::Mlx(message))
}

/// An array of this thread. Cloning copies the handle, not the data.
pub struct Tensor {
    array: Array,
    thread_bound: PhantomData<*const ()>,
}

impl Tensor {
    /// Takes an array that was made on this thread.
    pub fn new(array: Array) -> Self {
        LIVING.set(LIVING.get() + 1);
        Self {
            array,
            thread_bound: PhantomData,
        }
    }

    /// Runs an operation of MLX's C interface that writes one array.
    pub(crate) fn make(operation: impl FnOnce(*mut mlx_array) -> i32) -> Result<Self> {
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
    pub(crate) fn make_several(count: usize, operation: impl FnOnce(*mut mlx_sys::mlx_vector_array) -> i32) -> Result<Vec<Self>> {
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

    /// The handle, for calls into MLX.
    pub(crate) fn raw(&self) -> mlx_array {
        self.array.as_ptr()
    }

    /// Its shape.
    pub fn shape(&self) -> &[i32] {
        self.array.shape()
    }

    /// The length of one axis; negative ones count from the end.
    pub fn dim(&self, axis: i32) -> i32 {
        self.array.dim(axis)
    }

    /// How many elements it has.
    pub fn size(&self) -> usize {
        self.array.size()
    }

    /// How many bytes its elements take.
    pub fn nbytes(&self) -> usize {
        self.array.nbytes()
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.array.dtype()
    }

    /// Whether it has been computed.
    #[cfg(feature = "test-support")]
    pub fn is_available(&self) -> Result<bool> {
        let mut available = false;
        // SAFETY: the handle lives as long as `self`.
        check(unsafe { mlx_sys::_mlx_array_is_available(&mut available, self.raw()) })?;
        Ok(available)
    }

    /// Waits for all elements, unsigned integers, and copies them out.
    pub fn to_u32(&self) -> Result<Vec<u32>> {
        eval([self])?;
        let slice = self.array.try_as_slice::<u32>().map_err(|error| Error::Mlx(error.to_string()))?;
        Ok(slice.to_vec())
    }

    /// Waits for all elements and copies them out as 32 bit floats.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        let plain = self.astype(Dtype::Float32)?.contiguous()?;
        eval([&plain])?;
        let slice = plain.array.try_as_slice::<f32>().map_err(|error| Error::Mlx(error.to_string()))?;
        Ok(slice.to_vec())
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        Self::new(self.array.clone())
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
pub(crate) struct Handles(pub(crate) mlx_sys::mlx_vector_array);

impl Handles {
    pub(crate) fn new<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Self {
        let handles: Vec<mlx_array> = tensors.into_iter().map(Tensor::raw).collect();
        // SAFETY: MLX copies the handles, which live during the call.
        Self(unsafe { mlx_sys::mlx_vector_array_new_data(handles.as_ptr(), handles.len()) })
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
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
