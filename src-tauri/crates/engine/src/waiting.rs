//! What waits for its turn on the worker's thread.

use std::rc::Rc;
use std::time::{Duration, Instant};

use protocol::{EngineEvent, FolderSource, LoadEvent, Priority, Request, Sender};
use tokio::sync::oneshot;

use crate::embedding::{EmbeddingJob, PreparedTexts};
use crate::error::Result;
use crate::job::JobContext;
use crate::worker::Worker;

/// Who has waited so long is served like the class above, and nobody joins a batch any more that is in the way of this.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long after it was not to be had memory is asked for again, if no answer ends before.
const RETRY: Duration = Duration::from_millis(250);

/// A command that waits for its turn.
pub struct Waiting {
    /// What is to be done.
    pub work: Work,
    since: Instant,
    /// Before this it need not be looked at.
    retry: Instant,
    /// The models whose answers have to end before there is room for this.
    in_the_way: Vec<FolderSource>,
}

/// What is to be done when it is its turn.
pub enum Work {
    /// Load a model.
    Load(FolderSource, Sender<LoadEvent>),
    /// Admit an answer.
    Generate(Box<Request>, Rc<JobContext>),
    /// Admit an embedding job.
    Embed(Box<PreparedTexts>, EmbeddingJob),
    /// Free a model of this reference.
    Unload(String, oneshot::Sender<Result<()>>),
    /// Any other call, when no answer runs.
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
}

impl Waiting {
    /// Has just come.
    pub fn new(work: Work) -> Self {
        let now = Instant::now();
        Self {
            work,
            since: now,
            retry: now,
            in_the_way: Vec::new(),
        }
    }

    /// Whether it has waited longer than another.
    pub fn came_before(&self, other: &Self) -> bool {
        self.since < other.since
    }

    /// The class it is served in.
    pub fn class(&self) -> Priority {
        match &self.work {
            Work::Generate(request, _) if request.priority == Priority::Background && self.since.elapsed() > PATIENCE => Priority::Api,
            Work::Generate(request, _) => request.priority,
            Work::Embed(texts, _) => texts.priority,
            Work::Load(..) | Work::Unload(..) | Work::Call(_) => Priority::Chat,
        }
    }

    /// The model that it needs.
    pub fn model(&self) -> Option<&FolderSource> {
        match &self.work {
            Work::Load(source, _) => Some(source),
            Work::Generate(request, _) => request.model.folder(),
            Work::Embed(texts, _) => Some(&texts.model),
            Work::Unload(..) | Work::Call(_) => None,
        }
    }

    /// Lets it wait until an answer ends, or memory may have become free otherwise, and tells whose answers are waited for.
    pub fn wait_on(&mut self, in_the_way: Vec<FolderSource>) {
        if let (Work::Generate(_, job), true) = (&self.work, self.in_the_way != in_the_way) {
            let models = in_the_way.iter().map(|model| model.reference.clone()).collect();
            job.send(EngineEvent::Waiting { models });
        }
        self.in_the_way = in_the_way;
        self.retry = Instant::now() + RETRY;
    }

    /// An answer has ended.
    pub fn look_again(&mut self) {
        self.retry = self.since;
    }

    /// Whether it may be looked at.
    pub fn due(&self) -> bool {
        Instant::now() >= self.retry
    }

    /// The models whose batches nobody joins any more, because this has waited too long for them to end.
    pub fn closed(&self) -> &[FolderSource] {
        if self.since.elapsed() > PATIENCE {
            &self.in_the_way
        } else {
            &[]
        }
    }
}
