//! The column with the states of an answer's calls.

use api::{CallState, CallStatus};
use sqlx::SqliteConnection;

use crate::json::{from_json, lossy, to_json};
use crate::{Error, Result};

/// Notes that a person went on without the calls of an answer that wait or run.
pub(super) async fn close_statuses(db: &mut SqliteConnection, answer: &str, now: i64) -> Result<()> {
    let mut calls = read(&mut *db, answer).await?;
    let mut changed = false;
    for status in &mut calls {
        status.state = match status.state {
            CallState::Asked => CallState::NotRun,
            CallState::Started => CallState::Stopped,
            _ => continue,
        };
        (status.ended_at, changed) = (Some(now), true);
    }
    match changed {
        true => write(db, answer, &calls).await,
        false => Ok(()),
    }
}

/// The states of the calls of an answer.
pub(super) async fn read(db: &mut SqliteConnection, answer: &str) -> Result<Vec<CallStatus>> {
    let sql = "SELECT tool_calls FROM messages WHERE id = ?";
    let json: Option<Option<Vec<u8>>> = value!(&mut *db, sql; answer).await?;
    match json.ok_or(Error::NotFound("message"))? {
        Some(json) => from_json("state of calls", &lossy(json)),
        None => Ok(Vec::new()),
    }
}

/// Stores the states of the calls of an answer.
pub(super) async fn write(db: &mut SqliteConnection, answer: &str, calls: &[CallStatus]) -> Result<()> {
    let open = calls.iter().any(|status| status.state.is_open());
    let sql = "UPDATE messages SET tool_calls = ?2, has_open_calls = ?3 WHERE id = ?1";
    change!(db, "message", sql; answer, to_json(&calls), open).await
}
