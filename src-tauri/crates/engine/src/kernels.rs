//! The choice of kernels that fuse several of MLX's operations.

#[cfg(target_os = "linux")]
use mlx::device::{device, Device};
use mlx::fused::FusedKernels;
use mlx::tensor::{async_eval, Tensor};
use mlx::Result;
use protocol::ProcessorUse;

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

/// How the processor computes from now on, where it may.
pub fn processor() -> Option<ProcessorUse> {
    #[cfg(target_os = "linux")]
    let used = cpu_kernels::kernels().processor();
    #[cfg(not(target_os = "linux"))]
    let used = mlx::fused::NoKernels.processor();
    used.map(|used| ProcessorUse {
        instructions: used.instructions.into(),
        threads: used.threads as u32,
        activation_bits: used.activation_bits,
    })
}

/// Lets so many threads compute on the processor from now on.
pub fn set_threads(threads: Option<u32>) {
    #[cfg(target_os = "linux")]
    cpu_kernels::set_threads(threads.map(|threads| threads as usize));
    #[cfg(not(target_os = "linux"))]
    let _ = threads;
}

/// Begins to compute tensors, with as few operations as the kernels can do with, and returns at once.
///
/// # Errors
/// If MLX fails.
pub fn begin<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    let tensors: Vec<&Tensor> = tensors.into_iter().collect();
    kernels().join(&tensors)?;
    async_eval(tensors)
}
