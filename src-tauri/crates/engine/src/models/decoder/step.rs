//! One step of the decoder: what its layers share.

use std::cell::RefCell;
use std::ops::Range;

use checkpoint::config::decoder::QueryScaling;
use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{composes, seen, KvView};
use crate::layers::{Position, Rope, Rotation};
use crate::models::ChunkImage;

/// Everything that all layers share in one step.
pub(super) struct Step<'a> {
    /// The number of sequences. If there are several, each has one row.
    pub(super) sequences: usize,
    pub(super) ropes: &'a [Rope],
    /// The position of the next token of each sequence, and of each token if that is more than a number.
    pub(super) next: Vec<usize>,
    pub(super) positions: Option<&'a [Position]>,
    pub(super) rotations: Vec<Rotation>,
    /// One per window, for every sequence: one that has a single row sees all of its keys.
    pub(super) masks: Vec<Mask>,
    /// The view of the next positions of each sequence in layers that stay in their chunk; none if there are no such
    /// layers.
    pub(super) chunks: Vec<InChunk>,
    /// One per sequence.
    pub(super) query_scaling: Vec<Option<QueryScale>>,
    /// True from the second loop through the layers on.
    pub(super) again: bool,
    /// The keys and values that each layer saw in the first loop, for each sequence, if the second one reads them.
    pub(super) first_loop: RefCell<Vec<Vec<KvView>>>,
    /// The positions that the last index chose, for each sequence.
    pub(super) chosen: RefCell<Vec<Chosen>>,
    /// The keys and values that each sequence saw in the last layer that others read.
    pub(super) kept: RefCell<Vec<KvView>>,
    /// The values of the first layer, if others mix them with theirs.
    pub(super) first_values: RefCell<Option<Tensor>>,
    /// The stream before the first layer, if layers add it.
    pub(super) embedded: Option<Tensor>,
    /// The tokens of its rows.
    pub(super) tokens: StepTokens<'a>,
    /// The inputs of all layers, `[rows, layers, width]`, if they have any beside the stream.
    pub(super) layer_inputs: Option<Tensor>,
    /// Images of the chunk.
    pub(super) images: &'a [ChunkImage],
}

/// The tokens of a step, for parts that tell them apart.
#[derive(Clone, Copy, Default)]
pub(super) struct StepTokens<'a> {
    /// They themselves `[rows]`, if they are read one after another.
    pub(super) ids: Option<&'a Tensor>,
    /// The rows of images, their marks included.
    pub(super) of_images: &'a [Range<usize>],
}

/// The positions that queries of one sequence look at, by an index.
#[derive(Clone)]
pub(super) enum Chosen {
    /// All that they see.
    All,
    /// Those of these numbers, for one query, `[positions]`.
    Of(Tensor),
    /// Those marked true, `[length, positions]`.
    Marked(Tensor),
}

impl Step<'_> {
    /// The positions of the next `length` tokens of a sequence.
    pub(super) fn positions(&self, sequence: usize, length: usize) -> Vec<Position> {
        match self.positions {
            Some(positions) => positions.to_vec(),
            None => {
                let next = self.next[sequence];
                (next..next + length).map(|place| [place as f32; 4]).collect()
            }
        }
    }

    /// Keeps the positions that an index chose for the queries of a sequence.
    pub(super) fn keep_chosen(&self, sequence: usize, chosen: &Chosen) {
        let mut kept = self.chosen.borrow_mut();
        let sequences = kept.len().max(sequence + 1);
        kept.resize(sequences, Chosen::All);
        kept[sequence] = chosen.clone();
    }

    /// Those that the last index chose for it.
    pub(super) fn chosen(&self, sequence: usize) -> Chosen {
        self.chosen.borrow().get(sequence).cloned().unwrap_or(Chosen::All)
    }
}

/// The view of the next positions of a sequence in layers that stay in their chunk.
pub(super) struct InChunk {
    /// The first position of the chunk that the first of them is in.
    pub(super) start: i32,
    /// Which of the positions from there on they see.
    pub(super) mask: Mask,
}

impl InChunk {
    /// For `length` positions from `offset` on, in chunks of `chunk`.
    pub(super) fn new(chunk: u32, offset: usize, length: usize) -> Result<Self> {
        let start = offset / chunk as usize * chunk as usize;
        let (before, ends) = (offset - start, start + chunk as usize);
        let mask = match length {
            1 => Mask::None,
            _ if offset + length <= ends && !composes(length, before + length) => Mask::Causal,
            _ => Mask::Array(seen_in_chunk(chunk as i32, before as i32, length as i32)?),
        };
        Ok(Self {
            start: start as i32,
            mask,
        })
    }
}

/// Marks the positions up to its own, of the same chunk, that each of `length` positions after `before` others sees;
/// `[length, before + length]`.
fn seen_in_chunk(chunk: i32, before: i32, length: i32) -> Result<Tensor> {
    let positions: Vec<i32> = (0..before + length).collect();
    let numbers: Vec<i32> = positions.iter().map(|position| position / chunk).collect();
    let keys = Tensor::from_i32(&numbers, &[1, before + length]);
    let queries = Tensor::from_i32(&numbers[before as usize..], &[length, 1]);
    seen(before, length, None, None)?.mul(&keys.greater_equal(&queries)?)
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
    let ahead = usize::from(query_scaling.from_one);
    let scale_at = |position: usize| {
        let position = position + ahead;
        1.0 + query_scaling.beta * (1.0 + (position / query_scaling.original_context as usize) as f32).ln()
    };
    if offset + length + ahead <= query_scaling.original_context as usize {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    #[test]
    fn positions_see_those_of_their_chunk_up_to_themselves() {
        connect().unwrap();
        let alone = InChunk::new(4, 9, 1).unwrap();
        assert!(alone.start == 8 && matches!(alone.mask, Mask::None));
        let inside = InChunk::new(4, 5, 3).unwrap();
        assert!(inside.start == 4 && matches!(inside.mask, Mask::Causal));
        let across = InChunk::new(4, 6, 3).unwrap();
        let Mask::Array(seen) = across.mask else {
            panic!("the last one sees no other")
        };
        let marks = seen.astype(mlx::Dtype::Float32).unwrap().to_f32().unwrap();
        assert_eq!(across.start, 4);
        assert_eq!(
            marks,
            [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        );
    }

    #[test]
    fn queries_grow_from_one_if_positions_count_from_there() {
        let scaling = |from_one| QueryScaling {
            beta: 0.5,
            original_context: 4,
            from_one,
        };
        assert!(query_scale(scaling(false), 3, 1).is_none());
        let Some(QueryScale::Single(factor)) = query_scale(scaling(true), 3, 1) else {
            panic!("the fourth position is past the context")
        };
        assert!((factor - (1.0 + 0.5 * 2f32.ln())).abs() < 1e-6);
    }
}
