//! Rows of the message tree.

use api::{AnswerState, Part, StoredMessage};
use protocol::{
    Arguments, Content, Error as Failure, ErrorCode, FinishReason, Notice, NoticeCode, Role, Timing, Usage,
};
use serde_json::{Map, Value};

use crate::json::{from_json, from_word, lossy, readable, to_word};
use crate::messages::rules::ended_early;
use crate::{Error, Result};

/// Begins a query with one row per part of the messages that the rest of it names `m`; parts are `p`.
macro_rules! select_messages {
    ($with:literal, $from:literal) => {
        concat!(
            $with,
            " SELECT m.id, m.chat_id, m.parent_id, m.role, m.state, m.created_at, m.finished_at, m.model, m.model_revision,
                     m.template_hash, m.settings, m.tool_call_id, m.thinking_ended, m.thinking_tokens,
                     m.finish_reason, m.ended_by, m.error,
                     m.notices, m.usage, m.timing, m.compaction_mark, m.edited,
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
    settings: Option<Vec<u8>>,
    tool_call_id: Option<String>,
    thinking_ended: bool,
    thinking_tokens: Option<u32>,
    finish_reason: Option<String>,
    ended_by: Option<Vec<u8>>,
    error: Option<Vec<u8>>,
    notices: Vec<u8>,
    usage: Option<Vec<u8>>,
    timing: Option<Vec<u8>>,
    compaction_mark: Option<Vec<u8>>,
    edited: bool,
    is_head: bool,
    siblings: String,
    kind: Option<String>,
    /// Bytes, as every text that was not written by this room alone may be: one that is no text must not hide its
    /// message.
    content: Option<Vec<u8>>,
    started_at: Option<i64>,
    ended_at: Option<i64>,
}

from_row!(
    PartOfMessage:
    id, chat_id, parent_id, role, state, created_at, finished_at, model, model_revision, template_hash, settings,
    tool_call_id, thinking_ended, thinking_tokens, finish_reason, ended_by, error, notices, usage, timing,
    compaction_mark, edited, is_head, siblings, kind, content, started_at, ended_at
);

/// Joins adjacent rows of one message. Unreadable parts are left out, and a notice says so.
pub(crate) fn messages(rows: Vec<PartOfMessage>) -> Result<Vec<StoredMessage>> {
    let mut messages: Vec<StoredMessage> = Vec::new();
    for mut row in rows {
        let (part, lost) = match row.take_part() {
            Ok(part) => (part, None),
            Err(error) => (None, Some(error)),
        };
        match messages.last_mut() {
            Some(last) if last.id == row.id => last.parts.extend(part),
            _ => messages.push(row.message(part)?),
        }
        if let (Some(error), Some(message)) = (lost, messages.last_mut()) {
            tracing::warn!(%error, message = message.id, "a part of a message is left out");
            message.notices.push(Notice {
                code: NoticeCode::Unknown,
                arguments: Arguments::new(),
                message: "A part of this message cannot be read and is left out; it stays in the history file.".into(),
            });
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
        let content = part_content(&kind, lossy(content))?;
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
            settings: self.settings.and_then(|json| readable("setting", json)),
            thinking_ended: self.thinking_ended,
            thinking_tokens: self.thinking_tokens,
            finish_reason: self
                .finish_reason
                .as_deref()
                .and_then(|word| from_word::<FinishReason>("finish reason", word).ok()),
            // A later version may know more rules; how the answer ended is told by the rest.
            ended_by: self.ended_by.and_then(|json| from_json("rule", &lossy(json)).ok()),
            error: self.error.map(|json| stored_error(&lossy(json))),
            notices: readable::<Vec<Notice>>("notice", self.notices).unwrap_or_default(),
            usage: self.usage.and_then(|json| readable::<Usage>("token count", json)),
            timing: self.timing.and_then(|json| readable::<Timing>("timing", json)),
            // A mark that means nothing here leaves the model all of its memory.
            compaction_mark: self
                .compaction_mark
                .and_then(|json| from_json("mark", &lossy(json)).ok()),
            edited: self.edited,
            // Decided when all parts are known.
            continuable: self.is_head,
        })
    }
}

/// The columns `kind` and `content` of a part: a text stands there as it is, so that it can be searched and grow; of
/// every other kind the fields stand there as JSON.
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
pub(crate) fn part_content(kind: &str, content: String) -> Result<Content> {
    let mut fields: Map<String, Value> = match kind {
        "text" | "thinking" => Map::from_iter([("text".into(), content.into())]),
        _ => from_json("part", &content)?,
    };
    fields.insert("kind".into(), kind.into());
    serde_json::from_value(fields.into()).map_err(|source| Error::Unreadable { what: "part", source })
}

/// An error from its JSON. A later version may know more codes; its message still says what happened.
fn stored_error(json: &str) -> Failure {
    let read = || -> Option<Failure> {
        let mut fields: Map<String, Value> = serde_json::from_str(json).ok()?;
        if fields
            .get("code")
            .is_some_and(|code| serde_json::from_value::<ErrorCode>(code.clone()).is_err())
        {
            fields.insert("code".into(), to_word(&ErrorCode::Engine).into());
        }
        serde_json::from_value(fields.into()).ok()
    };
    read().unwrap_or_else(|| Failure::new(ErrorCode::Engine, "why this answer failed cannot be read any more"))
}
