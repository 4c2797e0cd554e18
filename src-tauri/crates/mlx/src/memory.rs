//! The memory that MLX holds.

use std::panic::catch_unwind;

use crate::device::{device, synchronize, Device};
use crate::error::Result;

/// The bytes that MLX holds.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Of living arrays.
    pub active: u64,
    /// The most that living arrays had since [`reset_peak`].
    pub peak: u64,
    /// Of buffers that are kept for reuse.
    pub cache: u64,
}

/// The figures of now.
pub fn figures() -> Result<Figures> {
    Ok(Figures {
        active: mlx_rs::memory::active_memory()? as u64,
        peak: mlx_rs::memory::peak_memory()? as u64,
        cache: mlx_rs::memory::cache_memory()? as u64,
    })
}

/// Gives buffers that were kept for reuse back to the system.
pub fn clear_cache() -> Result<()> {
    Ok(mlx_rs::memory::clear_cache()?)
}

/// Begins a new peak.
pub fn reset_peak() -> Result<()> {
    Ok(mlx_rs::memory::reset_peak_memory()?)
}

/// Gives the buffers that reading a chunk left for reuse back, if nothing that is computed next would take them.
pub fn clear_after_chunk() -> Result<()> {
    match device() {
        // Giving buffers back and fetching them again costs a server card as much as reading the tokens.
        Device::Cuda => Ok(()),
        Device::Cpu | Device::Metal => clear_cache(),
    }
}

/// The most bytes that MLX may hold before it waits or fails: on a Mac from Metal's recommendation, elsewhere a large
/// part of the memory.
pub fn limit() -> Result<u64> {
    Ok(mlx_rs::memory::memory_limit()? as u64)
}

/// Waits for work that an abnormal end may have left in flight, and frees its buffers.
pub fn drain() {
    match catch_unwind(|| synchronize().and_then(|()| clear_cache())) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "MLX reported an error of work that was given up"),
        Err(_) => tracing::warn!("MLX could not give up work"),
    }
}

/// The allocator of the process. Its C interface takes the place of the C library's, so that MLX allocates by it too.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Its options: two heaps for all threads, since what one of them keeps of freed memory the others cannot use, and
/// freed memory goes back to the system after a second.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the allocator declares it as a pointer to a string that ends with zero, which nothing else has the name of.
#[export_name = "malloc_conf"]
pub static OPTIONS: Option<&'static std::ffi::c_char> = {
    const TEXT: &std::ffi::CStr = c"narenas:2,background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";
    // SAFETY: a string has at least its zero.
    Some(unsafe { &*TEXT.as_ptr() })
};

/// Gives what the allocator keeps of freed memory back to the system. On a CPU arrays lie there, and after a model has
/// gone most of it would stay.
pub fn trim_heap() {
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    // SAFETY: the name of all heaps, and neither an old value nor a new one.
    unsafe {
        const ALL: &std::ffi::CStr = c"arena.4096.purge";
        tikv_jemalloc_sys::mallctl(
            ALL.as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
        );
    };
}
