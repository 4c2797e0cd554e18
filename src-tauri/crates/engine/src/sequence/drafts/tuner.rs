//! Measurements of the passes over drafts, and the decision whether drafts pay.

use std::time::Duration;

use crate::options::{Drafting, EngineOptions};
use crate::sequence::drafts::{Drafter, LENGTHS};

/// The share of a draft that is taken to be right when it is decided whether drafts of its length pay on this device.
const LIKELY: [f64; Drafter::COUNT] = [0.5, 0.7];

/// Passes with a draft of one length after which that is decided.
pub(super) const TRIALS: usize = 3;

/// The times of a model's passes on this device, and the decision whether drafts pay.
#[derive(Debug)]
pub struct Tuner {
    modes: [Drafting; Drafter::COUNT],
    /// Mean seconds of a step of one sequence.
    step: Option<f64>,
    /// How often a draft of each drafter and length was made and verified, and the fewest seconds that took: GPUs
    /// compile kernels in the first pass.
    verified: [[(usize, f64); LENGTHS.len()]; Drafter::COUNT],
}

impl Tuner {
    /// Nothing is measured yet; drafts are made when the modes say so.
    pub fn new(prompt_lookup: Drafting, draft_model: Drafting) -> Self {
        Self {
            modes: [prompt_lookup, draft_model],
            step: None,
            verified: [[(0, f64::INFINITY); LENGTHS.len()]; Drafter::COUNT],
        }
    }

    /// The tuner of an engine with these options.
    pub fn of(options: &EngineOptions) -> Self {
        Self::new(options.prompt_lookup, options.draft_model)
    }

    /// The mode of a drafter.
    pub fn mode(&self, drafter: Drafter) -> Drafting {
        self.modes[drafter as usize]
    }

    /// Mean time of a step of one sequence, if there was one.
    pub fn step(&self) -> Option<Duration> {
        self.step.map(Duration::from_secs_f64)
    }

    /// Takes note of a step of one sequence.
    pub fn record_step(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.step = Some(self.step.map_or(took, |mean| mean + (took - mean) / 8.0));
    }

    /// Takes note of the time that it took to make and verify a draft of `drafted` tokens.
    pub fn record_verified(&mut self, drafter: Drafter, drafted: usize, took: Duration) {
        if let Some(length) = LENGTHS.iter().position(|length| *length == drafted) {
            let (times, least) = &mut self.verified[drafter as usize][length];
            *times += 1;
            *least = least.min(took.as_secs_f64());
            if *times == TRIALS {
                let (steps, pays) = (self.steps(drafter, length), self.pays(drafter, length));
                tracing::info!(?drafter, drafted, steps, pays, "drafts were tried on this device");
            }
        }
    }

    /// Forgets what was measured with another draft model.
    pub fn forget_draft_model(&mut self) {
        self.verified[Drafter::Model as usize] = [(0, f64::INFINITY); LENGTHS.len()];
    }

    /// True if the drafts of this drafter were measured and do not pay, so that none is made.
    pub fn gave_up(&self, drafter: Drafter) -> bool {
        self.step.is_some() && !self.pays(drafter, 0)
    }

    /// How many steps it takes to make and verify a draft, as far as that is known.
    pub fn steps(&self, drafter: Drafter, length: usize) -> Option<f64> {
        let (times, least) = self.verified[drafter as usize][length];
        self.step.filter(|_| times > 0).map(|step| least / step)
    }

    /// True if a draft of this length may be verified.
    pub fn pays(&self, drafter: Drafter, length: usize) -> bool {
        match self.mode(drafter) {
            Drafting::Off => false,
            Drafting::Always => true,
            Drafting::Auto if self.verified[drafter as usize][length].0 < TRIALS => self.step.is_some(),
            Drafting::Auto => self
                .steps(drafter, length)
                .is_some_and(|steps| steps < 1.0 + LIKELY[drafter as usize] * LENGTHS[length] as f64),
        }
    }
}
