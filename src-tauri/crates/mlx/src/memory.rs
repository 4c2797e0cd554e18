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

/// Makes [`limit`] this many bytes, for all of the process; returns what it was.
#[cfg(feature = "test-support")]
pub fn set_limit(bytes: u64) -> Result<u64> {
    Ok(mlx_rs::memory::set_memory_limit(bytes as usize)? as u64)
}

/// Waits for work that an abnormal end may have left in flight, and frees its buffers.
pub fn drain() {
    match catch_unwind(|| synchronize().and_then(|()| clear_cache())) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "MLX reported an error of work that was given up"),
        Err(_) => tracing::warn!("MLX could not give up work"),
    }
}

/// Lets all threads of this process share two heaps, before there are other threads. The C library would make eight for
/// each core, and what one of them keeps of freed memory the others cannot use: a server that has met a hundred large
/// requests holds twice as much.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: glibc declares it as `int mallopt(int, int)`, and this parameter may be set at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2)
    };
}

/// Gives what the C library keeps of freed memory back to the system. On a CPU arrays lie there, and after a model has
/// gone most of it would stay.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: glibc declares it as `int malloc_trim(size_t)`, to be called from any thread at any time.
    unsafe {
        libc::malloc_trim(0)
    };
}
