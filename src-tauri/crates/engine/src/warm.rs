//! Reading ahead: what the next prompt of a conversation will begin with, while nobody waits for anything.

use std::time::Instant;

use prompt::Future;
use protocol::{KvBits, Request};

use crate::answer::render_request;
use crate::error::Result;
use crate::generate::{prefill_chunk, Reading};
use crate::load::LoadedModel;

/// How long a chunk shall take: whoever asks for something meanwhile waits so long at most.
const CHUNK_SECONDS: f64 = 0.05;

/// Tokens of the first chunk, before the model's speed is known.
const FIRST_CHUNK: usize = 16;

/// A conversation that is being read ahead.
pub struct Warming {
    future: Future,
    kv_bits: Option<KvBits>,
    reading: Reading,
    chunk: usize,
}

impl Warming {
    /// Renders the conversation as it will be when a question follows; `None` where all of that is known.
    pub fn begin(loaded: &LoadedModel, request: &Request) -> Result<Option<Self>> {
        // A template that refuses is heard of when somebody asks.
        let Ok(future) = loaded.opened.dialect.future(&render_request(request)) else {
            return Ok(None);
        };
        if future.ids.len() >= loaded.opened.config.context as usize {
            return Ok(None);
        }
        let known = loaded
            .snapshots
            .borrow_mut()
            .resume(&future.ids, future.ids.len(), request.kv_bits)?;
        let reading = match known {
            Some((positions, _)) if positions == future.ids.len() => return Ok(None),
            Some((positions, caches)) => Reading::resumed(caches, positions),
            None => Reading::new(&loaded.model, request.kv_bits),
        };
        Ok(Some(Self {
            future,
            kv_bits: request.kv_bits,
            reading,
            chunk: FIRST_CHUNK,
        }))
    }

    /// Reads a chunk; the result is whether there is more to read. Where others part from this conversation, and at its
    /// end, a copy is kept.
    pub fn read_on(&mut self, loaded: &LoadedModel) -> Result<bool> {
        let Future { ids, boundaries } = &self.future;
        let from = self.reading.offset();
        let pause = boundaries.iter().copied().find(|boundary| *boundary > from).unwrap_or(ids.len());
        let to = (from + self.chunk).min(pause).min(ids.len());
        let start = Instant::now();
        self.reading.read(&loaded.model, &ids[from..to])?;
        let fitting = (to - from) as f64 * CHUNK_SECONDS / start.elapsed().as_secs_f64().max(1e-6);
        // A GPU's first chunk compiles kernels, so one measurement moves the size by a factor of two at most.
        self.chunk = (fitting as usize).clamp((self.chunk / 2).max(1), (self.chunk * 2).min(prefill_chunk()));
        let more = to < ids.len();
        if to == pause {
            self.keep(loaded)?;
        }
        Ok(more)
    }

    /// Keeps a copy of what has been read.
    pub fn keep(&mut self, loaded: &LoadedModel) -> Result<()> {
        let read = &self.future.ids[..self.reading.offset()];
        loaded.snapshots.borrow_mut().keep(read, self.kv_bits, self.reading.caches())
    }
}
