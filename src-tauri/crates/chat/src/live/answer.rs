//! An answer that is being written by this process: what it is so far, who watches it, and what of it is on disk.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{AnswerBody, AnswerEvent, Part, StoredMessage};
use history::{now, AnswerDelta, PartDelta};
use protocol::{mailbox, Content, Notice, Receiver, Sender, ToolCall};
use tokio::sync::{watch, Notify};

/// A running answer, shared by the turn that writes it and everybody who watches or stops it.
#[derive(Debug)]
pub(crate) struct LiveAnswer {
    pub(crate) chat: String,
    pub(crate) message: String,
    /// Becomes true when somebody wants it to end.
    pub(crate) stop: watch::Sender<bool>,
    /// Becomes true when somebody wants its thought to end.
    pub(crate) answer_now: watch::Sender<bool>,
    /// Becomes true when it is stored and everybody has been told.
    pub(crate) ended: watch::Sender<bool>,
    /// Rings when there is something that is not on disk.
    pub(crate) grew: Notify,
    answer: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    message: StoredMessage,
    tokens: Vec<u32>,
    /// Every event, one by one: number n lies at n - 1. Joining happens on the way to a window.
    log: Vec<AnswerBody>,
    windows: Vec<Sender<AnswerEvent>>,
    /// How often what was said has been replaced.
    edition: u32,
    saved: Saved,
    /// The notices since this process began to write the answer.
    told: Vec<Notice>,
    /// The ids of the calls of this chat, so that every new one differs from them.
    call_ids: HashSet<String>,
}

/// How much of an answer is on disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Saved {
    /// Of which edition it is; of another one nothing counts as being there.
    edition: u32,
    parts: usize,
    /// Bytes of the last of them; only the last part grows.
    bytes: usize,
    tokens: usize,
}

impl Saved {
    fn all(edition: u32, message: &StoredMessage, tokens: &[u32]) -> Self {
        Self {
            edition,
            parts: message.parts.len(),
            bytes: message.parts.last().map_or(0, |part| bytes(&part.content)),
            tokens: tokens.len(),
        }
    }
}

impl LiveAnswer {
    /// An answer that says nothing yet.
    pub(crate) fn new(message: StoredMessage) -> Arc<Self> {
        Self::continued(message, Vec::new())
    }

    /// An answer that is continued: all that the message says and these tokens are on disk. Whoever attaches is told
    /// them first.
    pub(crate) fn continued(mut message: StoredMessage, tokens: Vec<u32>) -> Arc<Self> {
        let saved = Saved::all(0, &message, &tokens);
        let mut log = Vec::new();
        if let Some(last) = message.parts.last_mut() {
            move_to_present(last, now());
            log.push(AnswerBody::Continued {
                parts: message.parts.clone(),
                notices: message.notices.clone(),
            });
        }
        Arc::new(Self {
            chat: message.chat.clone(),
            message: message.id.clone(),
            stop: watch::Sender::new(false),
            answer_now: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            grew: Notify::new(),
            answer: Mutex::new(LiveState {
                message,
                tokens,
                log,
                windows: Vec::new(),
                edition: 0,
                saved,
                told: Vec::new(),
                call_ids: HashSet::new(),
            }),
        })
    }

    fn answer(&self) -> MutexGuard<'_, LiveState> {
        // Nothing that can panic runs between two related changes, so a poisoned answer is still whole.
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what the answer is, which is not on disk then.
    fn change(&self, change: impl FnOnce(&mut LiveState)) {
        change(&mut self.answer());
        self.grew.notify_one();
    }

    /// Everything after event number `from`, then what comes.
    pub(crate) fn attach(&self, from: u64) -> Receiver<AnswerEvent> {
        let (sender, receiver) = mailbox();
        let mut answer = self.answer();
        let seen = usize::try_from(from).unwrap_or(usize::MAX).min(answer.log.len());
        for (index, body) in answer.log.iter().enumerate().skip(seen) {
            sender.send(AnswerEvent {
                message: self.message.clone(),
                seq: index as u64 + 1,
                body: body.clone(),
            });
        }
        // Under the same lock as the log, so that no event falls between the two.
        answer.windows.push(sender);
        receiver
    }

    /// Tells which call ids the chat has used so far, other answers' included.
    pub(crate) fn set_call_ids(&self, ids: Vec<String>) {
        self.answer().call_ids.extend(ids);
    }

    /// Passes on something that is not kept.
    pub(crate) fn tell(&self, body: AnswerBody) {
        self.answer().tell(body);
    }

    /// Replaces the parts of a continued answer by what its tokens say, and its notices by those about the tokens and
    /// those that were told just before. Parts that stay keep their times.
    pub(crate) fn continued_from(&self, content: Vec<Content>, notices: Vec<Notice>, tokens: Vec<u32>, at: i64) {
        self.change(|answer| {
            let mut before = std::mem::take(&mut answer.message.parts).into_iter();
            for mut content in content {
                let before = before.next();
                match (before.as_ref().map(|part| &part.content), &mut content) {
                    // The same call, read again.
                    (Some(Content::ToolCall { call: old }), Content::ToolCall { call })
                        if old.name == call.name && old.arguments == call.arguments =>
                    {
                        call.id.clone_from(&old.id);
                    }
                    (_, content) => answer.make_call_id_unique(content),
                }
                answer.message.parts.push(match before {
                    Some(part) => Part { content, ..part },
                    None => Part::at(content, at),
                });
            }
            if let Some(last) = answer.message.parts.last_mut() {
                move_to_present(last, at);
            }
            answer.edition += 1;
            let told = answer.told.iter().filter(|told| !notices.contains(told)).cloned();
            let notices: Vec<Notice> = told.chain(notices.iter().cloned()).collect();
            answer.message.notices = notices.clone();
            answer.tokens = tokens;
            let parts = answer.message.parts.clone();
            answer.tell(AnswerBody::Continued { parts, notices });
        });
    }

