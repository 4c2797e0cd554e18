//! The step of speculative decoding: one pass over the last token and a draft of those that may follow.

use crate::cache::Cache;
use crate::error::Result;
use crate::layers::join_sequences;
use crate::models::Model;
use crate::sequence::sampler::SamplerState;
use crate::sequence::Sequence;

/// A pass over a draft, of which not everything may stay.
pub struct Verified {
    /// The tokens that were read: the last token of the sequence, then the draft.
    ids: Vec<u32>,
    /// The sampler's choices after each of them, as if all before it stayed.
    tokens: Vec<u32>,
    /// Windows and states as they were before, if there are states, which cannot be taken back.
    before: Option<Vec<Option<Cache>>>,
    /// The sampler after each token that it chose; empty if nothing carries on.
    samplers: Vec<SamplerState>,
}

/// Reads `ids`, the last token of the sequence and a draft, and chooses the token after each of them.
/// [`Verified::keep`] has to follow.
///
/// # Errors
/// If MLX fails; then the sequence cannot be continued.
pub fn verify(model: &Model, sequence: &mut Sequence, ids: Vec<u32>) -> Result<Verified> {
    let input = model.ids(&ids)?;
    let state = &mut sequence.state;
    let recurrent = state.caches.iter().any(Cache::is_recurrent);
    let before = recurrent.then(|| state.caches.iter().map(Cache::snapshot).collect());
    let chunk = state.chunk(ids.len())?;
    state.offset += ids.len();
    let logits = model.logits(&model.forward(&chunk.input(&input), &mut [&mut state.caches])?)?;
    let mut samplers = Vec::new();
    let tokens = if sequence.sampler.takes_likeliest() {
        logits.argmax(-1, false)?
    } else {
        let mut tokens = Vec::with_capacity(ids.len());
        for row in 0..ids.len() as i32 {
            let (input, logits) = (input.slice(0, row, row + 1)?, logits.slice(0, row, row + 1)?);
            tokens.push(sequence.sampler.sample(&input, logits)?);
            samplers.push(sequence.sampler.state());
        }
        join_sequences(tokens)?
    };
    Ok(Verified {
        tokens: tokens.to_u32()?,
        ids,
        before,
        samplers,
    })
}

impl Verified {
    /// The tokens that follow: as much of the draft as was chosen too, and the one after that.
    pub fn chosen(&self) -> &[u32] {
        let accepted = self.ids[1..]
            .iter()
            .zip(&self.tokens)
            .take_while(|(draft, token)| draft == token);
        &self.tokens[..=accepted.count()]
    }

    /// Takes everything back that was read after the first `count` tokens, at least one; `count` tokens were chosen
    /// then.
    ///
    /// # Errors
    /// If MLX fails; then the sequence cannot be continued.
    pub fn keep(mut self, model: &Model, sequence: &mut Sequence, count: usize) -> Result<()> {
        let (read, state) = (self.ids.len(), &mut sequence.state);
        if count == read {
            return Ok(());
        }
        if !self.samplers.is_empty() {
            sequence.sampler.restore(self.samplers.swap_remove(count - 1));
        }
        let Some(before) = self.before else {
            state.offset -= read - count;
            return Ok(state
                .caches
                .iter_mut()
                .try_for_each(|cache| cache.drop_last(read - count))?);
        };
        state.offset -= read;
        for (cache, before) in state.caches.iter_mut().zip(before) {
            match before {
                Some(before) => *cache = before,
                None => cache.drop_last(read)?,
            }
        }
        state.prefill(model, &self.ids[..count])
    }
}
