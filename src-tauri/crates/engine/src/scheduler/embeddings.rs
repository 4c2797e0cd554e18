//! Jobs that make embeddings, beside the answers of other models: a piece of one at a time, in turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use protocol::Priority;

use crate::embedding::EmbeddingRun;
use crate::error::{catch_panic, Error};
use crate::memory;
use crate::pace::Pace;
use crate::scheduler::{OtherModels, Scheduler, GAPS};

/// How many times as long as a piece took nothing is read while a chat answer decodes: it keeps four fifths of its rate.
const REST: u32 = 4;

/// The admitted jobs of a model, the one whose turn it is first.
#[derive(Default)]
pub struct EmbeddingQueue {
    runs: VecDeque<EmbeddingRun>,
    pace: Pace,
    /// When the last piece ended, and how long it took.
    last: Option<(Instant, Duration)>,
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
    pub(super) fn embed(&mut self, others: &OtherModels) {
        let gap = others.decoding.map(|priority| GAPS[usize::from(priority != Priority::Chat)]);
        let EmbeddingQueue { runs, pace, last } = &mut self.embeddings;
        let Some(mut run) = runs.pop_front() else { return };
        let rests = last.is_some_and(|(ended, took)| ended.elapsed() < took * REST);
        if rests && others.decoding == Some(Priority::Chat) {
            run.pass_over();
            return runs.push_front(run);
        }
        let (start, most) = (Instant::now(), pace.chunk(gap));
        let advanced = catch_panic(|| run.advance(most));
        *last = Some((Instant::now(), start.elapsed()));
        match advanced {
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
