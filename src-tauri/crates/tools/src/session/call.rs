//! A call of a tool: until it has its result, is given up, or its server has asked the person for too much.

use std::time::Duration;

use rmcp::model::ServerResult;
use rmcp::service::ServiceError;
use serde_json::{json, Map, Value};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout, Instant};

use super::handler::{roots, NO_SAMPLING, SAMPLING};
use super::running_calls::{Caller, Registered};
use super::{value, CallError, Session, CANCEL};
use crate::elicitation::{Elicitation, Reply};
use crate::outcome::Outcome;

/// Answers to one call at most that want something of the person first.
const MOST_ROUNDS: usize = 10;

/// The error of a server that wants a page to be opened before it is called again (`URLElicitationRequiredError`).
const PAGE_FIRST: i32 = -32042;

/// The time limit of a call as a whole, without the time in which the person was asked.
struct WholeCall {
    until: Instant,
    asked_since: Option<Instant>,
}

impl WholeCall {
    fn lasting(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            asked_since: None,
        }
    }

    /// Notes whether the person is asked now.
    fn note(&mut self, asks: bool) {
        match (asks, self.asked_since) {
            (true, None) => self.asked_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.until += since.elapsed();
                self.asked_since = None;
            }
            _ => {}
        }
    }
}

impl Session {
    /// Calls a tool. `caller` hears how far it is, and asks the person what its server wants to know; `stop` becomes true
    /// when the person stops it.
    ///
    /// # Errors
    /// [`CallError`] if there is no result. What a tool itself says went wrong is a result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        caller: impl Into<Caller>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<Outcome, CallError> {
        let caller = caller.into();
        let heard = caller.progress.subscribe();
        let registered = self.calls.add(caller);
        let mut whole = WholeCall::lasting(self.limits.whole_call);
        let mut params = json!({ "name": tool, "arguments": arguments });
        for _ in 0..MOST_ROUNDS {
            let answer = self
                .round(&params, &registered, heard.clone(), &mut whole, &mut stop)
                .await?;
            if answer.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(Outcome::read(&answer));
            }
            whole.note(true);
            let responses = tokio::select! {
                responses = self.responses(&answer) => responses?,
                _ = stop.wait_for(|stop| *stop) => return Err(CallError::Stopped),
            };
            whole.note(false);
            params["inputResponses"] = responses;
            // Servers keep what they need there, and are told nothing that they did not say.
            match answer.get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => drop(params.as_object_mut().and_then(|params| params.remove("requestState"))),
            }
        }
        Err(CallError::Refused("it asked the person again and again".to_owned()))
    }

    /// Sends the call and waits for its answer.
    async fn round(
        &self,
        params: &Value,
        call: &Registered,
        mut heard: watch::Receiver<protocol::CallProgress>,
        whole: &mut WholeCall,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Value, CallError> {
        let mut handle = self
            .ask("tools/call", params.clone())
            .await
            .map_err(|error| self.failure(error))?;
        call.listen(handle.progress_token.clone());
        let mut asks = self.calls.asks();
        let answer: Result<Result<ServerResult, ServiceError>, CallError> = loop {
            let asked = *asks.borrow_and_update();
            whole.note(asked);
            let deadline = whole.until.min(Instant::now() + self.limits.call);
            tokio::select! {
                answer = &mut handle.rx => break Ok(answer.unwrap_or(Err(ServiceError::TransportClosed))),
                _ = stop.wait_for(|stop| *stop) => break Err(CallError::Stopped),
                () = sleep_until(deadline), if !asked => break Err(CallError::Silent(self.limits.call)),
                Ok(()) = heard.changed() => {}
                Ok(()) = asks.changed() => {}
            }
        };
        match answer {
            Ok(Err(ServiceError::McpError(error))) if error.code.0 == PAGE_FIRST => {
                Err(self.open_pages(error.data.unwrap_or_default(), stop).await)
            }
            Ok(answer) => Ok(value(answer.map_err(|error| self.failure(error))?)),
            Err(given_up) => {
                let cancel = handle.cancel(Some("given up by the person or a time limit".to_owned()));
                let told = timeout(CANCEL, cancel).await;
                tracing::debug!(?told, "a call of a tool was given up");
                Err(given_up)
            }
        }
    }

    /// Asks the person to open the pages that a server wants first. The call ends either way: only the person knows when
    /// they are done there.
    async fn open_pages(&self, data: Value, stop: &mut watch::Receiver<bool>) -> CallError {
        let asking = async {
            for params in data.get("elicitations").and_then(Value::as_array).into_iter().flatten() {
                let elicitation = Elicitation::read(params)?;
                if !matches!(self.calls.ask(elicitation).await?, Reply::Accept(_)) {
                    return Err("it wants a page to be opened first, which the person did not".to_owned());
                }
            }
            Ok("it wants something to be done on a page first, which was opened; call it again after that".to_owned())
        };
        tokio::select! {
            asked = asking => CallError::Refused(asked.unwrap_or_else(|why| why)),
            _ = stop.wait_for(|stop| *stop) => CallError::Stopped,
        }
    }

    /// The person's replies to everything that an answer wants first (*multi round-trip requests* of version 2026-07-28).
    async fn responses(&self, answer: &Value) -> Result<Value, CallError> {
        let mut responses = Map::new();
        let requests = answer.get("inputRequests").and_then(Value::as_object);
        for (key, request) in requests.into_iter().flatten() {
            let params = request.get("params").unwrap_or(&Value::Null);
            let response = match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    let elicitation = Elicitation::read(params).map_err(CallError::Refused)?;
                    let reply = self.calls.ask(elicitation).await.map_err(CallError::Refused)?;
                    reply.to_value()
                }
                Some("roots/list") => json!({ "roots": roots(&self.roots.borrow()) }),
                Some(SAMPLING) => {
                    self.carrier.note(NO_SAMPLING);
                    return Err(CallError::Refused(NO_SAMPLING.to_owned()));
                }
                _ => {
                    let unknown = "it wants something first that Ponder does not know";
                    return Err(CallError::Refused(unknown.to_owned()));
                }
            };
            responses.insert(key.clone(), response);
        }
        Ok(responses.into())
    }
}
