//! Watching an answer that another process writes, by way of the history file.

use std::time::Duration;

use api::{AnswerBody, AnswerEvent, AnswerState, Part, StoredMessage};
use history::History;
use protocol::{mailbox, Receiver, Sender};
use tokio::time::sleep;

/// How often the file is read.
const READ_EVERY: Duration = Duration::from_millis(200);

/// The delta of an answer from event number `from` on, until it ends.
///
/// Its events are numbered by characters (a part that is no text counts as one), so that a number means the same to
/// everybody who watches, whenever the file was read. If the answer is continued and its last characters are read again
/// as something else, all of it is told anew, and the numbers run on from there.
pub(crate) fn follow(history: History, message: String, from: u64) -> Receiver<AnswerEvent> {
    let (sender, receiver) = mailbox();
    tokio::spawn(async move {
        let mut seen = from;
        let mut shown: Vec<Part> = Vec::new();
        // How far the numbers ran ahead of the characters.
        let mut ahead = 0;
        while !sender.is_closed() {
            // If the file cannot be read the sender is dropped, and the window is told to attach again.
            let Ok(stored) = history.message(&message).await else {
                return;
            };
            if extends(&shown, &stored.parts) {
                seen = ahead + send_growth(&sender, &stored, ahead, seen - ahead);
            } else {
                // As many characters as are told now, so that none of them counts as new the next time.
                let told: u64 = stored.parts.iter().map(length).sum();
                seen = told.max(seen + 1);
                ahead = seen - told;
                sender.send(AnswerEvent {
                    message: stored.id.clone(),
                    seq: seen,
                    body: AnswerBody::Continued {
                        parts: stored.parts.clone(),
                        notices: stored.notices.clone(),
                    },
                });
            }
            shown.clone_from(&stored.parts);
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

/// True if these parts are those that were shown, with more at their end.
fn extends(shown: &[Part], parts: &[Part]) -> bool {
    let Some((last, whole)) = shown.split_last() else {
        return true;
    };
    let Some(now) = parts.get(whole.len()) else {
        return false;
    };
    let same = |(before, now): (&Part, &Part)| before.content == now.content;
    let grows = match (last.content.growing_text(), now.content.growing_text()) {
        (Some(before), Some(text)) => {
            text.starts_with(before) && last.content.with_text("") == now.content.with_text("")
        }
        _ => same((last, now)),
    };
    grows && whole.iter().zip(parts).all(same)
}

/// Sends what comes after character `seen`, under numbers that are `ahead` of them; returns how many characters were
/// told so far.
fn send_growth(sender: &Sender<AnswerEvent>, stored: &StoredMessage, ahead: u64, seen: u64) -> u64 {
    let mut seq = 0;
    for part in &stored.parts {
        let new = usize::try_from(seen.saturating_sub(seq)).unwrap_or(usize::MAX);
        seq += length(part);
        if seq > seen {
            sender.send(AnswerEvent {
                message: stored.id.clone(),
                seq: ahead + seq,
                body: event(part, new),
            });
        }
    }
    seq.max(seen)
}

/// How much a part counts: a text its characters, every other one.
fn length(part: &Part) -> u64 {
    let text = part.content.growing_text();
    text.map_or(1, |text| text.chars().count() as u64)
}

/// A part without its first characters, as an event.
fn event(part: &Part, skip: usize) -> AnswerBody {
    let text = part.content.growing_text();
    let rest = text.map(|text| text.chars().skip(skip).collect::<String>());
    AnswerBody::Delta {
        content: part.content.with_text(rest.unwrap_or_default()),
        at: part.ended_at,
    }
}
