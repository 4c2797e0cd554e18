//! Rows of the message tree.

use api::{Part, StoredMessage};
use protocol::{Arguments, Content, Error as Failure, ErrorCode, Notice, NoticeCode, Reason};
use serde_json::{Map, Value};
use sqlx::sqlite::SqliteRow;
use sqlx::Row;

use crate::json::{from_json, from_word, lossy, readable, to_word};
use crate::messages::rules::ended_early;
use crate::{Error, Result};

/// Begins a query with one row per part of the messages that the rest of it names `m`; parts are `p`.
macro_rules! select_messages {
    ($with:literal, $from:literal) => {
        concat!(
            $with,
            " SELECT m.id, m.chat_id, m.parent_id, m.role, m.state, m.created_at, m.finished_at, m.model,
                     m.model_revision, m.template_hash, m.settings, m.tool_call_id, m.thinking_ended, m.thinking_tokens,
                     m.finish_reason, m.ended_by, m.error, m.notices, m.usage, m.timing, m.compaction_mark, m.edited,
                     m.tool_calls,
                     EXISTS (SELECT 1 FROM chats h WHERE h.head = m.id AND h.deleted_at IS NULL) AS is_head,
                     (SELECT group_concat(s.id, ' ' ORDER BY s.created_at, s.id) FROM messages s
                       WHERE s.parent_id IS m.parent_id AND s.chat_id = m.chat_id) AS siblings,
                     p.kind, p.content, p.started_at, p.ended_at ",
            $from
        )
    };
}
pub(crate) use select_messages;

/// Joins adjacent rows of one message. Unreadable parts are left out, and a notice says so.
pub(crate) fn messages(rows: Vec<SqliteRow>) -> Result<Vec<StoredMessage>> {
    let mut messages: Vec<StoredMessage> = Vec::new();
    for row in &rows {
        let id: String = row.try_get("id")?;
        if messages.last().is_none_or(|last| last.id != id) {
            messages.push(message(row, id)?);
        }
        let Some(message) = messages.last_mut() else { continue };
        match part(row) {
            Ok(part) => message.parts.extend(part),
            Err(error) => {
                tracing::warn!(%error, message = message.id, "a part of a message is left out");
                message.notices.push(Notice {
                    code: NoticeCode::Unknown,
                    arguments: Arguments::new(),
                    message: "A part of this message cannot be read and is left out; it stays in the history file."
                        .into(),
                });
            }
        }
    }
    for message in &mut messages {
        message.continuable = message.continuable && ended_early(message);
    }
    Ok(messages)
}

/// The part of a row; `None` for a message without parts.
fn part(row: &SqliteRow) -> Result<Option<Part>> {
    let Some(kind) = row.try_get::<Option<String>, _>("kind")? else {
        return Ok(None);
    };
    Ok(Some(Part {
        // Bytes, as every text that was not written by this crate alone may be: one that is no text must not hide its
        // message.
        content: part_content(&kind, lossy(row.try_get("content")?))?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
    }))
}

/// The message of a row, without parts.
fn message(row: &SqliteRow, id: String) -> Result<StoredMessage> {
    let word = |column: &str| row.try_get::<String, _>(column);
    let json = |column: &str| row.try_get::<Option<Vec<u8>>, _>(column);
    let siblings = word("siblings")?;
    Ok(StoredMessage {
        id,
        chat: row.try_get("chat_id")?,
        parent: row.try_get("parent_id")?,
        role: from_word("role", &word("role")?)?,
        state: from_word("state", &word("state")?)?,
        parts: Vec::new(),
        tool_call_id: row.try_get("tool_call_id")?,
        calls: json("tool_calls")?
            .and_then(|json| readable("state of calls", json))
            .unwrap_or_default(),
        siblings: siblings.split(' ').map(str::to_owned).collect(),
        created_at: row.try_get("created_at")?,
        finished_at: row.try_get("finished_at")?,
        model: row.try_get("model")?,
        model_revision: row.try_get("model_revision")?,
        template_hash: row.try_get("template_hash")?,
        settings: json("settings")?.and_then(|json| readable("setting", json)),
        thinking_ended: row.try_get("thinking_ended")?,
        thinking_tokens: row.try_get("thinking_tokens")?,
        finish_reason: row
            .try_get::<Option<String>, _>("finish_reason")?
            .and_then(|word| from_word("finish reason", &word).ok()),
        // A later version may know more rules; how the answer ended is told by the rest.
        ended_by: json("ended_by")?.and_then(|json| from_json("rule", &lossy(json)).ok()),
        error: json("error")?.map(|json| stored_error(&lossy(json))),
        notices: readable("notice", row.try_get("notices")?).unwrap_or_default(),
        usage: json("usage")?.and_then(|json| readable("token count", json)),
        timing: json("timing")?.and_then(|json| readable("timing", json)),
        // A mark that means nothing here leaves the model all of its memory.
        compaction_mark: json("compaction_mark")?.and_then(|json| from_json("mark", &lossy(json)).ok()),
        edited: row.try_get("edited")?,
        // Decided when all parts are known.
        continuable: row.try_get("is_head")?,
    })
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

/// An error from its JSON. A later version may know more codes and reasons; its message still says what happened.
fn stored_error(json: &str) -> Failure {
    let read = || -> Option<Failure> {
        let mut fields: Map<String, Value> = serde_json::from_str(json).ok()?;
        if fields
            .get("code")
            .is_some_and(|code| serde_json::from_value::<ErrorCode>(code.clone()).is_err())
        {
            fields.insert("code".into(), to_word(&ErrorCode::Engine).into());
        }
        if fields
            .get("reason")
            .is_some_and(|reason| serde_json::from_value::<Reason>(reason.clone()).is_err())
        {
            fields.remove("reason");
        }
        serde_json::from_value(fields.into()).ok()
    };
    read().unwrap_or_else(|| Failure::new(ErrorCode::Engine, "why this answer failed cannot be read any more"))
}
