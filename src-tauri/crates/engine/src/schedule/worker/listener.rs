//! The receivers of a load's progress.

use protocol::{EngineEvent, LoadEvent, Sender, Stage};

use crate::answer::job::JobContext;
use crate::schedule::embeddings::EmbeddingJob;
use crate::weights::LoadStep;

/// A receiver of a load's progress.
pub(super) enum Listener<'a> {
    Job(&'a JobContext),
    Embedding(&'a EmbeddingJob),
    Load(&'a Sender<LoadEvent>),
}

impl Listener<'_> {
    pub(super) fn progress(&self, step: LoadStep) {
        match (self, step) {
            (Self::Job(job), LoadStep::Weights { done, total }) => job.send(EngineEvent::Progress {
                stage: Stage::Load,
                done,
                total,
            }),
            (Self::Job(job), LoadStep::Kernels) => job.send(EngineEvent::Progress {
                stage: Stage::Kernels,
                done: 0,
                total: 0,
            }),
            (Self::Load(events), LoadStep::Weights { done, total }) => events.send(LoadEvent::Progress { done, total }),
            (Self::Load(_), LoadStep::Kernels) | (Self::Embedding(_), _) => {}
        }
    }

    /// True if its job was cancelled; the job is told at once.
    pub(super) fn has_left(&self) -> bool {
        let job = match self {
            Self::Job(job) => job,
            Self::Embedding(job) => return job.cancelled(),
            Self::Load(_) => return false,
        };
        let cancelled = job.cancelled();
        if cancelled {
            job.end_cancelled();
        }
        cancelled
    }
}
