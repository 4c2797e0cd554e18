//! A smaller model that drafts an answer, or a head of the model itself. Whatever goes wrong with it costs the drafts and
//! nothing else.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Generation;
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::models::DraftHead;
use crate::sequence::drafts::{DraftSequence, Drafter, HeadSequence, Tuner};
use crate::sequence::prefix::Prefix;
use crate::sequence::SequenceState;
use crate::state::EngineState;

/// Tokens that it reads at once: at first, then as many as take about as long as a step of the model.
const CHUNKS: Range<usize> = 16..512;

/// As many unread tokens are read together with a draft.
const FEW: usize = 16;

/// A smaller model that drafts an answer, or a head of the model, and what it has read of the answer.
pub struct DraftModel {
    loaded: Rc<LoadedModel>,
    /// `None` until it begins to read.
    reading: Option<Reading>,
    chunk: usize,
}

/// A text as it is read by what drafts it.
enum Reading {
    /// By a smaller model.
    Tokens(Box<DraftSequence>),
    /// By a head, which reads the model's states.
    States(HeadSequence),
}

impl DraftModel {
    /// This model, which has read nothing.
    pub fn new(loaded: Rc<LoadedModel>) -> Self {
        Self {
            loaded,
            reading: None,
            chunk: CHUNKS.start,
        }
    }

    /// True if it is this one.
    pub fn is(&self, loaded: &Rc<LoadedModel>) -> bool {
        Rc::ptr_eq(&self.loaded, loaded)
    }

    /// True if it is a head of the model.
    pub fn is_head(&self) -> bool {
        self.loaded.model().head().is_some()
    }

    /// True if it has read these tokens, but for a few; a head has if the last state of the model is there.
    fn has_read(&self, tokens: &[u32], state: Option<&SequenceState>) -> bool {
        match &self.reading {
            Some(Reading::Tokens(sequence)) => sequence.unread(tokens) <= FEW,
            Some(Reading::States(_)) => state.is_some_and(SequenceState::has_states),
            None => false,
        }
    }

    /// Begins to read a text of which the model has read `read` tokens: a head goes on from there.
    fn begin(&mut self, tokens: &[u32], read: usize) -> Result<()> {
        let stepping = self.loaded.stepping();
        let copies = &self.loaded.prefix_cache;
        self.reading = Some(match stepping.model.head() {
            Some(head) => {
                let hit = copies.borrow_mut().lookup(after_each(tokens), read, None)?;
                Reading::States(match hit {
                    Some((positions, caches)) if positions == read => HeadSequence::new(caches, read),
                    _ => HeadSequence::new(head.caches(), 0),
                })
            }
            None => {
                let hit = copies.borrow_mut().lookup(tokens, tokens.len() - 1, None)?;
                let (state, read) = match hit {
                    Some((positions, caches)) => (SequenceState::from_caches(caches, positions), positions),
                    None => (SequenceState::new(stepping.model, None), 0),
                };
                Reading::Tokens(Box::new(DraftSequence::new(stepping, state, tokens[..read].to_vec())?))
            }
        });
        Ok(())
    }

