//! Jobs that make embeddings, beside the answers of other models: a piece of one at a time, in turn.

use std::collections::VecDeque;
use std::time::Instant;

use protocol::Priority;

use crate::embedding::EmbeddingRun;
use crate::error::{catch_panic, Error};
use crate::memory;
use crate::pace::Pace;
use crate::scheduler::{Beside, Scheduler, GAPS};

/// The admitted jobs of a model, the one whose turn it is first.
#[derive(Default)]
pub struct EmbeddingQueue {
    runs: VecDeque<EmbeddingRun>,
    pace: Pace,
}

impl EmbeddingQueue {
    /// How many jobs there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The class of the job whose turn it is, and since when nothing was read for it.
    pub fn reads(&self) -> Option<(Priority, Instant)> {
        self.runs.front().map(|run| (run.priority(), run.last_piece()))
    }

    /// Ends the jobs that nobody waits for.
    pub fn end_cancelled(&mut self) {
        self.runs.retain(|run| !run.cancelled());
    }
}

impl Scheduler {
    /// Admits a job.
    pub fn admit_embeddings(&mut self, run: EmbeddingRun) {
        self.embeddings.runs.push_back(run);
    }

    /// Reads a piece of the job whose turn it is, so short that answers of other models are not made to wait.
    pub(super) fn embed(&mut self, beside: &Beside) {
        let gap = beside.decoding.map(|priority| GAPS[usize::from(priority != Priority::Chat)]);
        let EmbeddingQueue { runs, pace } = &mut self.embeddings;
        let Some(mut run) = runs.pop_front() else { return };
        let (start, most) = (Instant::now(), pace.chunk(gap));
        match catch_panic(|| run.advance(most)) {
            Ok(read) => {
                pace.record_chunk(read, start.elapsed());
                if run.is_done() {
                    run.finish();
                } else {
                    // Short ones do not wait for the whole of a long one.
                    runs.push_back(run);
                }
            }
            Err(error) => {
                if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                    memory::recover();
                }
                run.fail(error);
            }
        }
    }
}
