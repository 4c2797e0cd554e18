//! Reading the prompt of an answer, and what else of its tokens no step has read.

use std::time::Instant;

use super::{Generation, ImageEncoding};
use crate::answer::request::stops_for_copies;
use crate::backend::backend;
use crate::error::Result;
use crate::sequence::sampler::Sampler;
use crate::sequence::{Sequence, SequenceState};

/// The outcome of a chunk.
pub enum Chunk {
    /// This many tokens were read.
    Read(usize),
    /// An image has to be encoded first.
    EncodeImage(ImageEncoding),
}

impl Generation {
    /// Reads at most `most` of its unread tokens, unless an image among them was not encoded yet.
    ///
    /// # Errors
    /// If there is no memory for them or for encoding, or MLX fails.
    pub fn prefill_chunk(&mut self, most: usize) -> Result<Chunk> {
        let from = match self.read() {
            Some(read) => read,
            None => self.look_up()?,
        };
        let stop = self.prompt.boundaries.iter().copied().find(|boundary| *boundary > from);
        let end = (self.tokens.len() - 1).min(stop.unwrap_or(usize::MAX));
        let to = self.chunk_end(from, (from + most).min(end));
        // A prompt that sees itself is read with its last token, which the first step of the answer then reads again.
        let again = to == self.tokens.len() && self.reads_whole_prompt();
        let to = to.min(self.tokens.len() - 1);
        if let Some(encoding) = self.next_image_encoding(from, to)? {
            return Ok(Chunk::EncodeImage(encoding));
        }
        if to > from {
            let read = to + usize::from(again);
            if to < self.prompt.prefilled {
                self.loaded
                    .check_memory(&self.job.shared, from..read, self.request.kv_bits)?;
            }
            let sequence = self.state.sequence_mut().expect("it was looked up");
            sequence.state.read(self.loaded.stepping(), &self.tokens[from..read])?;
            if again {
                sequence.state.drop_last(1)?;
            }
            // The last token that the sampler was given joins with what reads it.
            let unseen = from.max(self.sampler_seen - 1);
            if unseen < to {
                sequence.observe(&self.tokens[unseen..to])?;
            }
            self.read_by_head();
            self.prompt.last_chunk = Instant::now();
            if !self.state.has_read_prompt() {
                self.report_prefill(to);
            }
            if stop == Some(to) {
                self.store()?;
            }
        }
        if self.unread() == 0 && !self.state.has_read_prompt() {
            self.state.begin_decoding();
            self.begin_head(false);
            self.times.prefilled = self.read().unwrap_or(0) - self.prompt.cached + 1;
            self.force(self.limit.0);
        }
        Ok(Chunk::Read(to - from))
    }

    /// Continues from the longest prefix that the cache holds, and returns its length.
    fn look_up(&mut self) -> Result<usize> {
        let (model, processor) = (self.loaded.model(), self.loaded.files.chat()?);
        let mut sampler = match self.state.take_sampler() {
            Some(sampler) => sampler,
            None => {
                let (seen, protected) = (&self.tokens[..self.sampler_seen], processor.eos_and_newline_ids());
                let mut sampler = Sampler::new(self.sampler_config.clone(), seen, &protected, model.vocabulary())?;
                sampler.skip_draws(self.sampler_seen - self.prompt.tokens);
                sampler
            }
        };
        let most = self.tokens.len() - 1;
        let mut prefix_cache = self.loaded.prefix_cache.borrow_mut();
        let hit = prefix_cache.lookup(self.prefix(), most, self.request.kv_bits)?;
        drop(prefix_cache);
        let (cached, state) = match hit {
            Some((positions, caches)) => (positions, SequenceState::from_caches(caches, positions)),
            None => (0, SequenceState::new(model, self.request.kv_bits)),
        };
        if !self.state.has_read_prompt() {
            self.prompt.cached = cached;
        }
        let seen = self.sampler_seen - 1;
        if seen < cached {
            sampler.observe(&self.tokens[seen..cached])?;
        }
        self.prompt.boundaries = stops_for_copies(std::mem::take(&mut self.prompt.boundaries), cached, backend());
        let state = state.with_images(self.prompt.images.as_ref().map(|(images, _)| images.clone()));
        self.state
            .fill(Sequence::new(state, sampler).with_logprobs(self.request.top_logprobs));
        self.begin_head(true);
        Ok(cached)
    }
}
