//! Who waits for a load.

use protocol::{EngineEvent, LoadEvent, Sender, Stage};

use super::cancelled_event;
use crate::embedding::EmbeddingJob;
use crate::job::JobContext;
use crate::weights::LoadStep;

/// Who hears how far a load is.
pub(super) enum Listener<'a> {
    Job(&'a JobContext),
    Embedding(&'a EmbeddingJob),
    Load(&'a Sender<LoadEvent>),
    Nobody,
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
            (Self::Load(_), LoadStep::Kernels) | (Self::Embedding(_) | Self::Nobody, _) => {}
        }
    }

    /// Whether its job was cancelled, which is told at once.
    pub(super) fn has_left(&self) -> bool {
        let job = match self {
            Self::Job(job) => job,
            Self::Embedding(job) => return job.cancelled(),
            Self::Load(_) | Self::Nobody => return false,
        };
        let cancelled = job.cancelled();
        if cancelled {
            job.send(cancelled_event());
        }
        cancelled
    }
}
