//! The choice of kernels that fuse several of MLX's operations.

use mlx::fused::FusedKernels;

/// The kernels for the device of this thread. Without the feature `cuda-kernels`, and on a Mac, there are none.
#[cfg(all(feature = "cuda-kernels", target_os = "linux"))]
pub fn kernels() -> &'static dyn FusedKernels {
    mlx_kernels::kernels()
}

/// The kernels for the device of this thread: none in this build.
#[cfg(not(all(feature = "cuda-kernels", target_os = "linux")))]
pub fn kernels() -> &'static dyn FusedKernels {
    &mlx::fused::NoKernels
}
