//! The device as far as memory and the length of a chunk depend on it.

use checkpoint::memory::Backend;
use mlx::device::{device, Device};

/// Prompt tokens that are read at once, between two checks of the cancel flag.
pub fn prefill_chunk() -> usize {
    backend().prefill_chunk() as usize
}

/// The device that computes on this thread.
pub fn backend() -> Backend {
    match device() {
        Device::Cpu => Backend::Cpu,
        Device::Metal => Backend::Metal,
        Device::Cuda => Backend::Cuda,
    }
}
