//! Speculative decoding (Leviathan, Kalman and Matias, 2023): the tokens that may follow are drafted, and one pass of
//! the model tells how much of the draft it says too. A draft is what a repetition would go on with, or what a smaller
//! model with the same tokens says, or a head that reads the model's own states.

mod head;
mod lookup;
mod model;
mod tuner;

use std::collections::HashSet;

use protocol::SpeculationUsage;

use crate::options::Drafting;

pub use head::HeadSequence;
use lookup::NgramIndex;
pub use model::DraftSequence;
pub use tuner::Tuner;

/// Tokens of a draft: at first, and after one that was right to its end. With the token before it a pass has 4 or 8
/// rows, which products with quantized matrices take without the kernels meant for full chunks.
pub const LENGTHS: [usize; 2] = [3, 7];

/// The origin of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafter {
    /// The text itself, as far as it repeats itself.
    Lookup,
    /// A smaller model, or a head.
    Model,
}

impl Drafter {
    /// The number of drafters.
    pub const COUNT: usize = 2;
}

/// The next draft of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextDraft {
    /// These tokens, which were looked up.
    LookedUp(Vec<u32>),
    /// This many tokens, which the draft model has yet to say.
    ByModel(usize),
}

impl NextDraft {
    /// Its origin.
    pub fn drafter(&self) -> Drafter {
        match self {
            Self::LookedUp(_) => Drafter::Lookup,
            Self::ByModel(_) => Drafter::Model,
        }
    }
}

/// The drafts of one answer.
#[derive(Debug, Default)]
pub struct Drafts {
    off: bool,
    /// Tokens that stand for images and are never generated.
    images: HashSet<u32>,
    index: NgramIndex,
    attempts: [Attempts; Drafter::COUNT],
    proposed: usize,
    accepted: usize,
}

/// The success of a drafter with one answer.
#[derive(Debug, Default)]
struct Attempts {
    /// Of the next draft, as an index of [`LENGTHS`].
    length: usize,
    /// Drafts in a row that did not pay.
    misses: u32,
    /// Nothing is drafted before there are this many tokens.
    resume_at: usize,
}

impl Drafts {
    /// Drafts for an answer, unless something about it has to be done token by token.
    pub fn new(possible: bool) -> Self {
        Self {
            off: !possible,
            ..Self::default()
        }
    }

    /// No draft has any of these tokens.
    pub fn without(self, images: HashSet<u32>) -> Self {
        Self { images, ..self }
    }

    /// Drafts nothing from now on.
    pub fn end(&mut self) {
        self.off = true;
    }

    /// A draft of the tokens that may follow, if it is worth a pass; at most `room` tokens may come. A draft model is
    /// there, and has read the text, if `by_model` is true.
    pub fn next(&mut self, tokens: &[u32], room: usize, tuner: &Tuner, by_model: bool) -> Option<NextDraft> {
        let look_up = |count: usize| {
            self.index.extend(tokens);
            let draft = self.index.draft(tokens, count)?;
            (self.images.is_empty() || !draft.iter().any(|token| self.images.contains(token))).then_some(draft)
        };
        if self.off {
            return None;
        }
        let [lookup, model] = &mut self.attempts;
        let looked_up = lookup
            .count(Drafter::Lookup, tokens.len(), room, tuner)
            .and_then(look_up);
        if let Some(draft) = looked_up {
            return Some(NextDraft::LookedUp(draft));
        }
        let count = by_model.then(|| model.count(Drafter::Model, tokens.len(), room, tuner));
        count.flatten().map(NextDraft::ByModel)
    }

    /// Takes note of how many tokens of a draft were right; `length` tokens are known now.
    pub fn record(&mut self, drafter: Drafter, drafted: usize, accepted: usize, length: usize, tuner: &Tuner) {
        self.proposed += drafted;
        self.accepted += accepted;
        self.attempts[drafter as usize].record(drafter, (drafted, accepted), length, tuner);
    }

    /// Takes note that something seemed to repeat itself and did not; `length` tokens are known now.
    pub fn miss(&mut self, length: usize, tuner: &Tuner) {
        self.attempts[Drafter::Lookup as usize].miss(Drafter::Lookup, length, tuner);
    }

    /// The result of the drafts of an answer with `sampled` sampled tokens; `None` if there were none.
    pub fn usage(&self, sampled: usize) -> Option<SpeculationUsage> {
        (self.proposed > 0).then(|| SpeculationUsage {
            draft_tokens: self.proposed as u32,
            accepted_draft_tokens: self.accepted as u32,
            decode_steps: sampled.saturating_sub(self.accepted) as u32,
        })
    }
}

impl Attempts {
    /// The length of a draft, if one may be verified after `known` tokens.
    fn count(&mut self, drafter: Drafter, known: usize, room: usize, tuner: &Tuner) -> Option<usize> {
        while self.length > 0 && (!tuner.pays(drafter, self.length) || LENGTHS[self.length] >= room) {
            self.length -= 1;
        }
        let count = LENGTHS[self.length];
        // The draft is followed by one more token.
        (known >= self.resume_at && count < room && tuner.pays(drafter, self.length)).then_some(count)
    }

    fn record(&mut self, drafter: Drafter, (drafted, accepted): (usize, usize), known: usize, tuner: &Tuner) {
        let length = LENGTHS.iter().position(|length| *length == drafted);
        let steps = length.and_then(|length| tuner.steps(drafter, length)).unwrap_or(1.0);
        if accepted == drafted {
            self.length = LENGTHS.len() - 1;
        } else if accepted < LENGTHS[0] {
            self.length = 0;
        }
        if (accepted + 1) as f64 > steps {
            self.misses = 0;
        } else {
            self.miss(drafter, known, tuner);
        }
    }

    fn miss(&mut self, drafter: Drafter, known: usize, tuner: &Tuner) {
        self.misses += 1;
        if tuner.mode(drafter) == Drafting::Auto {
            self.resume_at = known + (4 << self.misses.min(6));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
