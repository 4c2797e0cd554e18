//! A smaller model that drafts an answer. Whatever goes wrong with it costs the drafts and nothing else.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Generation;
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::sequence::drafts::DraftSequence;
use crate::sequence::prefix::Prefix;
use crate::sequence::SequenceState;
use crate::state::EngineState;

/// Tokens that it reads at once: at first, then as many as take about as long as a step of the model.
const CHUNKS: Range<usize> = 16..512;

/// As many unread tokens are read together with a draft.
const FEW: usize = 16;

/// A smaller model that drafts an answer, and what it has read of it.
pub struct DraftModel {
    loaded: Rc<LoadedModel>,
    /// `None` until it begins to read.
    sequence: Option<DraftSequence>,
    chunk: usize,
}

impl DraftModel {
    /// This model, which has read nothing.
    pub fn new(loaded: Rc<LoadedModel>) -> Self {
        Self {
            loaded,
            sequence: None,
            chunk: CHUNKS.start,
        }
    }

    /// True if it is this one.
    pub fn is(&self, loaded: &Rc<LoadedModel>) -> bool {
        Rc::ptr_eq(&self.loaded, loaded)
    }

    /// True if it has read these tokens, but for a few.
    pub fn has_read(&self, tokens: &[u32]) -> bool {
        let unread = self.sequence.as_ref().map(|sequence| sequence.unread(tokens));
        unread.is_some_and(|unread| unread <= FEW)
    }

    /// Reads on in these tokens, for about as long as a step takes.
    fn read_on(&mut self, shared: &EngineState, tokens: &[u32], step: Option<Duration>) -> Result<()> {
        let stepping = self.loaded.stepping();
        let sequence = match &mut self.sequence {
            Some(sequence) => sequence,
            None => {
                let hit = (self.loaded.prefix_cache.borrow_mut()).lookup(tokens, tokens.len() - 1, None)?;
                let (state, read) = match hit {
                    Some((positions, caches)) => (SequenceState::from_caches(caches, positions), positions),
                    None => (SequenceState::new(stepping.model, None), 0),
                };
                let begun = DraftSequence::new(stepping, state, tokens[..read].to_vec())?;
                self.sequence.insert(begun)
            }
        };
        let (start, read) = (Instant::now(), sequence.read().len());
        let next = read..read + self.chunk.min(sequence.unread(tokens));
        self.loaded.check_memory(shared, next, None)?;
        sequence.read_on(stepping, tokens, self.chunk)?;
        let longer = step.is_some_and(|step| start.elapsed() < step);
        let chunk = if longer { self.chunk * 2 } else { self.chunk / 2 };
        self.chunk = chunk.clamp(CHUNKS.start, CHUNKS.end);
        Ok(())
    }

    /// Keeps what it has read for the next prompt with this beginning.
    pub fn store(&mut self) {
        let Some(sequence) = &mut self.sequence else { return };
        let read = sequence.read().to_vec();
        let copies = &self.loaded.prefix_cache;
        let stored = copies.borrow_mut().insert(Prefix::from(&read), None, sequence.caches());
        if let Err(error) = stored {
            tracing::warn!(%error, "the draft model reads the next prompt again");
        }
    }
}

impl Generation {
    /// True if this model drafts for it.
    pub fn is_drafted_by(&self, loaded: &Rc<LoadedModel>) -> bool {
        self.draft_model.as_ref().is_some_and(|model| model.is(loaded))
    }

    /// Lets the draft model read on, if there is more than a draft reads by itself; `step` is how long a step of the
    /// model takes.
    pub fn catch_up(&mut self, step: Option<Duration>) {
        let Some(model) = self.draft_model.as_mut() else { return };
        if !model.has_read(&self.tokens) {
            let read = model.read_on(&self.job.shared, &self.tokens, step);
            self.kept_drafting(read);
        }
    }

    /// The tokens that follow, in the opinion of the draft model; `None` if it failed.
    pub fn draft_by_model(&mut self, count: usize) -> Option<Vec<u32>> {
        let (loaded, sequence) = match self.draft_model.as_mut() {
            Some(DraftModel {
                loaded,
                sequence: Some(sequence),
                ..
            }) => (loaded, sequence),
            _ => return None,
        };
        let drafted = sequence.draft(loaded.stepping(), &self.tokens, count);
        let mut drafted = self.kept_drafting(drafted)?;
        // Rows of padding differ in number between models of different sizes.
        let model = self.loaded.model();
        drafted.truncate(
            drafted
                .iter()
                .take_while(|id| model.unreadable(&[**id]).is_none())
                .count(),
        );
        Some(drafted)
    }

    /// Lets the draft model take back what the answer does not go on with.
    pub fn settle_draft(&mut self) {
        if let Some(sequence) = self.draft_model.as_mut().and_then(|model| model.sequence.as_mut()) {
            let settled = sequence.settle(&self.tokens);
            self.kept_drafting(settled);
        }
    }

    fn kept_drafting<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .inspect_err(|error| {
                tracing::warn!(%error, "the draft model drafts no more of this answer");
                self.draft_model = None;
            })
            .ok()
    }
}
