//! Calls that Ponder runs: from a person's consent to their result. Each step is on the disk before the next begins.

use api::{AnswerState, CallState, CallStatus, StoredMessage};
use protocol::{Content, OfferedTool, ToolRef};
use serde_json::Value;

use crate::json::{readable, to_json};
use crate::messages::call_states::{read, write};
use crate::messages::tool_results::add_result;
use crate::{now, Error, History, Result};

/// A call that waits or runs, and the process that looks after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// The answer that made it.
    pub answer: String,
    /// Its id.
    pub call: String,
    /// The process, as the file calls it.
    pub owner: String,
    /// The time of its last step.
    pub at: i64,
}

impl History {
    /// Stores that a call of this answer waits for consent: for the first time, or once more after its process died.
    /// Returns the number of the attempt. Fails with [`Error::HasResult`] for one that has its result, and with
    /// [`Error::Busy`] for one that waits or runs.
    pub async fn ask_call(
        &self,
        answer: &str,
        call: &str,
        tool: &ToolRef,
        server_name: &str,
        owner: &str,
    ) -> Result<u32> {
        let mut transaction = self.write().await?;
        let mut calls = read(&mut transaction, answer).await?;
        let sql = "SELECT EXISTS (SELECT 1 FROM messages a JOIN messages r ON r.chat_id = a.chat_id
                    WHERE a.id = ?1 AND r.tool_call_id = ?2)";
        if the_value!(&mut *transaction, sql; answer, call).await? {
            return Err(Error::HasResult);
        }
        let earlier = calls.iter().position(|status| status.call == call);
        let attempt = match earlier.map(|place| calls.remove(place)) {
            Some(earlier) if earlier.state.is_open() => return Err(Error::Busy),
            Some(earlier) => earlier.attempt + 1,
            None => 1,
        };
        calls.push(CallStatus {
            call: call.to_owned(),
            tool: tool.clone(),
            server_name: server_name.to_owned(),
            state: CallState::Asked,
            arguments: None,
            attempt,
            owner: owner.to_owned(),
            asked_at: now(),
            started_at: None,
            ended_at: None,
        });
        write(&mut transaction, answer, &calls).await?;
        transaction.commit().await?;
        Ok(attempt)
    }

    /// Stores that a call begins, with the arguments that a person wrote in place of the model's. Fails with
    /// [`Error::NotFound`] for one that does not wait any more.
    pub async fn start_call(&self, answer: &str, call: &str, arguments: Option<Value>) -> Result<()> {
        let mut transaction = self.write().await?;
        let mut calls = read(&mut transaction, answer).await?;
        let waiting = calls
            .iter_mut()
            .find(|status| status.call == call && status.state == CallState::Asked);
        let status = waiting.ok_or(Error::NotFound("call that waits"))?;
        (status.state, status.arguments, status.started_at) = (CallState::Started, arguments, Some(now()));
        write(&mut transaction, answer, &calls).await?;
        Ok(transaction.commit().await?)
    }

    /// Stores the end of a call together with its result. Fails as [`History::add_tool_result`] does.
    pub async fn end_call(
        &self,
        answer: &str,
        call: &str,
        state: CallState,
        content: &[Content],
    ) -> Result<StoredMessage> {
        let now = now();
        let mut transaction = self.write().await?;
        let mut calls = read(&mut transaction, answer).await?;
        if let Some(status) = calls.iter_mut().find(|status| status.call == call) {
            (status.state, status.ended_at) = (state, Some(now));
            write(&mut transaction, answer, &calls).await?;
        }
        let result = match state {
            CallState::Done | CallState::Failed => AnswerState::Complete,
            _ => AnswerState::Stopped,
        };
        let id = add_result(&mut transaction, answer, call, content, result, now).await?;
        transaction.commit().await?;
        self.message(&id).await
    }

    /// All calls that wait or run, of any process.
    pub async fn open_calls(&self) -> Result<Vec<OpenCall>> {
        let sql = "SELECT id, tool_calls FROM messages WHERE has_open_calls = 1";
        let rows: Vec<(String, Option<Vec<u8>>)> = rows!(&self.readers, sql).await?;
        let mut open = Vec::new();
        for (answer, json) in rows {
            let calls: Vec<CallStatus> = json
                .and_then(|json| readable("state of calls", json))
                .unwrap_or_default();
            let of_answer = calls.into_iter().filter(|status| status.state.is_open());
            open.extend(of_answer.map(|status| OpenCall {
                answer: answer.clone(),
                call: status.call,
                owner: status.owner,
                at: status.started_at.unwrap_or(status.asked_at),
            }));
        }
        Ok(open)
    }

    /// Stores that the process of a call is gone, unless something else became of it meanwhile. Returns whether it did.
    pub async fn interrupt_call(&self, open: &OpenCall) -> Result<bool> {
        let mut transaction = self.write().await?;
        let mut calls = read(&mut transaction, &open.answer).await?;
        let still = calls
            .iter_mut()
            .find(|status| status.call == open.call && status.owner == open.owner && status.state.is_open());
        let Some(status) = still else { return Ok(false) };
        status.state = match status.state {
            CallState::Started => CallState::MayHaveRun,
            _ => CallState::NotRun,
        };
        status.ended_at = Some(now());
        write(&mut transaction, &open.answer, &calls).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// The tools that the model of a chat was told of, if there are any.
    pub async fn offered_tools(&self, chat: &str) -> Result<Option<Vec<OfferedTool>>> {
        let sql = "SELECT offered_tools FROM chats WHERE id = ?";
        let json: Option<Option<Vec<u8>>> = value!(&self.readers, sql; chat).await?;
        Ok(json.flatten().and_then(|json| readable("list of tools", json)))
    }

    /// Stores the tools that the model of a chat is told of from now on.
    pub async fn set_offered_tools(&self, chat: &str, tools: &[OfferedTool]) -> Result<()> {
        let mut transaction = self.write().await?;
        let sql = "UPDATE chats SET offered_tools = ?2 WHERE id = ?1";
        run!(&mut transaction, sql; chat, to_json(&tools)).await?;
        Ok(transaction.commit().await?)
    }
}
