//! Buffers of keys and values that grow with the positions: the storage of full attention.
//!
//! While a sequence is read its rows lie in buffers that grow by steps and are written in place. Rows never change, so
//! a frozen copy consists of [`Block`]s of [`BLOCK`] positions that all copies of one sequence share: freezing copies
//! only rows added since the last time, and only the last block, unless it is full, belongs to one copy alone.

use std::rc::Rc;

use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::recording::CacheShape;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Block, ByteCounter};

/// Positions that are added at once when the space is used up.
const STEP: i32 = checkpoint::memory::CACHE_STEP as i32;

/// Positions of a shared block.
pub const BLOCK: i32 = 256;

/// Tensors `[1, heads, positions, width]`, of any widths, that grow together.
#[derive(Default, Parameters)]
pub struct KvBuffer {
    /// The tensors, with space at the end; none before the first position.
    buffers: Vec<Tensor>,
    offset: i32,
    /// The full blocks that were frozen, from the first position on: copies that were computed when they were made.
    #[parameters(skip)]
    blocks: Vec<Rc<Block>>,
}

impl KvBuffer {
    /// How many positions there are.
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// Adds positions, one tensor for each, and returns all positions.
    pub fn append(&mut self, parts: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (start, end) = (self.offset, self.offset + parts[0].dim(2));
        // The buffers are taken out, so that the handles below are the only ones and MLX may write in place.
        let mut old = std::mem::take(&mut self.buffers).into_iter();
        let mut seen = Vec::with_capacity(parts.len());
        for part in parts {
            let buffer = match old.next() {
                Some(buffer) => grown(buffer, start, end)?,
                None => space(part, end)?,
            };
            let all = buffer.slice_update(part, 2, start)?;
            drop(buffer);
            seen.push(all.slice(2, 0, end)?);
            self.buffers.push(all);
        }
        self.offset = end;
        Ok(seen)
    }

    /// All positions of each tensor; nothing before the first position.
    pub fn seen(&self) -> Result<Vec<Tensor>> {
        let buffers = self.buffers.iter();
        buffers.map(|buffer| buffer.slice(2, 0, self.offset)).collect()
    }

    /// Two tensors with room for `more` positions, which whoever writes them [counts](KvBuffer::count_written).
    pub fn place(&mut self, shape: CacheShape, more: i32) -> Result<&[Tensor]> {
        let end = self.offset + more;
        if self.buffers.is_empty() {
            let new = || Tensor::zeros(&[1, shape.heads, rounded(end), shape.width], shape.dtype);
            self.buffers = vec![new()?, new()?];
        }
        for buffer in &mut self.buffers {
            if end > buffer.dim(2) {
                *buffer = grown(buffer.clone(), self.offset, end)?;
            }
        }
        Ok(&self.buffers)
    }

    /// Counts positions that were written into the tensors.
    pub fn count_written(&mut self, count: i32) {
        self.offset += count;
    }

    /// Takes back the last positions; their places are written anew.
    pub fn drop_last(&mut self, count: i32) {
        self.offset -= count;
        self.blocks.truncate((self.offset / BLOCK) as usize);
    }

    /// A copy that does not change. Its tensors are still to be computed.
    pub fn freeze(&mut self, counter: &ByteCounter) -> Result<KvBlocks> {
        let copy = |start: i32, end: i32| -> Result<Rc<Block>> {
            let rows = self
                .buffers
                .iter()
                .map(|buffer| buffer.slice(2, start, end)?.contiguous());
            Ok(Rc::new(Block::new(rows.collect::<Result<_>>()?, counter)))
        };
        let full = self.offset / BLOCK;
        let new = (self.blocks.len() as i32..full)
            .map(|index| copy(index * BLOCK, (index + 1) * BLOCK))
            .collect::<Result<Vec<_>>>()?;
        let rest = match self.offset % BLOCK {
            0 => None,
            _ => Some(copy(full * BLOCK, self.offset)?),
        };
        self.blocks.extend(new);
        Ok(KvBlocks {
            blocks: self.blocks.iter().cloned().chain(rest).collect(),
            offset: self.offset,
        })
    }
}

/// A frozen copy of rows: shared blocks, of which the last may be shorter than [`BLOCK`].
pub struct KvBlocks {
    blocks: Vec<Rc<Block>>,
    offset: i32,
}

impl KvBlocks {
    /// How many positions there are.
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// Rows that begin with the first `positions`, at most [`KvBlocks::offset`] of these, and can grow.
    pub fn thaw(&self, positions: i32) -> Result<KvBuffer> {
        let (full, rest) = (positions / BLOCK, positions % BLOCK);
        if positions == 0 {
            return Ok(KvBuffer::default());
        }
        let count = self.blocks.first().map_or(0, |block| block.tensors().len());
        let buffers = (0..count).map(|index| {
            let rows = |block: &Rc<Block>| block.tensors()[index].clone();
            let mut parts: Vec<Tensor> = self.blocks[..full as usize].iter().map(rows).collect();
            if rest > 0 {
                parts.push(rows(&self.blocks[full as usize]).slice(2, 0, rest)?);
                parts.push(empty(&parts[0], STEP - rest)?);
            }
            concatenate(&parts.iter().collect::<Vec<_>>(), 2)
        });
        Ok(KvBuffer {
            buffers: buffers.collect::<Result<_>>()?,
            offset: positions,
            blocks: self.blocks[..full as usize].to_vec(),
        })
    }

    /// Keeps only the full blocks of the first `positions`.
    pub fn trim(&mut self, positions: i32) {
        self.blocks.truncate((positions / BLOCK) as usize);
        self.offset = self.offset.min(positions / BLOCK * BLOCK);
    }

    /// Its blocks.
    pub fn blocks(&self) -> &[Rc<Block>] {
        &self.blocks
    }
}

fn space(like: &Tensor, positions: i32) -> Result<Tensor> {
    empty(like, rounded(positions))
}

/// Positions that there is space for if so many are needed.
fn rounded(positions: i32) -> i32 {
    (positions + STEP - 1) / STEP * STEP
}

fn empty(like: &Tensor, positions: i32) -> Result<Tensor> {
    Tensor::zeros(&[1, like.dim(1), positions, like.dim(3)], like.dtype())
}

fn grown(buffer: Tensor, used: i32, needed: i32) -> Result<Tensor> {
    if needed <= buffer.dim(2) {
        return Ok(buffer);
    }
    concatenate(&[&buffer.slice(2, 0, used)?, &space(&buffer, needed - used)?], 2)
}
