//! Prompt lookup decoding (Saxena, 2023): speculative decoding without a draft model. If the last tokens stand in the
//! prompt or in the answer already, what followed them there is drafted, and one pass of the model tells how much of it
//! the model says too.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use protocol::SpeculationUsage;

use crate::options::PromptLookup;

/// The longest n-gram that is looked up.
const LONGEST: usize = 4;

/// The shortest.
const SHORTEST: usize = 2;

/// Tokens of a draft: at first, and after one that was right to its end. With the token before it a pass has 4 or 8
/// rows, which products with quantized matrices take without the kernels meant for full chunks.
pub const LENGTHS: [usize; 2] = [3, 7];

/// The share of a draft that is taken to be right when it is decided whether drafts of its length pay on this device.
const LIKELY: f64 = 0.5;

/// Passes with a draft of one length after which that is decided.
const TRIALS: usize = 3;

/// For each n-gram, the index of the token after its most recent occurrence.
#[derive(Debug, Default)]
pub struct NgramIndex {
    /// Shorter n-grams are filled up with what is no token.
    followers: HashMap<[u32; LONGEST], usize>,
    /// How many tokens have been taken in.
    length: usize,
}

impl NgramIndex {
    /// Takes in what is new in a text that has grown.
    pub fn extend(&mut self, tokens: &[u32]) {
        for follower in self.length..tokens.len() {
            for n in SHORTEST..=LONGEST.min(follower) {
                self.followers.insert(ngram(&tokens[follower - n..follower]), follower);
            }
        }
        self.length = tokens.len();
    }

    /// A draft for a text that was taken in: the tokens after the most recent occurrence of the longest of its last
    /// n-grams, as if everything from there on repeated itself.
    pub fn draft(&self, tokens: &[u32], count: usize) -> Option<Vec<u32>> {
        let followers = |n: usize| self.followers.get(&ngram(&tokens[tokens.len() - n..]));
        let from = *(SHORTEST..=LONGEST.min(tokens.len())).rev().find_map(followers)?;
        Some(tokens[from..].iter().cycle().take(count).copied().collect())
    }
}

fn ngram(tokens: &[u32]) -> [u32; LONGEST] {
    let mut filled = [u32::MAX; LONGEST];
    filled[..tokens.len()].copy_from_slice(tokens);
    filled
}

/// The times of a model's passes on this device, and the decision whether drafts pay.
#[derive(Debug)]
pub struct Tuner {
    mode: PromptLookup,
    /// Mean seconds of a step of one sequence.
    step: Option<f64>,
    /// How often a draft of each length was verified, and the fewest seconds that took: GPUs compile kernels in the
    /// first pass.
    verified: [(usize, f64); LENGTHS.len()],
}

impl Tuner {
    /// Nothing is measured yet.
    pub fn new(mode: PromptLookup) -> Self {
        Self {
            mode,
            step: None,
            verified: [(0, f64::INFINITY); LENGTHS.len()],
        }
    }

    /// Takes note of a step of one sequence.
    pub fn record_step(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.step = Some(self.step.map_or(took, |mean| mean + (took - mean) / 8.0));
    }

    /// Takes note of a pass over a draft of `drafted` tokens.
    pub fn record_verified(&mut self, drafted: usize, took: Duration) {
        if let Some(length) = LENGTHS.iter().position(|length| *length == drafted) {
            let (times, least) = &mut self.verified[length];
            *times += 1;
            *least = least.min(took.as_secs_f64());
            if *times == TRIALS {
                let pays = self.pays(length);
                tracing::info!(
                    drafted,
                    steps = self.steps(length),
                    pays,
                    "prompt lookup was tried on this device"
                );
            }
        }
    }

    /// How many steps the pass over a draft takes as long as, as far as that is known.
    fn steps(&self, length: usize) -> Option<f64> {
        let (times, least) = self.verified[length];
        self.step.filter(|_| times > 0).map(|step| least / step)
    }

    /// True if a draft of this length may be verified.
    fn pays(&self, length: usize) -> bool {
        match self.mode {
            PromptLookup::Off => false,
            PromptLookup::Always => true,
            PromptLookup::Auto if self.verified[length].0 < TRIALS => self.step.is_some(),
            PromptLookup::Auto => self
                .steps(length)
                .is_some_and(|steps| steps < 1.0 + LIKELY * LENGTHS[length] as f64),
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
    /// Of the next draft, as an index of [`LENGTHS`].
    length: usize,
    /// Drafts in a row that did not pay.
    misses: u32,
    /// Nothing is drafted before there are this many tokens.
    resume_at: usize,
    proposed: usize,
    accepted: usize,
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

    /// A draft of the tokens that may follow, if it is worth a pass; at most `room` tokens may come.
    pub fn next(&mut self, tokens: &[u32], room: usize, tuner: &Tuner) -> Option<Vec<u32>> {
        while self.length > 0 && (!tuner.pays(self.length) || LENGTHS[self.length] >= room) {
            self.length -= 1;
        }
        let count = LENGTHS[self.length];
        // The draft is followed by one more token.
        if self.off || tokens.len() < self.resume_at || count >= room || !tuner.pays(self.length) {
            return None;
        }
        self.index.extend(tokens);
        let draft = self.index.draft(tokens, count)?;
        (self.images.is_empty() || !draft.iter().any(|token| self.images.contains(token))).then_some(draft)
    }

    /// Takes note of how many tokens of a draft were right; `length` tokens are known now.
    pub fn record(&mut self, drafted: usize, accepted: usize, length: usize, tuner: &Tuner) {
        self.proposed += drafted;
        self.accepted += accepted;
        let length_index = LENGTHS.iter().position(|length| *length == drafted);
        let steps = length_index.and_then(|index| tuner.steps(index)).unwrap_or(1.0);
        if accepted == drafted {
            self.length = LENGTHS.len() - 1;
        } else if accepted < LENGTHS[0] {
            self.length = 0;
        }
        if (accepted + 1) as f64 > steps {
            self.misses = 0;
        } else {
            self.miss(length, tuner);
        }
    }

    /// Takes note that something seemed to repeat itself and did not; `length` tokens are known now.
    pub fn miss(&mut self, length: usize, tuner: &Tuner) {
        self.misses += 1;
        if tuner.mode == PromptLookup::Auto {
            self.resume_at = length + (4 << self.misses.min(6));
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "prompt_lookup_tests.rs"]
mod tests;
