//! The kernels as the engine asks for them.

use mlx::fused::{FusedKernels, GateActivation, NoKernels};
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::{device, Result};

use crate::linear;

/// The kernels of this thread, which has connected to MLX: none if its device is a GPU.
pub fn kernels() -> &'static dyn FusedKernels {
    match device::device() == device::Device::Cpu {
        true => &CpuKernels,
        false => &NoKernels,
    }
}

struct CpuKernels;

impl FusedKernels for CpuKernels {
    fn linear(&self, x: &Tensor, matrix: &QuantizedTensor, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
        linear::quantized(x, matrix, gated)
    }

    fn plain_linear(&self, x: &Tensor, rows: &Tensor, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
        linear::plain(x, rows, gated)
    }
}
