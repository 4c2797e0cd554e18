//! Embedding jobs run while other models answer: a piece of one at a time, in turn.

use std::time::Instant;

use mlx::memory;
use protocol::Priority;

use crate::error::{catch_panic, Error};
use crate::schedule::embeddings::EmbeddingRun;
use crate::schedule::limits::{CHAT_SHARE, GAPS};
use crate::schedule::scheduler::embedding_queue::EmbeddingQueue;
use crate::schedule::scheduler::{OtherModels, Scheduler};

/// The time for which nothing is read while a chat answer decodes, by the time of the last piece: that answer keeps its
/// share.
const REST: f64 = CHAT_SHARE / (1.0 - CHAT_SHARE);

impl Scheduler {
    /// Admits a job.
    pub fn admit_embeddings(&mut self, run: EmbeddingRun) {
        self.embeddings.runs.push_back(run);
    }

    /// Reads a piece of the job whose turn it is, so short that answers of other models do not wait.
    pub(super) fn embed(&mut self, others: &OtherModels) {
        let gap = others
            .decoding
            .map(|priority| GAPS[usize::from(priority != Priority::Chat)]);
        let EmbeddingQueue { runs, pace, last } = &mut self.embeddings;
        let Some(mut run) = runs.pop_front() else { return };
        let rests = last.is_some_and(|(ended, took)| ended.elapsed() < took.mul_f64(REST));
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
                    // Short ones do not wait for the end of a long one.
                    runs.push_back(run);
                }
            }
            Err(error) => {
                if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                    memory::drain();
                }
                run.fail(error);
            }
        }
    }
}
