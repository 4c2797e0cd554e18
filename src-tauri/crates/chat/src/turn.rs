//! The task that writes one answer: it reads the engine, passes on what it says and keeps it on disk.

use std::sync::Arc;
use std::time::Duration;

use history::{now, History};
use protocol::{
    AnswerBody, AnswerPrefix, AnswerState, CancelOnDrop, ChatSettings, Coalesce, Content, Done, EndedBy, Engine, EngineEvent, ErrorCode,
    FinishReason, ModelSource, Request, StoredMessage,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout_at, Instant};

use crate::conversation::{add_question, conversation, put_before_questions};
use crate::error::Error;
use crate::live_answer::LiveAnswer;
use crate::memory::remembered;
use crate::pictures;
use crate::prefetch::request_ahead;
use crate::title::title;

/// Text that a window was shown is on disk within 250 ms: this is the longest wait, the rest is for the writing.
const WRITE_EVERY: Duration = Duration::from_millis(150);

/// An answer says at least this often that its process lives.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// How long a stopped engine may take to say so: it looks between two tensors of a load, prefill chunks or tokens, and
/// another chat's answer may be before this one.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Waits before each further try to store the end of an answer.
const RETRIES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRequest {
    /// The message that the answer goes below: a question, or the result of a tool.
    pub(crate) parent: String,
    pub(crate) model: ModelSource,
    pub(crate) settings: ChatSettings,
    /// What there is of the answer.
    pub(crate) prefix: Option<AnswerPrefix>,
    /// Files of the chat's folder, whose texts stand before its first question.
    pub(crate) files: Vec<Content>,
    /// The question that is taken back if it does not fit the context: nobody has seen more of its turn.
    pub(crate) retractable: Option<StoredMessage>,
}

