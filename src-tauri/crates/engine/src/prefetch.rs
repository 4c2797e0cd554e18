//! Prefetching, "reading ahead" in the windows: reads what the next prompt of a conversation will begin with while nobody waits
//! for anything.

use std::rc::Rc;
use std::time::Instant;

use prompt::NextPrompt;
use protocol::{KvBits, Request};

use crate::answer::render_request;
use crate::error::{catch_panic, Result};
use crate::job::PendingPrefetch;
use crate::load::LoadedModel;
use crate::loaded_models::LoadedModels;
use crate::memory;
use crate::sequence::{clear_after_chunk, prefill_chunk, SequenceState};

/// How long a chunk should take: a request that arrives meanwhile waits at most so long.
const CHUNK_SECONDS: f64 = 0.05;

/// Tokens of the first chunk, before the model's speed is known.
const FIRST_CHUNK: usize = 16;

/// A conversation that is being prefetched.
struct Prefetch {
    next_prompt: NextPrompt,
    kv_bits: Option<KvBits>,
    state: SequenceState,
    chunk: usize,
}

impl Prefetch {
    /// Renders the conversation as it will be when a question follows; `None` if all of that is in the prefix cache.
    fn begin(loaded: &LoadedModel, request: &Request) -> Result<Option<Self>> {
        // If the template refuses, the request that follows will say so.
        let Ok(next_prompt) = loaded.files.chat()?.next_prompt(&render_request(request)) else {
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
    fn read_chunk(&mut self, loaded: &LoadedModel) -> Result<bool> {
        let NextPrompt { ids, boundaries, .. } = &self.next_prompt;
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
    fn store(&mut self, loaded: &LoadedModel) -> Result<()> {
        let read = &self.next_prompt.ids[..self.state.offset()];
        loaded.prefix_cache.borrow_mut().insert(read, self.kv_bits, self.state.caches())
    }
}

/// The conversation that is being prefetched, or will be.
#[derive(Default)]
pub struct Prefetches {
    next: Option<(Box<Request>, PendingPrefetch)>,
    current: Option<(Rc<LoadedModel>, Prefetch, PendingPrefetch)>,
}

impl Prefetches {
    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.next.is_none() && self.current.is_none()
    }

    /// Gives up what is being read, and reads the beginning of the prompt after this request instead, when there is nothing else
    /// to do.
    pub fn replace(&mut self, request: Box<Request>, pending: PendingPrefetch) {
        self.stop();
        self.next = Some((request, pending));
    }

    /// Reads one chunk, if the request's model is loaded.
    pub fn advance(&mut self, models: &LoadedModels) {
        if let Some((request, pending)) = self.next.take() {
            let scheduler = request.model.folder().and_then(|folder| models.find(folder));
            if let Some(loaded) = scheduler.map(|scheduler| scheduler.loaded().clone()) {
                let prefetch = unless_failed(&loaded, catch_panic(|| Prefetch::begin(&loaded, &request)));
                self.current = prefetch.flatten().map(|prefetch| (loaded, prefetch, pending));
            }
        }
        let Some((loaded, mut prefetch, pending)) = self.current.take() else {
            return;
        };
        let more = catch_panic(|| prefetch.read_chunk(&loaded));
        pending.count_chunk();
        if unless_failed(&loaded, more) == Some(true) {
            self.current = Some((loaded, prefetch, pending));
        }
    }

    /// Gives up what is being read, and keeps what was.
    pub fn stop(&mut self) {
        self.next = None;
        if let Some((loaded, mut prefetch, _pending)) = self.current.take() {
            let stored = catch_panic(|| prefetch.store(&loaded));
            drop(prefetch);
            unless_failed(&loaded, stored);
        }
    }
}

/// The result of work that nobody waits for. A failure empties the prefix cache, because its cause may lie in there.
fn unless_failed<T>(loaded: &LoadedModel, outcome: Result<T>) -> Option<T> {
    outcome
        .map_err(|error| {
            tracing::warn!(%error, "a prefetch failed");
            loaded.prefix_cache.borrow_mut().clear();
            memory::recover();
        })
        .ok()
}
