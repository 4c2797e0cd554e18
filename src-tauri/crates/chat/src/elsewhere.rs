//! Watching an answer that another process writes, by way of the history file.

use std::time::Duration;

use history::History;
use protocol::{mailbox, AnswerBody, AnswerEvent, AnswerState, Channel, Part, PartKind, Receiver, Sender, StoredMessage};
use tokio::time::sleep;

/// How often the file is read.
const READ_EVERY: Duration = Duration::from_millis(200);

/// The growth of an answer from event number `from` on, until it ends.
///
/// Its events are numbered by characters (a tool call counts as one), so that a number means the same to everybody who
/// watches, whenever the file was read.
pub(crate) fn follow(history: History, message: String, from: u64) -> Receiver<AnswerEvent> {
    let (sender, receiver) = mailbox();
    tokio::spawn(async move {
        let mut seen = from;
        while !sender.is_closed() {
            // Where the file cannot be read the sender is dropped, and the window is told to attach again.
            let Ok(stored) = history.message(&message).await else { return };
            seen = send_growth(&sender, &stored, seen);
            if stored.state != AnswerState::Streaming {
                return finish(&sender, stored, seen + 1);
            }
            sleep(READ_EVERY).await;
        }
    });
    receiver
}

/// The end of an answer that has ended already.
pub(crate) fn finished(message: StoredMessage, from: u64) -> Receiver<AnswerEvent> {
    let (sender, receiver) = mailbox();
    finish(&sender, message, from + 1);
    receiver
}

fn finish(sender: &Sender<AnswerEvent>, message: StoredMessage, seq: u64) {
    sender.send(AnswerEvent {
        message: message.id.clone(),
        seq,
        body: AnswerBody::Finished {
            message: Box::new(message),
        },
    });
}

/// Sends what comes after number `seen`; returns the number of the last event that was sent so far.
fn send_growth(sender: &Sender<AnswerEvent>, stored: &StoredMessage, seen: u64) -> u64 {
    let mut seq = 0;
    for part in &stored.parts {
        let new = usize::try_from(seen.saturating_sub(seq)).unwrap_or(usize::MAX);
        seq += length(part);
        if seq > seen {
            sender.send(AnswerEvent {
                message: stored.id.clone(),
                seq,
                body: event(part, new),
            });
        }
    }
    seq.max(seen)
}

fn length(part: &Part) -> u64 {
    match &part.kind {
        PartKind::Thinking { text } | PartKind::Text { text } => text.chars().count() as u64,
        PartKind::ToolCall { .. } => 1,
    }
}

/// A part without its first characters, as an event.
fn event(part: &Part, skip: usize) -> AnswerBody {
    let at = part.ended_at;
    match &part.kind {
        PartKind::Thinking { text } => AnswerBody::Delta {
            channel: Channel::Thinking,
            text: text.chars().skip(skip).collect(),
            at,
        },
        PartKind::Text { text } => AnswerBody::Delta {
            channel: Channel::Text,
            text: text.chars().skip(skip).collect(),
            at,
        },
        PartKind::ToolCall { call } => AnswerBody::ToolCall { call: call.clone(), at },
    }
}
