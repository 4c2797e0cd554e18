//! The step of speculative decoding: one pass over the last token and a draft of those that may follow.

use mlx::tensor::Tensor;

use crate::cache::Cache;
use crate::error::Result;
use crate::models::Model;
use crate::sequence::Sequence;

/// A pass over a draft, of which not everything may stay.
pub struct Verification {
    /// The tokens that were read: the last token of the sequence, then the draft.
    ids: Vec<u32>,
    /// The same, `[ids]`.
    input: Tensor,
    /// The logits after each of them, `[ids, vocabulary]`.
    logits: Tensor,
    /// The likeliest token after each of them, when a choice first needed it.
    likeliest: Option<Vec<u32>>,
    /// Windows and states as they were before, if there are states, which cannot be taken back.
    before: Option<Vec<Option<Cache>>>,
}

/// Reads `ids`, the last token of the sequence and a draft. [`Verification::choose`] chooses the tokens after them, and
/// [`Verification::keep`] has to follow.
///
/// # Errors
/// If MLX fails; then the sequence cannot be continued.
pub fn verify(model: &Model, sequence: &mut Sequence, ids: Vec<u32>) -> Result<Verification> {
    let input = model.ids(&ids)?;
    let state = &mut sequence.state;
    let recurrent = state.caches.iter().any(Cache::is_recurrent);
    let before = recurrent.then(|| state.caches.iter().map(Cache::snapshot).collect());
    let chunk = state.chunk(ids.len())?;
    state.offset += ids.len();
    let states = model.forward(&chunk.input(&input), &mut [&mut state.caches])?;
    state.give_states(&states);
    let logits = model.logits(&states)?;
    Ok(Verification {
        ids,
        input,
        logits,
        likeliest: None,
        before,
    })
}

impl Verification {
    /// The sequence's choice after the token of this row. Rows are chosen in order, and only as long as the ones before
    /// [go on](Self::goes_on): a choice counts as one of the sequence's.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn choose(&mut self, sequence: &mut Sequence, row: usize) -> Result<u32> {
        if sequence.sampler.takes_likeliest() {
            if self.likeliest.is_none() {
                self.likeliest = Some(self.logits.argmax(-1, false)?.to_u32()?);
            }
            return Ok(self.likeliest.iter().flatten().copied().nth(row).unwrap_or_default());
        }
        let of_row = |x: &Tensor| x.slice(0, row as i32, row as i32 + 1);
        let token = sequence.sampler.sample(&of_row(&self.input)?, of_row(&self.logits)?)?;
        Ok(token.to_u32()?[0])
    }

    /// True if the draft goes on with this token after the token of this row.
    pub fn goes_on(&self, row: usize, token: u32) -> bool {
        self.ids.get(row + 1) == Some(&token)
    }

    /// Takes everything back that was read after the first `count` tokens, at least one; `count` tokens were chosen
    /// then.
    ///
    /// # Errors
    /// If MLX fails; then the sequence cannot be continued.
    pub fn keep(self, model: &Model, sequence: &mut Sequence, count: usize) -> Result<()> {
        let (read, state) = (self.ids.len(), &mut sequence.state);
        if count == read {
            return Ok(());
        }
        let Some(before) = self.before else {
            return state.drop_last(read - count);
        };
        state.take_back(read)?;
        for (cache, before) in state.caches.iter_mut().zip(before) {
            match before {
                Some(before) => *cache = before,
                None => cache.drop_last(read)?,
            }
        }
        state.prefill(model, &self.ids[..count])
    }
}