    /// Reads on in these tokens, for about as long as a step takes.
    fn read_on(&mut self, shared: &EngineState, tokens: &[u32], step: Option<Duration>) -> Result<()> {
        if self.reading.is_none() {
            self.begin(tokens, 0)?;
        }
        let stepping = self.loaded.stepping();
        let Some(Reading::Tokens(sequence)) = &mut self.reading else {
            return Ok(());
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
    pub fn store(&mut self, tokens: &[u32]) {
        let copies = &self.loaded.prefix_cache;
        let stored = match &mut self.reading {
            Some(Reading::Tokens(sequence)) => {
                let read = sequence.read().to_vec();
                copies.borrow_mut().insert(Prefix::from(&read), None, sequence.caches())
            }
            Some(Reading::States(sequence)) => match sequence.whole() {
                Some((caches, read)) => copies.borrow_mut().insert(&after_each(tokens)[..read], None, caches),
                None => Ok(()),
            },
            None => Ok(()),
        };
        if let Err(error) = stored {
            tracing::warn!(%error, "the draft model reads the next prompt again");
        }
    }
}

/// The tokens by which copies of a head's caches are found: at each position it has read the token after it.
fn after_each(tokens: &[u32]) -> &[u32] {
    tokens.get(1..).unwrap_or_default()
}

impl Generation {
    /// True if this model drafts for it.
    pub fn is_drafted_by(&self, loaded: &Rc<LoadedModel>) -> bool {
        self.draft_model.as_ref().is_some_and(|model| model.is(loaded))
    }

    /// Lets the draft model read on, if there is more than a draft reads by itself. A head whose drafts do not pay goes,
    /// so that no more states are kept for it.
    pub fn catch_up(&mut self, tuner: &Tuner) {
        let Some(model) = self.draft_model.as_mut() else { return };
        if model.is_head() {
            if tuner.gave_up(Drafter::Model) {
                self.end_draft_model();
            }
            return;
        }
        if !model.has_read(&self.tokens, None) {
            let read = model.read_on(&self.job.shared, &self.tokens, tuner.step());
            self.kept_drafting(read);
        }
    }

    /// True if the draft model can draft now.
    pub(super) fn can_draft(&self) -> bool {
        let state = self.state.sequence().map(|sequence| &sequence.state);
        let model = self.draft_model.as_ref();
        model.is_some_and(|model| model.has_read(&self.tokens, state))
    }

    /// Lets a head begin to read, and the model keep the states for it from here on: one that reads `all` of a text, or
    /// one that needs the last state alone.
    pub(super) fn begin_head(&mut self, all: bool) {
        let reads = |model: &DraftModel| model.loaded.model().head().map(DraftHead::reads_all);
        let (Some(model), Some(sequence)) = (self.draft_model.as_mut(), self.state.sequence_mut()) else {
            return;
        };
        if reads(model) == Some(all) {
            sequence.state.keep_states(true);
            let begun = model.begin(&self.tokens, sequence.state.offset());
            self.kept_drafting(begun);
        }
    }

    /// Lets a head read the states of what the model has just read.
    pub(super) fn read_by_head(&mut self) {
        let (Some(model), Some(sequence)) = (self.draft_model.as_mut(), self.state.sequence_mut()) else {
            return;
        };
        let (loaded, state) = (&model.loaded, &mut sequence.state);
        let (Some(Reading::States(reading)), Some(head)) = (&mut model.reading, loaded.model().head()) else {
            return;
        };
        let shared = &self.job.shared;
        let read = loaded
            .check_memory(shared, reading.read()..state.offset(), None)
            .and_then(|()| reading.read_on(head, self.loaded.model(), state, &self.tokens));
        self.kept_drafting(read);
    }

    /// The tokens that follow, in the opinion of the draft model; `None` if it failed.
    pub fn draft_by_model(&mut self, count: usize) -> Option<Vec<u32>> {
        let model = self.draft_model.as_mut()?;
        let loaded = &model.loaded;
        let drafted = match &mut model.reading {
            Some(Reading::Tokens(sequence)) => sequence.draft(loaded.stepping(), &self.tokens, count),
            Some(Reading::States(reading)) => {
                let (head, sequence) = (loaded.model().head()?, self.state.sequence_mut()?);
                reading.draft(head, self.loaded.model(), &mut sequence.state, &self.tokens, count)
            }
            None => return None,
        };
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

    /// Lets the draft model take back what the answer does not go on with. What a head has read is known already.
    pub fn settle_draft(&mut self) {
        let reading = self.draft_model.as_mut().and_then(|model| model.reading.as_mut());
        if let Some(Reading::Tokens(sequence)) = reading {
            let settled = sequence.settle(&self.tokens);
            self.kept_drafting(settled);
        }
    }

    fn kept_drafting<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .inspect_err(|error| {
                tracing::warn!(%error, "the draft model drafts no more of this answer");
                self.end_draft_model();
            })
            .ok()
    }

    fn end_draft_model(&mut self) {
        self.draft_model = None;
        if let Some(sequence) = self.state.sequence_mut() {
            sequence.state.keep_states(false);
        }
    }
}
