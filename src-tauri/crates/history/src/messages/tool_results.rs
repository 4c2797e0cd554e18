//! The results of tools: a row for each call, in a line below the answer that called, before the next answer of the
//! same turn.

use std::collections::HashSet;

use api::{AnswerState, StoredMessage};
use protocol::{Content, Role};
use sqlx::SqliteConnection;

use crate::json::to_word;
use crate::messages::call_states::close_statuses;
use crate::messages::insert::insert_message;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The result of a call that the user did not wait for.
pub const NOT_RUN: &str = "The tool was not run: the person went on without its result.";

/// An answer and what became of its calls.
struct Calls {
    /// Its calls without a result, in the order in which they were made.
    open: Vec<String>,
    /// The last result, or the answer itself while there is none: the next row goes below it.
    last: String,
}

impl History {
    /// Stores the result of a call that this answer made. Fails with [`Error::NotFound`] if it made no such call, with
    /// [`Error::Busy`] while the answer is being written, and with [`Error::HasResult`] if the call has its result
    /// already.
    pub async fn add_tool_result(&self, answer: &str, call: &str, content: &[Content]) -> Result<StoredMessage> {
        let mut transaction = self.write().await?;
        let id = add_result(&mut transaction, answer, call, content, AnswerState::Complete, now()).await?;
        transaction.commit().await?;
        self.message(&id).await
    }

    /// The calls of this answer that have no result, in the order in which they were made.
    pub async fn calls_without_result(&self, answer: &str) -> Result<Vec<String>> {
        let mut reader = self.readers.acquire().await?;
        let sql = "SELECT chat_id FROM messages WHERE id = ?";
        let chat: Option<String> = value!(&mut *reader, sql; answer).await?;
        Ok(calls(&mut reader, &chat.ok_or(Error::NotFound("message"))?, answer)
            .await?
            .open)
    }

    /// Gives every call of this answer that has no result one that says that it was not run. Returns the last result.
    pub async fn close_calls_of(&self, answer: &str) -> Result<String> {
        let now = now();
        let mut transaction = self.write().await?;
        let sql = "SELECT chat_id FROM messages WHERE id = ?";
        let chat: Option<String> = value!(&mut *transaction, sql; answer).await?;
        let chat = chat.ok_or(Error::NotFound("message"))?;
        let before = calls(&mut transaction, &chat, answer).await?.last;
        let last = close_calls(&mut transaction, &chat, answer, now).await?;
        let sql = "UPDATE chats SET head = ?3, updated_at = ?4 WHERE id = ?1 AND head = ?2";
        run!(&mut transaction, sql; &chat, before, &last, now).await?;
        transaction.commit().await?;
        Ok(last)
    }

    /// The ids of all calls that were ever made in a chat, those of its messages in the trash among them, which may
    /// come back.
    pub async fn call_ids(&self, chat: &str) -> Result<Vec<String>> {
        values!(
            &self.readers,
            "SELECT json_extract(p.content, '$.call.id') FROM messages m JOIN parts p ON p.message_id = m.id
              WHERE p.kind = 'tool_call' AND m.chat_id IN (
                    SELECT ?1 UNION ALL
                    SELECT id FROM chats WHERE CASE WHEN json_valid(cut_from) THEN cut_from ->> '$.chat' END = ?1)";
            chat
        )
        .await
    }
}

/// [`History::add_tool_result`] in a transaction; returns the id of the result.
pub(super) async fn add_result(
    db: &mut SqliteConnection,
    answer: &str,
    call: &str,
    content: &[Content],
    state: AnswerState,
    now: i64,
) -> Result<String> {
    let found: Option<(String, String)> = row!(
        &mut *db,
        "SELECT m.chat_id, m.state FROM messages m JOIN chats c ON c.id = m.chat_id
          WHERE m.id = ?1 AND c.deleted_at IS NULL AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id
                AND p.kind = 'tool_call' AND json_extract(p.content, '$.call.id') = ?2)";
        answer, call
    )
    .await?;
    let (chat, answer_state) = found.ok_or(Error::NotFound("call of a tool"))?;
    if answer_state == to_word(&AnswerState::Streaming) {
        return Err(Error::Busy);
    }
    let calls = calls(&mut *db, &chat, answer).await?;
    if !calls.open.iter().any(|open| open == call) {
        return Err(Error::HasResult);
    }
    let id = insert_result(&mut *db, &chat, &calls.last, call, content, state, now).await?;
    let sql = "UPDATE chats SET head = ?3, updated_at = ?4 WHERE id = ?1 AND head = ?2";
    run!(&mut *db, sql; &chat, &calls.last, &id, now).await?;
    Ok(id)
}

/// Gives every call before this place that has no result one that says that it was not run, and returns the message
/// that comes after them all: the next row's parent.
pub(crate) async fn close_calls(db: &mut SqliteConnection, chat: &str, place: &str, now: i64) -> Result<String> {
    // The place itself, or the answer whose results lie above it.
    let answer: Option<(String, String)> = row!(
        &mut *db,
        "WITH RECURSIVE above (id, parent_id, role, state) AS (
             SELECT id, parent_id, role, state FROM messages WHERE id = ?1 AND chat_id = ?2
             UNION ALL
             SELECT m.id, m.parent_id, m.role, m.state FROM above JOIN messages m ON m.id = above.parent_id
              WHERE above.role = 'tool')
         SELECT id, state FROM above WHERE role <> 'tool'";
        place, chat
    )
    .await?;
    let (answer, state) = answer.ok_or(Error::NotFound("message"))?;
    if state == to_word(&AnswerState::Streaming) {
        return Err(Error::Busy);
    }
    let Calls { open, mut last } = calls(db, chat, &answer).await?;
    close_statuses(db, &answer, now).await?;
    for call in open {
        let content = [Content::text(NOT_RUN)];
        last = insert_result(db, chat, &last, &call, &content, AnswerState::Stopped, now).await?;
    }
    Ok(last)
}

async fn calls(db: &mut SqliteConnection, chat: &str, answer: &str) -> Result<Calls> {
    let rows: Vec<(String, Option<String>, Option<String>)> = rows!(
        db,
        "SELECT json_extract(p.content, '$.call.id'), r.id, r.parent_id FROM parts p
           LEFT JOIN messages r ON r.chat_id = ?2 AND r.tool_call_id = json_extract(p.content, '$.call.id')
          WHERE p.message_id = ?1 AND p.kind = 'tool_call' ORDER BY p.position";
        answer, chat
    )
    .await?;
    // Every result goes below the one before, so the last is nobody's parent. Ids would tell as well, but for the
    // clocks of two processes.
    let parents: HashSet<&str> = rows.iter().filter_map(|(_, _, parent)| parent.as_deref()).collect();
    let mut results = rows.iter().filter_map(|(_, result, _)| result.as_deref());
    let last = results.find(|result| !parents.contains(result)).map(str::to_owned);
    let open = rows
        .into_iter()
        .filter(|(_, result, _)| result.is_none())
        .map(|(call, _, _)| call);
    Ok(Calls {
        open: open.collect(),
        last: last.unwrap_or_else(|| answer.to_owned()),
    })
}

async fn insert_result(
    db: &mut SqliteConnection,
    chat: &str,
    parent: &str,
    call: &str,
    content: &[Content],
    state: AnswerState,
    now: i64,
) -> Result<String> {
    let id = new_id();
    insert_message(db, (&id, chat, Some(parent)), Role::Tool, content, now).await?;
    run!(db, "UPDATE messages SET tool_call_id = ?2, state = ?3 WHERE id = ?1"; &id, call, to_word(&state)).await?;
    Ok(id)
}
