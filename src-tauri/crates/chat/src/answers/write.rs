//! The task that writes one answer: it reads the engine, passes on what it says and keeps it on disk.

use std::sync::Arc;
use std::time::Duration;

use api::{AnswerBody, AnswerState, StoredMessage};
use history::{now, History};
use protocol::{
    AnswerPrefix, CancelOnDrop, Coalesce, Content, Done, EndedBy, EngineEvent, ErrorCode, FinishReason, Request,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout_at, Instant};

use crate::answers::fallback_title::fallback_title;
use crate::core::Core;
use crate::error::Error;
use crate::live::answer::LiveAnswer;
use crate::request::build::RequestTemplate;

/// Text that a window was shown is on disk within 250 ms: this is the longest wait, the rest is for the writing.
const WRITE_EVERY: Duration = Duration::from_millis(150);

/// An answer says at least this often that its process lives.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// How long a stopped engine may take to say so: it looks between two tensors of a load, prefill chunks or tokens, and
/// another chat's answer may be before this one.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Waits before each further try to store the end of an answer.
const RETRIES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// One answer that is about to be written.
pub(crate) struct TurnRequest {
    pub(crate) template: RequestTemplate,
    pub(crate) prompt: Prompt,
    /// The part of the answer that exists already.
    pub(crate) prefix: Option<AnswerPrefix>,
    /// The question that is taken back if it does not fit the context, of whose turn nothing else was shown yet.
    pub(crate) retractable: Option<StoredMessage>,
}

/// The conversation that is answered.
pub(crate) enum Prompt {
    /// The request, built when it was checked to fit the context.
    Built(Box<Request>),
    /// The branch that ends with a question, or with results of tools.
    Branch(Vec<StoredMessage>),
    /// The message that the answer goes below, whose branch is read when the answer begins.
    Below(String),
}

impl TurnRequest {
    pub(crate) fn new(template: RequestTemplate, prompt: Prompt) -> Self {
        Self {
            template,
            prompt,
            prefix: None,
            retractable: None,
        }
    }

    async fn build(self, core: &Core) -> history::Result<Request> {
        let mut request = match self.prompt {
            Prompt::Built(request) => *request,
            Prompt::Branch(branch) => self.template.build(core, &branch, &[]).await,
            Prompt::Below(message) => {
                let branch = core.history.branch(&message).await?;
                self.template.build(core, &branch, &[]).await
            }
        };
        request.answer_prefix = self.prefix;
        Ok(request)
    }
}

/// How an answer ended.
#[derive(Debug)]
enum Outcome {
    Done(Done),
    /// The engine did not react to a stop in time.
    Stopped,
    Failed(protocol::Error),
}

/// Writes the answer to its end, whatever happens on the way, and stores and tells the end.
///
/// The running answer is in the list of `core` meanwhile.
pub(crate) async fn write_answer(core: &Arc<Core>, running: Arc<LiveAnswer>, turn: TurnRequest) {
    let (history, owner) = (&core.history, &core.owner);
    let (listening, listened) = oneshot::channel::<()>();
    let question = turn.retractable.clone();
    let reading = async {
        // A task of its own, so that a panic in it ends this answer and nothing else.
        let drive = drive_engine(core.clone(), running.clone(), turn);
        let end = tokio::spawn(drive).await;
        drop(listening);
        end.unwrap_or_else(|_| Outcome::Failed(Error::Broken.into()))
    };
    let (end, ()) = tokio::join!(reading, persist(history, owner, &running, listened));
    if let (Outcome::Failed(error), Some(question)) = (&end, question) {
        if error.code == ErrorCode::ContextFull && retract(history, &running, &question, error).await {
            return;
        }
    }
    let stored = store_end(history, owner, &running, end).await;
    if stored.is_err_and(|error| error.code == ErrorCode::HistoryDamaged) {
        core.damaged.send_replace(true);
    }
}

/// Takes a question back that does not fit; everybody is told that its answer failed. Returns whether that was done.
async fn retract(history: &History, running: &LiveAnswer, question: &StoredMessage, error: &protocol::Error) -> bool {
    let content: Vec<Content> = question.parts.iter().map(|part| part.content.clone()).collect();
    let title = fallback_title(&content);
    let retracted = history.retract_turn(question, &running.message, &title).await;
    if let Err(error) = &retracted {
        tracing::warn!(%error, "a question that does not fit could not be taken back");
    }
    if !retracted.unwrap_or(false) {
        return false;
    }
    let (message, _) = running.end(Vec::new(), |message| {
        message.state = AnswerState::Failed;
        message.error = Some(error.clone());
        message.finished_at = Some(now());
    });
    running.finish(message);
    true
}

/// Reads the engine until it ends.
async fn drive_engine(core: Arc<Core>, running: Arc<LiveAnswer>, turn: TurnRequest) -> Outcome {
    let request = match turn.build(&core).await {
        Ok(request) => request,
        Err(error) => return Outcome::Failed(error.into()),
    };
    match core.history.call_ids(&running.chat).await {
        Ok(ids) => running.set_call_ids(ids),
        Err(error) => return Outcome::Failed(error.into()),
    }
    let (mut stop, mut answer_now) = (running.stop.subscribe(), running.answer_now.subscribe());
    let mut thinking_ended = false;
    let mut job = core.engine.generate(request);
    let _cancel = CancelOnDrop(job.cancel.clone());
    // In this order a stop is noticed however fast the engine talks.
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            _ = answer_now.wait_for(|now| *now), if !thinking_ended => {
                thinking_ended = true;
                job.end_thinking.answer_now();
            }
            event = job.events.recv() => if let Some(end) = apply(&running, event) { return end },
        }
    }
    job.cancel.cancel();
    let deadline = Instant::now() + STOP_PATIENCE;
    while let Ok(event) = timeout_at(deadline, job.events.recv()).await {
        if let Some(end) = apply(&running, event) {
            return end;
        }
    }
    Outcome::Stopped
}

