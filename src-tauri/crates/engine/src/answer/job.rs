//! A job as the worker's thread sees it.

use std::sync::Arc;

use protocol::{AnswerNowFlag, CancelFlag, Done, EndedBy, EngineEvent, FinishReason, Sender};

use crate::error::{Error, Result};
use crate::state::EngineState;

/// A job on the worker's thread: where it sends its events, and the flags that end it.
pub struct JobContext {
    /// Receives the job's events.
    pub events: Sender<EngineEvent>,
    /// The job's own flag.
    pub cancel: CancelFlag,
    /// The flag that ends the job's thinking.
    pub end_thinking: AnswerNowFlag,
    /// The state that the engine's handle sees.
    pub shared: Arc<EngineState>,
    /// Set by a test: the job fails from this token on.
    #[cfg(feature = "test-support")]
    pub fails_after: Option<usize>,
}

impl JobContext {
    /// Sends an event.
    pub fn send(&self, event: EngineEvent) {
        self.events.send(event);
    }

    /// True if the job has to end. Asked between any two steps; queries for the memory are answered then.
    pub fn cancelled(&self) -> bool {
        self.shared.answer_memory_queries();
        self.cancel.is_cancelled() || self.shared.closing()
    }

    /// [`Error::Cancelled`] if the job has to end.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// Says that the job was cancelled before it began.
    pub fn end_cancelled(&self) {
        self.send(EngineEvent::Done(Done {
            finish_reason: FinishReason::Cancelled,
            ended_by: EndedBy::Cancelled,
            usage: Some(Default::default()),
            timing: Default::default(),
            tokens: Vec::new(),
        }));
    }
}
