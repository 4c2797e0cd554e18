//! One step of the decoder: what its layers share.

use checkpoint::config::decoder::QueryScaling;
use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::{Rope, Rotation};
use crate::models::ChunkImage;

/// Everything that all layers share in one step.
pub(super) struct Step<'a> {
    /// The number of sequences. If there are several, each has one row.
    pub(super) sequences: usize,
    pub(super) ropes: &'a [Rope],
    pub(super) rotations: Vec<Rotation>,
    /// One per window, for every sequence: one that has a single row sees all of its keys.
    pub(super) masks: Vec<Mask>,
    /// One per sequence.
    pub(super) query_scaling: Vec<Option<QueryScale>>,
    /// Images of the chunk.
    pub(super) images: &'a [ChunkImage],
}

/// The factors of queries at the positions of a step, which grow with the position.
pub(super) enum QueryScale {
    /// At the only position.
    Single(f32),
    /// `[1, 1, length, 1]`.
    PerPosition(Tensor),
}

impl QueryScale {
    /// Queries `[1, heads, length, width]` times their factors.
    pub(super) fn apply(&self, queries: &Tensor) -> Result<Tensor> {
        match self {
            Self::Single(factor) => queries.mul(&Tensor::scalar(*factor, queries.dtype())?),
            Self::PerPosition(factors) => queries.mul(&factors.astype(queries.dtype())?),
        }
    }
}

/// The factors of queries from `offset` on; `None` if they are all 1, as within the context that the model was trained
/// for.
pub(super) fn query_scale(query_scaling: QueryScaling, offset: usize, length: usize) -> Option<QueryScale> {
    let scale_at = |position: usize| {
        1.0 + query_scaling.beta * (1.0 + (position / query_scaling.original_context as usize) as f32).ln()
    };
    if offset + length <= query_scaling.original_context as usize {
        return None;
    }
    if length == 1 {
        return Some(QueryScale::Single(scale_at(offset)));
    }
    let factors: Vec<f32> = (offset..offset + length).map(scale_at).collect();
    Some(QueryScale::PerPosition(Tensor::from_f32(
        &factors,
        &[1, 1, length as i32, 1],
    )))
}
