//! The kernels as the engine asks for them.

use std::path::Path;

use mlx::fused::{
    Epilogue, FileTensor, FusedKernels, GateActivation, HeadShape, PointwiseActivation, Processor, ResidualInput, Rows,
    Split,
};
use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::isa::Isa;
use crate::pool::Pool;
use crate::product::Precision;
use crate::{
    attend, biased, embedding, file_tensors, gate, gathered, heads, kv_dtype, layer_norm, linear, norm, pointwise,
    primitive,
};

/// Lets so many threads compute from now on, in the whole process, at most one for each core that the system allows;
/// `None` for as many as suit this computer.
pub fn set_threads(threads: Option<usize>) {
    Pool::get().set_threads(threads.unwrap_or_else(Pool::suitable));
}

/// The kernels for threads whose device is the processor.
pub fn kernels() -> &'static dyn FusedKernels {
    &CpuKernels
}

struct CpuKernels;

impl FusedKernels for CpuKernels {
    fn attend(
        &self,
        queries: &Tensor,
        (keys, values): (&Tensor, &Tensor),
        scale: f32,
        mask: &Mask,
        sinks: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        attend::attend(queries, (keys, values), scale, mask, sinks)
    }

    fn linear(&self, x: &Tensor, matrix: Rows<'_>, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
        linear::linear(x, matrix, gated)
    }

    fn biased_linear(
        &self,
        x: &Tensor,
        matrix: Rows<'_>,
        bias: &Tensor,
        activation: Option<PointwiseActivation>,
    ) -> Result<Option<Tensor>> {
        biased::biased_linear(x, matrix, bias, activation)
    }

    fn pointwise(&self, activation: PointwiseActivation, x: &Tensor) -> Result<Option<Tensor>> {
        pointwise::pointwise(activation, x)
    }

    fn layer_norm(
        &self,
        x: &Tensor,
        added: Option<&Tensor>,
        weight_and_bias: (&Tensor, &Tensor),
        eps: f32,
    ) -> Result<Option<Tensor>> {
        layer_norm::layer_norm(x, added, weight_and_bias, eps)
    }

    fn gathered_linear(
        &self,
        x: &Tensor,
        (stack, bias): (Rows<'_>, Option<&Tensor>),
        indices: &Tensor,
        gated: Option<GateActivation>,
    ) -> Result<Option<Tensor>> {
        match bias {
            None => gathered::gathered_linear(x, stack, indices, gated),
            Some(_) => Ok(None),
        }
    }

    fn norm_linear(
        &self,
        row: ResidualInput<'_>,
        matrix: Rows<'_>,
        after: Epilogue<'_>,
    ) -> Result<Option<(Tensor, Tensor)>> {
        linear::norm_linear(row, matrix, after)
    }

    fn rms_norm(&self, x: &Tensor, factors: Option<&Tensor>, eps: f32) -> Result<Option<Tensor>> {
        norm::rms_norm(x, factors, eps)
    }

    fn add_norm(&self, row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
        norm::add_norm(row)
    }

    fn gate(&self, activation: GateActivation, gate: &Tensor, up: Option<&Tensor>) -> Result<Option<Tensor>> {
        gate::gate(activation, gate, up)
    }

    fn heads(
        &self,
        shape: HeadShape,
        all: &Tensor,
        factors: Option<&Tensor>,
        periods: &Tensor,
        positions: &Tensor,
    ) -> Result<Option<Split>> {
        heads::heads(shape, all, factors, periods, positions)
    }

    fn rotate(
        &self,
        x: &Tensor,
        rotated: i32,
        neighbors: bool,
        periods: &Tensor,
        positions: &Tensor,
    ) -> Result<Option<Tensor>> {
        heads::rotate(x, [rotated, i32::from(neighbors)], periods, positions)
    }

    fn embedding(&self, table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
        embedding::embedding(table, ids)
    }

    fn file_tensors(&self, path: &Path, tensors: &[FileTensor]) -> Result<Option<Vec<Tensor>>> {
        file_tensors::file_tensors(path, tensors).map(Some)
    }

    fn to_kv_dtype(&self, x: &Tensor) -> Result<Option<Tensor>> {
        kv_dtype::to_kv_dtype(x)
    }

    fn join(&self, tensors: &[&Tensor]) -> Result<()> {
        primitive::join(tensors)
    }

    fn compute_exactly(&self) {
        Precision::Floats.want();
    }

    fn processor(&self) -> Option<Processor> {
        let isa = Isa::chosen();
        Some(Processor {
            instructions: isa.title(),
            threads: Pool::get().threads(),
            activation_bits: Precision::chosen().bits(isa),
        })
    }

    fn are_available(&self) -> bool {
        true
    }
}