impl AnswerRequest {
    /// The request for an answer to the end of this branch or, if there is one, to this question after it.
    pub(crate) fn request(&self, branch: &[StoredMessage], question: &[Content]) -> Request {
        let (instructions, branch) = remembered(&self.settings, branch);
        let mut messages = conversation(&instructions, branch);
        add_question(&mut messages, question);
        put_before_questions(&mut messages, &self.files);
        let mut request = Request::new(self.model.clone(), messages);
        request.thinking = self.settings.thinking;
        request.thinking_budget = self.settings.thinking_budget;
        request.answer_prefix = self.prefix.clone();
        request.sampling = self.settings.sampling.clone();
        request.max_tokens = self.settings.max_tokens;
        request.context = self.settings.context;
        // An endpoint cannot be told how to keep its keys and values, and the chat may go on with another model.
        request.kv_bits = self.model.folder().and(self.settings.kv_bits);
        request.stop = self.settings.stop.clone();
        request.image_detail = self.settings.image_detail;
        request
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
/// `owner` is how this process calls itself in the history.
pub(crate) async fn write_answer(history: History, owner: &str, engine: Arc<dyn Engine>, running: Arc<LiveAnswer>, ask: AnswerRequest) {
    let (listening, listened) = oneshot::channel::<()>();
    let question = ask.retractable.clone();
    let reading = async {
        // A task of its own, so that a panic in it ends this answer and nothing else.
        let end = tokio::spawn(drive_engine(history.clone(), engine, running.clone(), ask)).await;
        drop(listening);
        end.unwrap_or_else(|_| Outcome::Failed(Error::Broken.into()))
    };
    let (end, ()) = tokio::join!(reading, persist(&history, owner, &running, listened));
    if let (Outcome::Failed(error), Some(question)) = (&end, question) {
        if error.code == ErrorCode::ContextFull && retract(&history, &running, &question, error).await {
            return;
        }
    }
    store_end(&history, owner, &running, end).await;
}

/// Takes a question back that does not fit; everybody is told that its answer failed. Returns whether that was done.
async fn retract(history: &History, running: &LiveAnswer, question: &StoredMessage, error: &protocol::Error) -> bool {
    let content: Vec<Content> = question.parts.iter().map(|part| part.content.clone()).collect();
    match history.retract_turn(question, &running.message, &title(&content)).await {
        Ok(false) => return false,
        Ok(true) => {}
        Err(error) => {
            tracing::warn!(%error, "a question that does not fit could not be taken back");
            return false;
        }
    }
    let (message, _) = running.end(Vec::new(), |message| {
        message.state = AnswerState::Failed;
        message.error = Some(error.clone());
        message.finished_at = Some(now());
    });
    running.finish(message);
    true
}

/// While the person reads an answer, the engine prefetches what the next question will come after.
pub(crate) async fn prefetch_next(history: &History, engine: &dyn Engine, answer: &str, ask: &AnswerRequest) {
    if !prefetches(engine, &ask.model) {
        return;
    }
    match history.branch(answer).await {
        Ok(branch) => {
            let sees = engine.capabilities(&ask.model).images;
            prefetch(engine, request_ahead(history, ask, &branch, sees).await);
        }
        Err(error) => tracing::debug!(%error, "an answer's branch could not be read ahead"),
    }
}

/// Has the beginning of the next prompt read, if the engine can do that with the request's model. A remote model is told
/// nothing that nobody asked.
pub(crate) fn prefetch(engine: &dyn Engine, request: Request) {
    if let Some(local) = engine.local().filter(|_| prefetches(engine, &request.model)) {
        local.prefetch(request);
    }
}

/// Whether this model can read ahead; for one that cannot no chat is read.
pub(crate) fn prefetches(engine: &dyn Engine, model: &ModelSource) -> bool {
    engine.local().is_some() && engine.capabilities(model).prefetch
}

/// Reads the engine until it ends.
async fn drive_engine(history: History, engine: Arc<dyn Engine>, running: Arc<LiveAnswer>, ask: AnswerRequest) -> Outcome {
    let branch = match history.branch(&ask.parent).await {
        Ok(branch) => branch,
        Err(error) => return Outcome::Failed(error.into()),
    };
    match history.call_ids(&running.chat).await {
        Ok(ids) => running.set_call_ids(ids),
        Err(error) => return Outcome::Failed(error.into()),
    }
    let (mut stop, mut answer_now) = (running.stop.subscribe(), running.answer_now.subscribe());
    let mut thinking_ended = false;
    let sees = engine.capabilities(&ask.model).images;
    let mut job = engine.generate(pictures::request(&history, &ask, &branch, &[], sees).await);
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
    loop {
        match timeout_at(deadline, job.events.recv()).await {
            Ok(event) => {
                if let Some(end) = apply(&running, event) {
                    return end;
                }
            }
            Err(_) => return Outcome::Stopped,
        }
    }
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

/// Writes what is new and says that this process lives, until `listened` ends. What could not be written is tried again
/// together with what comes next.
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

/// Stores how an answer ended, and tells it.
async fn store_end(history: &History, owner: &str, running: &LiveAnswer, mut outcome: Outcome) {
    let last_tokens = match &mut outcome {
        Outcome::Done(done) => std::mem::take(&mut done.tokens),
        Outcome::Stopped | Outcome::Failed(_) => Vec::new(),
    };
    let (mut message, tokens) = running.end(last_tokens, |message| note_end(message, outcome));
    match finish(history, owner, &message, &tokens).await {
        Ok(as_read) => message = as_read,
        Err(error) => {
            tracing::error!(%error, "the end of an answer could not be written");
            message.state = AnswerState::Failed;
            message.error = Some(Error::NotSaved(error).into());
        }
    }
    running.finish(message);
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

/// Stores the end of an answer, which is tried again unless the answer is no longer this process's; as it is read from now on.
async fn finish(history: &History, owner: &str, message: &StoredMessage, tokens: &[u32]) -> history::Result<StoredMessage> {
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
