//! The draft model's side of an answer: what it has read of the text, and the tokens that it says next.

use protocol::Sampling;

use crate::cache::Cache;
use crate::error::Result;
use crate::kernels::begin;
use crate::sequence::prefix::common_prefix;
use crate::sequence::sampler::{Sampler, SamplerConfig};
use crate::sequence::{decode_step, next_logits, Sequence, SequenceState, Stepping, Tokens};

/// A text as a draft model reads it.
pub struct DraftSequence {
    sequence: Sequence,
    /// The tokens that it has read; the last ones may be its own.
    read: Vec<u32>,
}

impl DraftSequence {
    /// A text of which this state has read `read`.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn new(stepping: Stepping<'_>, state: SequenceState, read: Vec<u32>) -> Result<Self> {
        let vocabulary = stepping.model.vocabulary();
        // The likeliest token is the one that the model draws most often, too.
        let config = SamplerConfig::new(&Sampling::neutral(), &Sampling::default(), vocabulary)?;
        Ok(Self {
            sequence: Sequence::new(state, Sampler::new(config, &[], &[], vocabulary)?),
            read,
        })
    }

    /// The tokens that were read.
    pub fn read(&self) -> &[u32] {
        &self.read
    }

    /// The caches.
    pub fn caches(&mut self) -> &mut [Cache] {
        self.sequence.state.caches()
    }

    /// How many of these tokens, all but the last one, are still to be read.
    pub fn unread(&self, tokens: &[u32]) -> usize {
        (tokens.len() - 1).saturating_sub(self.read.len())
    }

    /// Reads at most `most` of the unread tokens.
    ///
    /// # Errors
    /// If the model has no such token, or MLX fails.
    pub fn read_on(&mut self, stepping: Stepping<'_>, tokens: &[u32], most: usize) -> Result<()> {
        let (from, count) = (self.read.len(), self.unread(tokens).min(most));
        if count > 0 {
            let next = &tokens[from..from + count];
            self.sequence.state.read(stepping, next)?;
            self.read.extend(next);
        }
        Ok(())
    }

    /// The `count` tokens that follow these in the opinion of the model, which reads all but the last of them.
    ///
    /// # Errors
    /// If the model has no such token, or MLX fails; then the text cannot be continued.
    pub fn draft(&mut self, stepping: Stepping<'_>, tokens: &[u32], count: usize) -> Result<Vec<u32>> {
        self.read_on(stepping, tokens, usize::MAX)?;
        let before: Vec<Option<Cache>> = self.caches().iter().map(Cache::snapshot).collect();
        let whole = before.iter().all(Option::is_none);
        let last = tokens[self.read.len()..].to_vec();
        let mut pending = self.step(stepping, &Tokens::Computed(stepping.model.ids(&last)?), whole)?;
        let mut drafted = Vec::with_capacity(count);
        for _ in 1..count {
            let next = self.step(stepping, &pending, whole)?;
            drafted.extend(std::mem::replace(&mut pending, next).to_u32()?);
        }
        drafted.extend(pending.to_u32()?);
        if whole {
            self.read.extend(&last);
            self.read.extend(&drafted[..count - 1]);
        } else {
            // Windows and states cannot be cut back after several steps.
            let mut caches = self.caches().iter_mut().zip(before);
            caches.try_for_each(|(cache, before)| match before {
                Some(before) => {
                    *cache = before;
                    Ok(())
                }
                None => cache.drop_last(count),
            })?;
            self.sequence.state.take_back(count)?;
        }
        Ok(drafted)
    }

    /// Takes back what it has read beyond the beginning of these tokens, of which the last one is to be read next.
    ///
    /// # Errors
    /// If MLX fails; then the text cannot be continued.
    pub fn settle(&mut self, tokens: &[u32]) -> Result<()> {
        let wrong = self.read.len() - common_prefix(&self.read, &tokens[..tokens.len() - 1]);
        if wrong > 0 {
            self.caches().iter_mut().try_for_each(|cache| cache.drop_last(wrong))?;
            self.sequence.state.take_back(wrong)?;
            self.read.truncate(self.read.len() - wrong);
        }
        Ok(())
    }

    /// The token that follows `input`. A recorded step would write over a window of which there is a snapshot, so they
    /// are for caches that are kept `whole`.
    fn step(&mut self, stepping: Stepping<'_>, input: &Tokens, whole: bool) -> Result<Tokens> {
        if whole {
            let decoded = decode_step(stepping, input, &mut [&mut self.sequence])?;
            begin(decoded.tensors())?;
            return Ok(decoded.tokens);
        }
        let logits = next_logits(stepping.model, &input.tensor()?, &mut [&mut self.sequence.state])?;
        let token = logits.argmax(-1, false)?;
        begin([&token])?;
        Ok(Tokens::Computed(token))
    }
}
