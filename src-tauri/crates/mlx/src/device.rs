//! The device that computes, and this thread's connection to it.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void, CStr};
use std::sync::{Once, OnceLock};

use mlx_sys::mlx_stream;

use crate::blas;
use crate::error::{Error, Result};

/// A kind of device.
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
    /// The device that computes, also if a test chooses the operations of another one.
    computes: Device,
}

thread_local! {
    static CONNECTION: Cell<Option<Connection>> = const { Cell::new(None) };
    static LAST_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

static ERROR_HANDLER: Once = Once::new();

extern "C" fn keep_error(message: *const c_char, _data: *mut c_void) {
    // SAFETY: MLX passes a terminated string that lives during the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    LAST_ERROR.set(Some(message));
}

/// Names the file of compiled kernels to MLX. It counts only if nothing of MLX was called in this process before, not
/// even its allocator, because the device takes its kernels when it is created.
#[cfg(target_os = "macos")]
pub fn use_metal_library(path: &std::path::Path) -> Result<()> {
    let unnameable = || {
        Error::Failed(format!(
            "{} cannot be named to MLX, because it is not UTF-8",
            path.display()
        ))
    };
    Ok(mlx_rs::metal::set_metallib_path(path.to_str().ok_or_else(unnameable)?)?)
}

/// Connects this thread with MLX's best device; only a thread that called this may touch a `Tensor`.
pub fn connect() -> Result<Device> {
    connect_to(true)
}

/// As [`connect`], with the processor also where there is a GPU.
pub fn connect_to_processor() -> Result<Device> {
    connect_to(false)
}

fn connect_to(gpu: bool) -> Result<Device> {
    ERROR_HANDLER.call_once(|| {
        // mlx-rs installs its handler with its first call. Ours replaces it, because this crate calls MLX itself and
        // the messages that mlx-rs keeps are out of its reach.
        let _ = mlx_rs::memory::active_memory();
        // SAFETY: the handler is a function that lives for ever and needs no data.
        unsafe { mlx_sys::mlx_set_error_handler(Some(keep_error), std::ptr::null_mut(), None) };
        blas::set_up();
    });
    let found = gpu_kind()?;
    let (device, kind) = match found {
        Some(device) if gpu => (device, mlx_sys::mlx_device_type__MLX_GPU),
        _ => (Device::Cpu, mlx_sys::mlx_device_type__MLX_CPU),
    };
    // SAFETY: calls with valid handles and out-pointers; the device handle is freed once.
    let connection = unsafe {
        let chosen = mlx_sys::mlx_device_new_type(kind, 0);
        let mut stream = mlx_sys::mlx_stream_new();
        // MLX's evaluation waits on a stream of the default device.
        let connected = check(mlx_sys::mlx_get_default_stream(&mut stream, chosen))
            .and_then(|()| check(mlx_sys::mlx_set_default_device(chosen)));
        mlx_sys::mlx_device_free(chosen);
        connected?;
        Connection {
            stream,
            device,
            computes: device,
        }
    };
    if found == Some(Device::Cuda) {
        limit_memory(device)?;
    }
    if let Some(before) = CONNECTION.replace(Some(connection)) {
        // SAFETY: the stream came from an earlier call and is not used again.
        unsafe {
            mlx_sys::mlx_synchronize(before.stream);
            mlx_sys::mlx_stream_free(before.stream);
        }
    }
    Ok(connection.device)
}

/// Limits MLX's memory where there is an NVIDIA GPU. Its own limit is the card's, by which it would keep no buffers and
/// wait after each operation of a larger model that the processor computes.
fn limit_memory(device: Device) -> Result<()> {
    static CARD: OnceLock<usize> = OnceLock::new();
    let now = mlx_rs::memory::memory_limit()?;
    let card = *CARD.get_or_init(|| now);
    // MLX subtracts it from what it holds, as a signed number.
    mlx_rs::memory::set_memory_limit(if device == Device::Cpu {
        isize::MAX as usize
    } else {
        card
    })?;
    Ok(())
}

/// The GPU that MLX can compute on, whichever device this thread is connected with.
pub fn gpu_kind() -> Result<Option<Device>> {
    let (mut available, mut metal) = (false, false);
    // SAFETY: plain queries with valid out-pointers; the device handle is freed once.
    unsafe {
        let gpu = mlx_sys::mlx_device_new_type(mlx_sys::mlx_device_type__MLX_GPU, 0);
        let asked = check(mlx_sys::mlx_device_is_available(&mut available, gpu));
        mlx_sys::mlx_device_free(gpu);
        asked?;
        check(mlx_sys::mlx_metal_is_available(&mut metal))?;
    }
    let kind = if metal { Device::Metal } else { Device::Cuda };
    Ok(available.then_some(kind))
}

/// Ends what [`connect`] began; every tensor of this thread must be gone.
pub fn disconnect() {
    if let Some(connection) = CONNECTION.take() {
        // SAFETY: the stream came from `connect` and is not used again; the thread's queues hold no work of living
        // arrays.
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
    CONNECTION.get().expect("only a thread that has connected computes")
}

/// The version of MLX that this program was linked with.
pub fn version() -> Result<String> {
    // SAFETY: the string is created here, filled by MLX, and freed once, after its last use.
    unsafe {
        let mut text = mlx_sys::mlx_string_new();
        let told = check(mlx_sys::mlx_version(&mut text)).map(|()| {
            CStr::from_ptr(mlx_sys::mlx_string_data(text))
                .to_string_lossy()
                .into_owned()
        });
        mlx_sys::mlx_string_free(text);
        told
    }
}

/// MLX's name of the device that computes on this thread, such as `NVIDIA H200`; empty if it has none.
pub fn device_name() -> String {
    device_info(c"device_name")
}

/// The name of the device's machine code, such as `sm_90`; empty if it is not known.
pub fn architecture() -> String {
    device_info(c"architecture")
}

/// The platform that findings about kernels hold for: the version of MLX, the device and its driver.
pub fn platform() -> String {
    let version = version().unwrap_or_default();
    let driver = match std::env::consts::OS {
        "macos" => std::fs::read_to_string("/System/Library/CoreServices/SystemVersion.plist")
            .ok()
            .and_then(|plist| {
                let (_, rest) = plist.split_once("<key>ProductBuildVersion</key>")?;
                Some(rest.split_once("<string>")?.1.split_once("</string>")?.0.to_owned())
            }),
        _ => std::fs::read_to_string("/proc/driver/nvidia/version")
            .ok()
            .and_then(|text| text.lines().next().map(str::to_owned)),
    };
    format!("MLX {version}; {}; {}", device_name(), driver.unwrap_or_default())
}

fn device_info(key: &CStr) -> String {
    // SAFETY: plain queries with valid out-pointers; everything created here is freed once, and the text is copied
    // before.
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

/// True if MLX's kernels for the processor compute, also if a test pretends to have a GPU.
pub fn on_cpu() -> bool {
    connection().computes == Device::Cpu
}

/// True if kernels for CUDA can be launched on this thread: never if it could not connect.
pub fn on_cuda() -> bool {
    CONNECTION
        .get()
        .is_some_and(|connection| connection.computes == Device::Cuda)
}

/// The stream of this thread, for calls into MLX.
pub fn stream() -> mlx_stream {
    connection().stream
}

/// Turns a status of MLX into a result with MLX's message.
pub fn check(status: i32) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let message = LAST_ERROR.take().unwrap_or_else(|| format!("status {status}"));
    Err(Error::Failed(message))
}
