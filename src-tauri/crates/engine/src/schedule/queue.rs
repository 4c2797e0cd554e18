//! The queue of the worker's thread.

use std::rc::Rc;
use std::time::Instant;

use protocol::{EngineEvent, FolderSource, LoadEvent, Priority, Sender};
use tokio::sync::oneshot;

use crate::answer::job::JobContext;
use crate::answer::request::WaitingRequest;
use crate::error::Result;
use crate::schedule::command::Call;
use crate::schedule::embeddings::{EmbeddingJob, PreparedTexts};
use crate::schedule::limits::{ORDER_PATIENCE, QUEUE_PATIENCE, RETRY};

/// A command that waits for its turn.
pub struct QueuedCommand {
    /// The work to be done.
    pub job: Job,
    since: Instant,
    /// It is not tried again before this.
    retry: Instant,
    /// The models whose answers have to end before there is room for this.
    in_the_way: Vec<FolderSource>,
}

/// The work of a queued command.
pub enum Job {
    /// Load a model.
    Load(FolderSource, Sender<LoadEvent>),
    /// Admit an answer.
    Generate(Box<WaitingRequest>, Rc<JobContext>),
    /// Admit an embedding job.
    Embed(Box<PreparedTexts>, EmbeddingJob),
    /// Free a model of this reference.
    Unload(String, oneshot::Sender<Result<()>>),
    /// Free every model.
    UnloadAll(oneshot::Sender<Result<()>>),
    /// Limit the prefix cache of each loaded model to this many bytes.
    LimitPrefixCaches(Option<u64>),
    /// Free every model, and compute on the device that is set.
    Connect,
    /// Any other call.
    Call(Call),
}

impl Job {
    /// True if it is done only when no answer runs.
    pub fn needs_idle(&self) -> bool {
        match self {
            Self::UnloadAll(_) | Self::LimitPrefixCaches(_) | Self::Connect => true,
            Self::Call(_) => true,
            Self::Load(..) | Self::Generate(..) | Self::Embed(..) | Self::Unload(..) => false,
        }
    }
}

impl QueuedCommand {
    /// Has just come.
    pub fn new(job: Job) -> Self {
        let now = Instant::now();
        Self {
            job,
            since: now,
            retry: now,
            in_the_way: Vec::new(),
        }
    }

    /// True if it has waited longer than another.
    pub fn came_before(&self, other: &Self) -> bool {
        self.since < other.since
    }

    /// The class it is served in.
    pub fn class(&self) -> Priority {
        match &self.job {
            Job::Generate(request, _)
                if request.priority == Priority::Background && self.since.elapsed() > QUEUE_PATIENCE =>
            {
                Priority::Api
            }
            Job::Generate(request, _) => request.priority,
            Job::Embed(texts, _) => texts.priority,
            _ => Priority::Chat,
        }
    }

    /// True if its request is still being prepared; looked up again by [`poll`](Self::poll).
    pub fn preparing(&self) -> bool {
        matches!(&self.job, Job::Generate(request, _) if request.prepared.is_running())
    }

    /// Takes note of a request that has been prepared.
    pub fn poll(&mut self) {
        if let Job::Generate(request, _) = &mut self.job {
            request.prepared.poll();
        }
    }

    /// True if those of this class that came later wait for it, although it is still being prepared.
    pub fn keeps_order(&self, class: Priority) -> bool {
        self.class() == class && self.since.elapsed() < ORDER_PATIENCE
    }

    /// The model that it needs.
    pub fn model(&self) -> Option<&FolderSource> {
        match &self.job {
            Job::Load(source, _) => Some(source),
            Job::Generate(request, _) => request.model.folder(),
            Job::Embed(texts, _) => Some(&texts.model),
            _ => None,
        }
    }

    /// Lets it wait until an answer ends, or memory may have become free otherwise, and tells whose answers are waited
    /// for.
    pub fn wait_on(&mut self, in_the_way: Vec<FolderSource>) {
        if let (Job::Generate(_, job), true) = (&self.job, self.in_the_way != in_the_way) {
            let models = in_the_way.iter().map(|model| model.reference.clone()).collect();
            job.send(EngineEvent::Waiting { models });
        }
        self.in_the_way = in_the_way;
        self.retry = Instant::now() + RETRY;
    }

    /// An answer has ended.
    pub fn retry_now(&mut self) {
        self.retry = self.since;
    }

    /// True if it is time to try it again.
    pub fn due(&self) -> bool {
        Instant::now() >= self.retry
    }

    /// The models whose batches admit nothing new, because this has waited too long for them to end.
    pub fn draining(&self) -> &[FolderSource] {
        if self.since.elapsed() > QUEUE_PATIENCE {
            &self.in_the_way
        } else {
            &[]
        }
    }
}