/// Applies one event to the answer; returns how the answer ended if the event is the last.
fn apply(running: &LiveAnswer, event: Option<EngineEvent>) -> Option<Outcome> {
    match event.unwrap_or_else(EngineEvent::abandoned) {
        EngineEvent::Progress { stage, done, total } => running.tell(AnswerBody::Progress { stage, done, total }),
        EngineEvent::Waiting { models } => running.tell(AnswerBody::Waiting { models }),
        EngineEvent::Started {
            prompt_tokens: _,
            model_revision,
            template_hash,
        } => running.started(model_revision, template_hash),
        EngineEvent::Continued { parts, notices, tokens } => running.continued_from(parts, notices, tokens, now()),
        EngineEvent::Delta {
            content,
            tokens,
            thinking_tokens,
        } => running.add(content, tokens, thinking_tokens, now()),
        // A chat asks for none.
        EngineEvent::Logprobs(_) => {}
        EngineEvent::ThinkingEnded => running.thinking_ended(),
        EngineEvent::Notice(notice) => running.add_notice(notice),
        EngineEvent::Done(done) => return Some(Outcome::Done(done)),
        EngineEvent::Failed(error) => return Some(Outcome::Failed(error)),
    }
    None
}

/// Writes new parts and renews the heartbeat until `listened` ends. A failed write is tried again together with the
/// next parts.
async fn persist(history: &History, owner: &str, running: &LiveAnswer, mut listened: oneshot::Receiver<()>) {
    let mut failing = false;
    loop {
        tokio::select! {
            _ = &mut listened => return,
            _ = running.grew.notified() => {}
            _ = sleep(HEARTBEAT_EVERY) => {}
        }
        let next = Instant::now() + WRITE_EVERY;
        // Never dropped in the middle: what is noted as saved is what is on disk.
        let (delta, saved) = running.delta();
        match history.append(&running.message, owner, &delta).await {
            Ok(requests) => {
                failing = false;
                running.saved(saved);
                if requests.stop {
                    running.stop.send_replace(true);
                }
                if requests.answer_now {
                    running.answer_now.send_replace(true);
                }
            }
            // Once, not for every piece.
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "a running answer could not be written");
            }
            Err(_) => {}
        }
        if timeout_at(next, &mut listened).await.is_ok() {
            return;
        }
    }
}

/// Stores how an answer ended, and tells it. Returns why it could not be stored.
async fn store_end(history: &History, owner: &str, running: &LiveAnswer, mut outcome: Outcome) -> protocol::Result<()> {
    let last_tokens = match &mut outcome {
        Outcome::Done(done) => std::mem::take(&mut done.tokens),
        Outcome::Stopped | Outcome::Failed(_) => Vec::new(),
    };
    let (mut message, tokens) = running.end(last_tokens, |message| note_end(message, outcome));
    let mut stored = Ok(());
    match finish(history, owner, &message, &tokens).await {
        Ok(as_read) => message = as_read,
        Err(error) => {
            tracing::error!(%error, "the end of an answer could not be written");
            let error = protocol::Error::from(Error::NotSaved(error));
            message.state = AnswerState::Failed;
            message.error = Some(error.clone());
            stored = Err(error);
        }
    }
    running.finish(message);
    stored
}

/// Notes in a message how it ended.
fn note_end(message: &mut StoredMessage, outcome: Outcome) {
    (message.finish_reason, message.ended_by, message.error) = (None, None, None);
    match outcome {
        Outcome::Done(done) => {
            message.state = match done.finish_reason {
                FinishReason::Cancelled => AnswerState::Stopped,
                _ => AnswerState::Complete,
            };
            (message.finish_reason, message.ended_by) = (Some(done.finish_reason), Some(done.ended_by));
            let thinking_tokens = done.usage.and_then(|usage| usage.thinking_tokens);
            message.thinking_tokens = thinking_tokens.or(message.thinking_tokens);
            (message.usage, message.timing) = (done.usage, Some(done.timing));
        }
        Outcome::Stopped => {
            message.state = AnswerState::Stopped;
            (message.finish_reason, message.ended_by) = (Some(FinishReason::Cancelled), Some(EndedBy::Cancelled));
        }
        Outcome::Failed(error) => {
            message.state = AnswerState::Failed;
            message.error = Some(error);
        }
    }
    message.finished_at = Some(now());
}

/// Stores the end of an answer, which is tried again unless the answer is no longer this process's; as it is read from
/// now on.
async fn finish(
    history: &History,
    owner: &str,
    message: &StoredMessage,
    tokens: &[u32],
) -> history::Result<StoredMessage> {
    for wait in RETRIES {
        match history.finish(message, owner, tokens).await {
            Err(error) if !matches!(error, history::Error::NotFound(_)) => {
                tracing::warn!(%error, "the end of an answer could not be written; it is tried again");
                sleep(wait).await;
            }
            stored => return stored,
        }
    }
    history.finish(message, owner, tokens).await
}
