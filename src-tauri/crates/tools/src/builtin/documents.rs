//! The documents of a chat, searched and read.

use protocol::{Content, TellProgress};
use serde_json::Value;

use super::arguments::{number, text};
use super::sources::ChatSource;
use crate::outcome::{Outcome, ResultPart};

/// Characters of a query at most.
const LONGEST_QUERY: usize = 1000;

/// The passages that answer a query best.
pub(super) async fn search(chats: &dyn ChatSource, chat: &str, arguments: &Value) -> Result<Outcome, String> {
    let query = words(arguments, "query")?;
    outcome(chats.passages(chat.to_owned(), query).await.map(|found| vec![found]))
}

/// The passages around one.
pub(super) async fn around(chats: &dyn ChatSource, chat: &str, arguments: &Value) -> Result<Outcome, String> {
    let number = number(arguments, "number").and_then(|number| u32::try_from(number).ok());
    let number = number.ok_or("there is no number of a passage")?;
    let found = chats.passages_around(chat.to_owned(), number).await;
    outcome(found.map(|found| vec![found]))
}

/// All documents, part by part.
pub(super) async fn read_all(
    chats: &dyn ChatSource,
    chat: &str,
    arguments: &Value,
    tell: TellProgress,
) -> Result<Outcome, String> {
    let question = words(arguments, "question")?;
    outcome(chats.read_all(chat.to_owned(), question, tell).await)
}

fn words(arguments: &Value, name: &str) -> Result<String, String> {
    let words = text(arguments, name).unwrap_or_default();
    match words.trim().is_empty() {
        true => Err(format!("there is no {name}")),
        false => Ok(words.chars().take(LONGEST_QUERY).collect()),
    }
}

fn outcome(found: protocol::Result<Vec<Content>>) -> Result<Outcome, String> {
    let found = found.map_err(|error| error.message)?;
    let part = |content: Content| match content {
        Content::Text { text } => ResultPart::Text(text),
        other => ResultPart::Passages(other),
    };
    Ok(Outcome {
        parts: found.into_iter().map(part).collect(),
        ..Outcome::default()
    })
}
