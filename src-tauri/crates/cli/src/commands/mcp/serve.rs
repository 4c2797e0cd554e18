//! The server: each request is a task of its own, so that a long one holds up no other.

use std::collections::HashMap;
use std::future::Future;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use protocol::CancelFlag;
use serde::Deserialize;
use serde_json::{json, Value};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use super::messages::{begin, response, Incoming, Refusal, BAD_PARAMS, BUSY, NO_JSON, NO_MESSAGE, NO_METHOD};
use super::own_tools::OwnTools;
use super::stdio::{lines, output_is_closed, Line};
use crate::output;

/// Lines that are worked on at once at most.
const MOST_RUNNING: usize = 32;

/// Messages of a line at most, in a list of them.
const MOST_IN_LIST: usize = 100;

/// How often a client that closed its input is looked after.
const LOOK: Duration = Duration::from_secs(1);

/// A server for one client.
struct Server {
    tools: OwnTools,
    /// The requests that run, by their ids.
    running: Mutex<HashMap<Value, CancelFlag>>,
}

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
}

/// Serves on standard input and output until the input ends and what was asked is answered, or nobody reads any more.
///
/// # Errors
/// When standard output is closed.
pub async fn serve(tools: OwnTools) -> Result<()> {
    if std::io::stdin().is_terminal() {
        eprintln!("(Waiting for an MCP client on standard input. Its settings need the command 'ponder mcp serve')");
    }
    let server = Arc::new(Server {
        tools,
        running: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    tokio::select! {
        answered = server.answer_all(lines(), &mut tasks) => answered?,
        () = nobody_reads() => {}
    }
    tasks.shutdown().await;
    Ok(())
}

/// Ends once standard output is closed.
async fn nobody_reads() {
    while !output_is_closed() {
        tokio::time::sleep(LOOK).await;
    }
}

impl Server {
    async fn answer_all(self: &Arc<Self>, mut lines: Receiver<Line>, tasks: &mut JoinSet<Result<()>>) -> Result<()> {
        loop {
            tokio::select! {
                Some(ended) = tasks.join_next() => ended??,
                line = lines.recv() => match line {
                    Some(line) => self.take(line, tasks)?,
                    None => break,
                },
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Answers a line, in a task of its own unless nothing waits in it.
    fn take(self: &Arc<Self>, line: Line, tasks: &mut JoinSet<Result<()>>) -> Result<()> {
        let refuse = |code, message: &str| {
            let refusal = Refusal::new(code, message);
            Ok(output::line(&response(&Value::Null, Err(refusal)))?)
        };
        let bytes = match line {
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => return Ok(()),
            Line::Whole(bytes) => bytes,
            Line::TooLong => return refuse(NO_MESSAGE, "the message is too long"),
        };
        let Ok(message) = serde_json::from_slice::<Value>(&bytes) else {
            return refuse(NO_JSON, "this is not JSON");
        };
        match message {
            // Lists of messages belong to the version 2025-03-26 alone.
            Value::Array(list) if list.is_empty() || list.len() > MOST_IN_LIST => {
                refuse(NO_MESSAGE, "a list has one message or more, and not too many")
            }
            Value::Array(list) => {
                let is_busy = tasks.len() >= MOST_RUNNING;
                let answers: Vec<_> = list
                    .into_iter()
                    .filter_map(|message| self.answer(message, is_busy))
                    .collect();
                tasks.spawn(async move {
                    let mut told = Vec::new();
                    for answer in answers {
                        told.extend(answer.await);
                    }
                    match told.is_empty() {
                        true => Ok(()),
                        false => Ok(output::line(&Value::Array(told))?),
                    }
                });
                Ok(())
            }
            message => {
                if let Some(answer) = self.answer(message, tasks.len() >= MOST_RUNNING) {
                    tasks.spawn(async move {
                        match answer.await {
                            Some(answer) => Ok(output::line(&answer)?),
                            None => Ok(()),
                        }
                    });
                }
                Ok(())
            }
        }
    }

    /// The response to a message, which is none if it is canceled. `None` at once for a message that gets none.
    fn answer(self: &Arc<Self>, message: Value, is_busy: bool) -> Option<impl Future<Output = Option<Value>> + use<>> {
        let (id, request) = match Incoming::read(message) {
            Incoming::Response => return None,
            Incoming::Notification { method, params } => {
                self.hear(&method, &params);
                return None;
            }
            Incoming::Invalid { id } => (id, Err(Refusal::new(NO_MESSAGE, "this is not a request"))),
            Incoming::Request { id, .. } if is_busy => (id, Err(Refusal::new(BUSY, "too many requests wait"))),
            Incoming::Request { id, method, params } => (id, Ok((method, params))),
        };
        let canceled = CancelFlag::default();
        // Before the next line is read, which may cancel it.
        self.running().insert(id.clone(), canceled.clone());
        let server = Arc::clone(self);
        Some(async move {
            let outcome = async {
                let (method, params) = request?;
                server.outcome(&method, params).await
            };
            let answer = tokio::select! {
                outcome = outcome => Some(response(&id, outcome)),
                () = canceled.cancelled() => None,
            };
            server.running().remove(&id);
            answer
        })
    }

    fn hear(&self, method: &str, params: &Value) {
        let canceled = params.get("requestId").filter(|_| method == "notifications/cancelled");
        if let Some(request) = canceled.and_then(|id| self.running().get(id).cloned()) {
            request.cancel();
        }
    }

    async fn outcome(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "initialize" => begin(&params),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.tools.declarations()})),
            "tools/call" => {
                let call = serde_json::from_value::<Call>(params);
                let Call { name, arguments } = call.map_err(|error| Refusal::new(BAD_PARAMS, error.to_string()))?;
                let called = self.tools.call(&name, arguments.unwrap_or_else(|| json!({}))).await;
                called.ok_or_else(|| Refusal::new(BAD_PARAMS, format!("there is no tool called {name}")))
            }
            _ => Err(Refusal::new(NO_METHOD, format!("{method} is not served"))),
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Value, CancelFlag>> {
        // Each change is one step.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
