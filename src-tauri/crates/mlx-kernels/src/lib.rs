//! Kernels of our own for CUDA, each doing in one launch what takes several of MLX's: with small batches a token costs
//! as much as it has launches. Every kernel is compared with the operations it stands for before a computer uses it the
//! first time; one that cannot be compiled or differs is left out, and its caller composes.
//!
//! Compiled programs are [kept](compiler) from process to process.

mod addresses;
mod attend;
mod cached_attention;
mod compare;
mod compiler;
mod elementwise;
mod ends;
mod experts;
mod gate;
mod graph;
mod grouped;
mod heads;
mod kernel;
mod linear;
mod norm_linear;
mod norm_route;
mod nvrtc;
mod product_compare;
mod program;
mod reader;
mod record;
mod recorder;
mod residual;
mod route;
mod row;
mod stack;
mod tiles;
mod verdicts;

use std::path::Path;
use std::sync::OnceLock;

use mlx::fused::{
    Epilogue, FileTensor, FusedKernels, GateActivation, HeadShape, NoKernels, PointwiseActivation, ResidualInput,
    Routed, Router, Rows, Split,
};
use mlx::ops::Mask;
use mlx::recording::{CachedAttention, RecordedStep, StepRows};
use mlx::tensor::Tensor;
use mlx::{device, Result};

use crate::stack::Stack;

/// The kernels of this thread, which has connected to MLX. There are none if its device is not NVIDIA's, or if they are
/// turned off by `PONDER_KERNELS=0`.
pub fn kernels() -> &'static dyn FusedKernels {
    static WANTED: OnceLock<bool> = OnceLock::new();
    match device::on_cuda() && *WANTED.get_or_init(|| is_wanted("PONDER_KERNELS")) {
        true => &CudaKernels,
        false => &NoKernels,
    }
}

/// True unless this variable of the environment is 0.
fn is_wanted(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|wanted| wanted != "0")
}

struct CudaKernels;

impl FusedKernels for CudaKernels {
    fn attend(
        &self,
        queries: &Tensor,
        (keys, values): (&Tensor, &Tensor),
        scale: f32,
        mask: &Mask,
        sinks: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        match (mask, sinks) {
            (Mask::None, None) => attend::attend(queries, keys, values, scale),
            _ => Ok(None),
        }
    }

    fn linear(&self, x: &Tensor, matrix: Rows<'_>, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
        linear::linear(x, matrix, None, gated)
    }

    fn biased_linear(
        &self,
        x: &Tensor,
        matrix: Rows<'_>,
        bias: &Tensor,
        activation: Option<PointwiseActivation>,
    ) -> Result<Option<Tensor>> {
        match activation {
            None => linear::linear(x, matrix, Some(bias), None),
            Some(_) => Ok(None),
        }
    }

    fn gathered_linear(
        &self,
        x: &Tensor,
        (stack, bias): (Rows<'_>, Option<&Tensor>),
        indices: &Tensor,
        gated: Option<GateActivation>,
    ) -> Result<Option<Tensor>> {
        match stack {
            Rows::Quantized(matrices) => experts::gathered_linear(x, Stack { matrices, bias }, indices, gated),
            Rows::Plain(_) => Ok(None),
        }
    }

    fn gathered_sum(
        &self,
        x: &Tensor,
        (stack, bias): (Rows<'_>, Option<&Tensor>),
        indices: &Tensor,
        shares: &Tensor,
    ) -> Result<Option<Tensor>> {
        match stack {
            Rows::Quantized(matrices) => experts::gathered_sum(x, Stack { matrices, bias }, indices, shares),
            Rows::Plain(_) => Ok(None),
        }
    }

    fn route(&self, scores: &Tensor, chosen: i32) -> Result<Option<(Tensor, Tensor)>> {
        route::route(scores, chosen)
    }

    fn norm_route(&self, row: ResidualInput<'_>, router: Router<'_>) -> Result<Option<Routed>> {
        norm_route::norm_route(row, router)
    }

    fn norm_linear(
        &self,
        row: ResidualInput<'_>,
        matrix: Rows<'_>,
        after: Epilogue<'_>,
    ) -> Result<Option<(Tensor, Tensor)>> {
        norm_linear::norm_linear(row, matrix, after)
    }

    fn add_norm(&self, row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
        residual::add_norm(row)
    }

    fn rms_norm(&self, x: &Tensor, factors: Option<&Tensor>, eps: f32) -> Result<Option<Tensor>> {
        match factors {
            Some(factors) => residual::rms_norm(x, factors, eps),
            None => Ok(None),
        }
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

    fn embedding(&self, table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
        ends::embedding(table, ids)
    }

    fn read_tensor(&self, path: &Path, place: &FileTensor, described: &Tensor) -> Result<Option<Tensor>> {
        reader::read(path, place, described)
    }

    fn loaded(&self) {
        reader::clear();
    }

    fn record(
        &self,
        rows: StepRows,
        describe: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
    ) -> Result<Option<Box<dyn RecordedStep>>> {
        static WANTED: OnceLock<bool> = OnceLock::new();
        match *WANTED.get_or_init(|| is_wanted("PONDER_GRAPHS")) {
            true => record::record(rows, describe),
            false => Ok(None),
        }
    }

    fn recorded_positions(&self) -> Option<Tensor> {
        recorder::positions()
    }

    fn attend_cached(&self, attention: CachedAttention<'_>) -> Result<Option<Tensor>> {
        match mlx::recording::is_on() {
            true => cached_attention::attend(attention),
            false => Ok(None),
        }
    }

    fn wait_for_recorded(&self) {
        graph::wait();
    }

    fn are_available(&self) -> bool {
        true
    }

    fn are_missing(&self) -> bool {
        kernel::are_missing()
    }

    fn clear(&self) {
        reader::clear();
        graph::clear();
        addresses::clear();
        norm_route::clear();
        kernel::clear();
    }
}
