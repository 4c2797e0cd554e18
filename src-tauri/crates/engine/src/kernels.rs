//! The choice of kernels that fuse several of MLX's operations.

#[cfg(target_os = "linux")]
use mlx::device::{device, Device};
use mlx::fused::FusedKernels;

/// The kernels for the device of this thread: on Linux those for the processor, and with the feature `cuda-kernels`
/// those for NVIDIA cards; none on a Mac.
pub fn kernels() -> &'static dyn FusedKernels {
    #[cfg(target_os = "linux")]
    if device() == Device::Cpu {
        return cpu_kernels::kernels();
    }
    #[cfg(all(feature = "cuda-kernels", target_os = "linux"))]
    return mlx_kernels::kernels();
    #[allow(unreachable_code)]
    &mlx::fused::NoKernels
}
