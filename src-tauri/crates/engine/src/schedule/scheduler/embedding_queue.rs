//! The embedding jobs of a model.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use protocol::Priority;

use crate::schedule::embeddings::EmbeddingRun;
use crate::schedule::pace::Pace;

/// The admitted jobs of a model, the one whose turn it is first.
#[derive(Default)]
pub struct EmbeddingQueue {
    pub(super) runs: VecDeque<EmbeddingRun>,
    pub(super) pace: Pace,
    /// When the last piece ended, and how long it took.
    pub(super) last: Option<(Instant, Duration)>,
}

impl EmbeddingQueue {
    /// The number of jobs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The class of the job whose turn it is, and since when nothing was read for it.
    pub fn reads(&self) -> Option<(Priority, Instant)> {
        self.runs.front().map(|run| (run.priority(), run.last_piece()))
    }

    /// Ends the jobs whose callers are gone.
    pub fn end_cancelled(&mut self) {
        self.runs.retain(|run| !run.cancelled());
    }
}