    /// Adds a piece of the answer, and the tokens that made it, at the end.
    pub(crate) fn add(&self, mut content: Content, tokens: Vec<u32>, thinking_tokens: Option<u32>, at: i64) {
        self.change(|answer| {
            answer.add_tokens(tokens);
            answer.message.thinking_tokens = thinking_tokens.or(answer.message.thinking_tokens);
            answer.make_call_id_unique(&mut content);
            if content.growing_text() != Some("") {
                answer.append(content.clone(), at);
                answer.tell(AnswerBody::Delta { content, at });
            }
        });
    }

    /// Notes that the thought was ended for the model.
    pub(crate) fn thinking_ended(&self) {
        self.change(|answer| answer.message.thinking_ended = true);
    }

    /// Adds a notice.
    pub(crate) fn add_notice(&self, notice: Notice) {
        self.change(|answer| {
            answer.message.notices.push(notice.clone());
            answer.told.push(notice.clone());
            answer.tell(AnswerBody::Notice { notice });
        });
    }

    /// Notes which model answers. Tokens of before keep the model that wrote them: another one is about to refuse them.
    pub(crate) fn started(&self, model_revision: Option<String>, template_hash: Option<String>) {
        let mut answer = self.answer();
        if !answer.tokens.is_empty() && answer.message.model_revision.is_some() {
            return;
        }
        answer.message.model_revision = model_revision;
        answer.message.template_hash = template_hash;
        drop(answer);
        self.grew.notify_one();
    }

    /// Changes the message in some other way, adds the last tokens, and returns both whole.
    pub(crate) fn end(
        &self,
        last_tokens: Vec<u32>,
        change: impl FnOnce(&mut StoredMessage),
    ) -> (StoredMessage, Vec<u32>) {
        let mut answer = self.answer();
        answer.add_tokens(last_tokens);
        change(&mut answer.message);
        (answer.message.clone(), answer.tokens.clone())
    }

    /// Tells everybody how it ended.
    pub(crate) fn finish(&self, message: StoredMessage) {
        self.tell(AnswerBody::Finished {
            message: Box::new(message),
        });
    }

    /// The unsaved part of the answer, which may be empty, and the new high-water mark once it is saved.
    pub(crate) fn delta(&self) -> (AnswerDelta, Saved) {
        self.answer().delta()
    }

    /// Notes how much is on disk.
    pub(crate) fn saved(&self, saved: Saved) {
        self.answer().saved = saved;
    }
}

impl LiveState {
    fn add_tokens(&mut self, tokens: Vec<u32>) {
        if !tokens.is_empty() {
            // The figures of an earlier end, which are right only as long as nothing has come.
            (self.message.usage, self.message.timing) = (None, None);
        }
        self.tokens.extend(tokens);
    }

    /// A call whose id the chat has used gets another one: an engine may count from 0 in each answer.
    fn make_call_id_unique(&mut self, content: &mut Content) {
        if let Content::ToolCall { call } = content {
            while !self.call_ids.insert(call.id.clone()) {
                *call = ToolCall::new(call.name.clone(), call.arguments.clone());
            }
        }
    }

    fn append(&mut self, content: Content, at: i64) {
        let rest = match self.message.parts.last_mut() {
            Some(last) => {
                let Some(rest) = last.content.coalesce(content) else {
                    last.ended_at = at;
                    return;
                };
                rest
            }
            None => content,
        };
        self.message.parts.push(Part::at(rest, at));
    }

    fn tell(&mut self, body: AnswerBody) {
        self.log.push(body.clone());
        let event = AnswerEvent {
            message: self.message.id.clone(),
            seq: self.log.len() as u64,
            body,
        };
        self.windows.retain(|window| !window.is_closed());
        for window in &self.windows {
            window.send(event.clone());
        }
    }

    fn delta(&self) -> (AnswerDelta, Saved) {
        let message = &self.message;
        let replaces = self.saved.edition != self.edition;
        let saved = if replaces { Saved::default() } else { self.saved };
        let now = Saved::all(self.edition, message, &self.tokens);
        let mut parts = Vec::new();
        for (position, part) in message.parts.iter().enumerate().skip(saved.parts.saturating_sub(1)) {
            let from = if position + 1 == saved.parts { saved.bytes } else { 0 };
            if position >= saved.parts || from < bytes(&part.content) {
                parts.push(PartDelta {
                    position,
                    content: tail(&part.content, from),
                    started_at: part.started_at,
                    ended_at: part.ended_at,
                });
            }
        }
        let delta = AnswerDelta {
            replaces,
            parts,
            tokens: self.tokens[saved.tokens..].to_vec(),
            notices: message.notices.clone(),
            model_revision: message.model_revision.clone(),
            template_hash: message.template_hash.clone(),
            thinking_tokens: message.thinking_tokens,
            thinking_ended: message.thinking_ended,
        };
        (delta, now)
    }
}

/// Moves a part that is continued to the present, so that a thought is not said to have taken all night.
fn move_to_present(part: &mut Part, at: i64) {
    let pause = at - part.ended_at;
    part.started_at += pause;
    part.ended_at = at;
}

/// How much of a part there is; all but text comes whole.
fn bytes(content: &Content) -> usize {
    content.growing_text().map_or(0, str::len)
}

/// The part without its first bytes, which end between two characters.
fn tail(content: &Content, from: usize) -> Content {
    content.with_text(content.growing_text().map_or("", |text| &text[from..]))
}
