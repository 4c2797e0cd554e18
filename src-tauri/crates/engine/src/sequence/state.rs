//! The state of a sequence: its caches, and how far they have read.

use std::rc::Rc;

use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use protocol::KvBits;

use crate::cache::Cache;
use crate::error::Result;
use crate::kernels::kernels;
use crate::models::{Input, Model};
use crate::products::packed_product::clear_ahead;
use crate::sequence::images::{Chunk, PromptImages};
use crate::sequence::read_states::ReadStates;

/// The model's memory of a sequence: the caches of its layers and how far they have read.
pub struct SequenceState {
    /// Before the caches, because fields are dropped in order.
    writers: CacheWriters,
    pub(super) caches: Vec<Cache>,
    /// Tokens that the caches have read, counted where the model is called.
    pub(super) offset: usize,
    /// The images among its tokens.
    pub(super) images: Option<Rc<PromptImages>>,
    /// The states of the last tokens, if a head reads them.
    kept: Option<ReadStates>,
}

/// Recorded steps that may still write a sequence's caches.
struct CacheWriters;

impl CacheWriters {
    fn wait(&self) {
        kernels().wait_for_recorded();
    }
}

impl Drop for CacheWriters {
    fn drop(&mut self) {
        self.wait();
    }
}

impl SequenceState {
    /// Nothing has been read; keys and values of full attention will be quantized to `kv_bits`.
    pub fn new(model: &Model, kv_bits: Option<KvBits>) -> Self {
        Self::from_caches(
            model
                .caches()
                .into_iter()
                .map(|cache| cache.quantized(kv_bits))
                .collect(),
            0,
        )
    }

    /// Caches that have read `positions` tokens.
    pub fn from_caches(caches: Vec<Cache>, positions: usize) -> Self {
        Self {
            writers: CacheWriters,
            caches,
            offset: positions,
            images: None,
            kept: None,
        }
    }

    /// The same sequence with these images among its tokens.
    pub fn with_images(self, images: Option<Rc<PromptImages>>) -> Self {
        Self { images, ..self }
    }

    /// The images and positions of the next `length` tokens.
    ///
    /// # Errors
    /// If an image among them is not encoded yet.
    pub fn chunk(&self, length: usize) -> Result<Chunk> {
        Chunk::of(self.images.as_deref(), self.offset, self.offset + length)
    }

    /// By how much the position of the next token differs from the number of tokens read.
    pub(super) fn delta(&self) -> i32 {
        self.images.as_ref().map_or(0, |images| images.delta(self.offset))
    }

    /// The number of tokens that the caches have read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Counts `tokens` tokens that were read with its caches.
    pub fn advance_by(&mut self, tokens: usize) {
        self.offset += tokens;
    }

    /// Counts `tokens` tokens less, which its caches have taken back.
    pub(super) fn take_back(&mut self, tokens: usize) -> Result<()> {
        self.offset -= tokens;
        match &mut self.kept {
            Some(kept) => Ok(kept.take_back(tokens)?),
            None => Ok(()),
        }
    }

    /// Takes back the last tokens that were read.
    ///
    /// # Errors
    /// If MLX fails; then the sequence cannot be continued.
    pub fn drop_last(&mut self, tokens: usize) -> Result<()> {
        self.take_back(tokens)?;
        Ok(self.caches.iter_mut().try_for_each(|cache| cache.drop_last(tokens))?)
    }

    /// Keeps the model's states of what is read from now on, or does so no more.
    pub fn keep_states(&mut self, keep: bool) {
        self.kept = keep.then(|| ReadStates::from(self.offset));
    }

    /// True if the model's states are kept; recorded steps have none.
    pub(super) fn keeps_states(&self) -> bool {
        self.kept.is_some()
    }

    /// True if the model's states of the last tokens are kept and were not taken.
    pub fn has_states(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.is_empty())
    }

    /// Takes the states that are kept, as [`ReadStates::take`].
    ///
    /// # Errors
    /// If MLX fails.
    pub fn take_states(&mut self) -> Result<Option<(usize, Tensor)>> {
        match &mut self.kept {
            Some(kept) => Ok(kept.take()?),
            None => Ok(None),
        }
    }

    /// Takes note of the states `[rows, width]` of the next rows, if they are kept.
    pub(super) fn give_states(&mut self, states: &Tensor) {
        if let Some(kept) = &mut self.kept {
            kept.push(states.clone());
        }
    }

    /// The caches.
    pub fn caches(&mut self) -> &mut [Cache] {
        self.writers.wait();
        &mut self.caches
    }

    /// How many layers keep every position as it was computed.
    pub fn unquantized_layers(&self) -> usize {
        let unquantized = |cache: &&Cache| matches!(cache, Cache::Plain(_) | Cache::Mla(_));
        self.caches.iter().filter(unquantized).count()
    }

    /// Reads tokens for the sake of the caches alone. Nothing that the caches do not need is computed: not the output
    /// layer, nor layers that use the keys of others.
    pub fn prefill(&mut self, model: &Model, ids: &[u32]) -> Result<()> {
        let input = model.ids(ids)?;
        let chunk = self.chunk(ids.len())?;
        self.offset += ids.len();
        let states = model.forward(&chunk.input(&input), &mut [&mut self.caches])?;
        self.give_states(&states);
        let kept = self.kept.iter().flat_map(ReadStates::tensors);
        let read: Vec<&Tensor> = self.caches.iter().flat_map(Parameters::tensors).chain(kept).collect();
        kernels().join(&read)?;
        eval(read)?;
        clear_ahead();
        Ok(())
    }
}

/// The logits `[sequences, vocabulary]` of what follows the tokens `input` `[sequences]`. Nothing is evaluated.
pub fn next_logits(model: &Model, input: &Tensor, states: &mut [&mut SequenceState]) -> Result<Tensor> {
    let mut deltas: Vec<i32> = states.iter().map(|state| state.delta()).collect();
    if deltas.iter().all(|delta| *delta == 0) {
        deltas.clear();
    }
    let mut caches: Vec<&mut [Cache]> = Vec::with_capacity(states.len());
    for state in states.iter_mut() {
        state.offset += 1;
        caches.push(&mut state.caches);
    }
    let input = Input {
        deltas: &deltas,
        ..Input::text(input)
    };
    let read = model.forward(&input, &mut caches)?;
    match states {
        [alone] => alone.give_states(&read),
        several => {
            for (state, row) in several.iter_mut().zip(0..).filter(|(state, _)| state.keeps_states()) {
                state.give_states(&read.slice(0, row, row + 1)?);
            }
        }
    }
    model.logits(&read)
}
