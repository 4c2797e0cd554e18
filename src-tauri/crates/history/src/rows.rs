//! Rows of the message tree, and how values of `protocol` become columns.

use protocol::{AnswerState, Content, Error as Failure, ErrorCode, FinishReason, Notice, Part, Role, StoredMessage, Timing, Usage};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::continuation::ended_early;
use crate::{Error, Result};

/// Begins a query with one row per part of the messages that the rest of it names `m`; parts are `p`.
macro_rules! select_messages {
    ($with:literal, $from:literal) => {
        concat!(
            $with,
            " SELECT m.id, m.chat_id, m.parent_id, m.role, m.state, m.created_at, m.finished_at, m.model, m.model_revision,
                     m.template_hash, m.settings, m.tool_call_id, m.thinking_ended, m.thinking_tokens, m.finish_reason, m.ended_by, m.error,
                     m.notices, m.usage, m.timing,
                     EXISTS (SELECT 1 FROM chats h WHERE h.head = m.id AND h.deleted_at IS NULL) AS is_head,
                     (SELECT group_concat(s.id, ' ' ORDER BY s.created_at, s.id) FROM messages s
                       WHERE s.parent_id IS m.parent_id AND s.chat_id = m.chat_id) AS siblings,
                     p.kind, p.content, p.started_at, p.ended_at ",
            $from
        )
    };
}
pub(crate) use select_messages;

/// One part of one message, or a message without parts.
#[derive(sqlx::FromRow)]
pub(crate) struct PartOfMessage {
    id: String,
    chat_id: String,
    parent_id: Option<String>,
    role: String,
    state: String,
    created_at: i64,
    finished_at: Option<i64>,
    model: Option<String>,
    model_revision: Option<String>,
    template_hash: Option<String>,
    settings: Option<String>,
    tool_call_id: Option<String>,
    thinking_ended: bool,
    thinking_tokens: Option<u32>,
    finish_reason: Option<String>,
    ended_by: Option<String>,
    error: Option<String>,
    notices: String,
    usage: Option<String>,
    timing: Option<String>,
    is_head: bool,
    siblings: String,
    kind: Option<String>,
    content: Option<String>,
    started_at: Option<i64>,
    ended_at: Option<i64>,
}

/// Joins neighbouring rows of one message.
pub(crate) fn messages(rows: Vec<PartOfMessage>) -> Result<Vec<StoredMessage>> {
    let mut messages: Vec<StoredMessage> = Vec::new();
    for mut row in rows {
        let part = row.take_part()?;
        match messages.last_mut() {
            Some(last) if last.id == row.id => last.parts.extend(part),
            _ => messages.push(row.message(part)?),
        }
    }
    for message in &mut messages {
        message.continuable = message.continuable && ended_early(message);
    }
    Ok(messages)
}

impl PartOfMessage {
    fn take_part(&mut self) -> Result<Option<Part>> {
        let (Some(kind), Some(content), Some(started_at), Some(ended_at)) =
            (self.kind.take(), self.content.take(), self.started_at, self.ended_at)
        else {
            return Ok(None);
        };
        let content = part_content(&kind, content)?;
        Ok(Some(Part {
            content,
            started_at,
            ended_at,
        }))
    }

    fn message(self, part: Option<Part>) -> Result<StoredMessage> {
        Ok(StoredMessage {
            id: self.id,
            chat: self.chat_id,
            parent: self.parent_id,
            role: from_word::<Role>("role", &self.role)?,
            state: from_word::<AnswerState>("state", &self.state)?,
            parts: part.into_iter().collect(),
            tool_call_id: self.tool_call_id,
            siblings: self.siblings.split(' ').map(str::to_owned).collect(),
            created_at: self.created_at,
            finished_at: self.finished_at,
            model: self.model,
            model_revision: self.model_revision,
            template_hash: self.template_hash,
            settings: self.settings.as_deref().map(|json| from_json("setting", json)).transpose()?,
            thinking_ended: self.thinking_ended,
            thinking_tokens: self.thinking_tokens,
            finish_reason: self
                .finish_reason
                .as_deref()
                .map(|word| from_word::<FinishReason>("finish reason", word))
                .transpose()?,
            // A later version may know more rules; how the answer ended is told by the rest.
            ended_by: self.ended_by.as_deref().and_then(|json| from_json("rule", json).ok()),
            error: self.error.as_deref().map(stored_error).transpose()?,
            notices: from_json::<Vec<Notice>>("notice", &self.notices)?,
            usage: self
                .usage
                .as_deref()
                .map(|json| from_json::<Usage>("token count", json))
                .transpose()?,
            timing: self.timing.as_deref().map(|json| from_json::<Timing>("timing", json)).transpose()?,
            // Decided when all parts are known.
            continuable: self.is_head,
        })
    }
}

/// The columns `kind` and `content` of a part: a text stands there as it is, so that it can be searched and grow; of every other
/// kind the fields stand there as JSON.
pub(crate) fn part_columns(content: &Content) -> (String, String) {
    let mut fields = match serde_json::to_value(content) {
        Ok(Value::Object(fields)) => fields,
        _ => unreachable!("a part is an object with string keys and no failing serializer"),
    };
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        _ => unreachable!("a part's kind is its tag"),
    };
    match content.growing_text() {
        Some(text) => (kind, text.to_owned()),
        None => (kind, Value::Object(fields).to_string()),
    }
}

/// A part of its columns.
fn part_content(kind: &str, content: String) -> Result<Content> {
    let mut fields: Map<String, Value> = match kind {
        "text" | "thinking" => Map::from_iter([("text".into(), content.into())]),
        _ => from_json("part", &content)?,
    };
    fields.insert("kind".into(), kind.into());
    serde_json::from_value(fields.into()).map_err(|source| Error::Unreadable { what: "part", source })
}

/// An error from its JSON. A later version may know more codes; its message still says what happened.
fn stored_error(json: &str) -> Result<Failure> {
    let mut fields: Map<String, Value> = from_json("error", json)?;
    if fields
        .get("code")
        .is_some_and(|code| serde_json::from_value::<ErrorCode>(code.clone()).is_err())
    {
        fields.insert("code".into(), to_word(&ErrorCode::Engine).into());
    }
    serde_json::from_value(fields.into()).map_err(|source| Error::Unreadable { what: "error", source })
}

/// A value as JSON.
pub(crate) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values of protocol have string keys and no failing serializer")
}

/// A value from its JSON; `what` names it in the error.
pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|source| Error::Unreadable { what, source })
}

/// A variant without fields as its word, such as `streaming`.
pub(crate) fn to_word<T: Serialize>(value: &T) -> String {
    to_json(value).trim_matches('"').to_owned()
}

/// A variant from its word.
pub(crate) fn from_word<T: DeserializeOwned>(what: &'static str, word: &str) -> Result<T> {
    serde_json::from_value(Value::from(word)).map_err(|source| Error::Unreadable { what, source })
}
