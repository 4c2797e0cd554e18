//! Prefetching, "reading ahead" in the windows: reads what the next prompt of a conversation will begin with while nobody waits
//! for anything.

use std::time::Instant;

use prompt::NextPrompt;
use protocol::{KvBits, Request};

use crate::answer::render_request;
use crate::error::Result;
use crate::load::LoadedModel;
use crate::sequence::{clear_after_chunk, prefill_chunk, SequenceState};

/// How long a chunk should take: a request that arrives meanwhile waits at most so long.
const CHUNK_SECONDS: f64 = 0.05;

/// Tokens of the first chunk, before the model's speed is known.
const FIRST_CHUNK: usize = 16;

/// A conversation that is being prefetched.
pub struct Prefetch {
    next_prompt: NextPrompt,
    kv_bits: Option<KvBits>,
    state: SequenceState,
    chunk: usize,
}

impl Prefetch {
    /// Renders the conversation as it will be when a question follows; `None` if all of that is in the prefix cache.
    pub fn begin(loaded: &LoadedModel, request: &Request) -> Result<Option<Self>> {
        // If the template refuses, the request that follows will say so.
        let Ok(next_prompt) = loaded.files.processor.next_prompt(&render_request(request)) else {
            return Ok(None);
        };
        if next_prompt.ids.len() >= loaded.files.config.context as usize {
            return Ok(None);
        }
        let cached = loaded
            .prefix_cache
            .borrow_mut()
            .lookup(&next_prompt.ids, next_prompt.ids.len(), request.kv_bits)?;
        let state = match cached {
            Some((positions, _)) if positions == next_prompt.ids.len() => return Ok(None),
            Some((positions, caches)) => SequenceState::from_caches(caches, positions),
            None => SequenceState::new(&loaded.model, request.kv_bits),
        };
        Ok(Some(Self {
            next_prompt,
            kv_bits: request.kv_bits,
            state,
            chunk: FIRST_CHUNK,
        }))
    }

    /// Reads one chunk and returns whether there is more to read. At each boundary, such as the end of the system prompt, which
    /// other conversations share, and at the end a copy goes into the prefix cache.
    pub fn read_chunk(&mut self, loaded: &LoadedModel) -> Result<bool> {
        let NextPrompt { ids, boundaries } = &self.next_prompt;
        let from = self.state.offset();
        let pause = boundaries.iter().copied().find(|boundary| *boundary > from).unwrap_or(ids.len());
        let to = (from + self.chunk).min(pause).min(ids.len());
        let start = Instant::now();
        self.state.prefill(&loaded.model, &ids[from..to])?;
        clear_after_chunk()?;
        let fitting = (to - from) as f64 * CHUNK_SECONDS / start.elapsed().as_secs_f64().max(1e-6);
        // A GPU's first chunk compiles kernels, so one measurement changes the size by a factor of two at most.
        self.chunk = (fitting as usize).clamp((self.chunk / 2).max(1), (self.chunk * 2).min(prefill_chunk()));
        let more = to < ids.len();
        if to == pause {
            self.store(loaded)?;
        }
        Ok(more)
    }

    /// Puts a copy of what has been read into the prefix cache.
    pub fn store(&mut self, loaded: &LoadedModel) -> Result<()> {
        let read = &self.next_prompt.ids[..self.state.offset()];
        loaded.prefix_cache.borrow_mut().insert(read, self.kv_bits, self.state.caches())
    }
}
