//! A box of tools whose calls a test decides and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::FutureExt;
use serde_json::{json, Value};
use tokio::sync::{oneshot, watch};

use crate::{CallEnd, CallRequest, CallResult, OfferedTool, StoreStart, TellProgress, ToolRef, Toolbox};

/// A call that waits for the test.
pub struct FakeCall {
    /// The call.
    pub request: CallRequest,
    /// Stores that it begins.
    pub start: StoreStart,
    /// Hears how far it is.
    pub tell: TellProgress,
    /// Ends it.
    pub end: oneshot::Sender<CallResult>,
}

impl FakeCall {
    /// Runs it to this result.
    ///
    /// # Errors
    /// If its beginning could not be stored; it did not run then.
    pub async fn finish(self, text: &str) -> crate::Result<()> {
        (self.start)(self.request.call.arguments.clone()).await?;
        // Whoever asked may be gone.
        let _ = self.end.send(CallResult::words(CallEnd::Done, text));
        Ok(())
    }

    /// Refuses it with this word.
    pub fn refuse(self, text: &str) {
        let _ = self.end.send(CallResult::words(CallEnd::Refused, text));
    }
}

/// The fake. Clones share one state.
#[derive(Clone, Default)]
pub struct FakeToolbox(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    calls: VecDeque<FakeCall>,
    ended_turns: Vec<String>,
    offers: usize,
    now: Vec<(ToolRef, Option<Value>)>,
    offers_nothing: bool,
}

impl FakeToolbox {
    /// The oldest call that the test has not taken.
    pub fn take_call(&self) -> Option<FakeCall> {
        self.state().calls.pop_front()
    }

    /// The turns that ended since the last call.
    pub fn take_ended_turns(&self) -> Vec<String> {
        std::mem::take(&mut self.state().ended_turns)
    }

    /// How often tools were offered.
    pub fn offers(&self) -> usize {
        self.state().offers
    }

    /// As if no server of tools ran from now on.
    pub fn offer_nothing(&self) {
        self.state().offers_nothing = true;
    }

    /// Sets the description that a server gives its tool now; `None`: it does not have it any more.
    pub fn describe(&self, tool: ToolRef, description: Option<&str>) {
        let declaration = description.map(|text| json!({"function": {"name": "other", "description": text}}));
        let mut state = self.state();
        state.now.retain(|(of, _)| *of != tool);
        state.now.push((tool, declaration));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Toolbox for FakeToolbox {
    fn offer(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<OfferedTool>> {
        let mut state = self.state();
        state.offers += 1;
        let offers = state.offers;
        let running = tools.iter().filter(|_| !state.offers_nothing);
        let offered = running.map(|of| OfferedTool {
            of: of.clone(),
            server_name: of.server.clone(),
            name: of.tool.clone(),
            // Another one each time, so that a test sees whether a chat keeps the first.
            declaration: json!({"type": "function", "function": {"name": of.tool, "description": offers.to_string()}}),
        });
        let offered = offered.collect();
        async move { offered }.boxed()
    }

    fn declarations_now(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<(ToolRef, Option<Value>)>> {
        let mut now = self.state().now.clone();
        now.retain(|(of, _)| tools.contains(of));
        async move { now }.boxed()
    }

    fn run(
        &self,
        request: CallRequest,
        start: StoreStart,
        tell: TellProgress,
        mut stop: watch::Receiver<bool>,
    ) -> BoxFuture<'_, CallResult> {
        let (end, ended) = oneshot::channel();
        self.state().calls.push_back(FakeCall {
            request,
            start,
            tell,
            end,
        });
        async move {
            let stopped = || CallResult::words(CallEnd::Stopped, "stopped");
            tokio::select! {
                ended = ended => ended.unwrap_or_else(|_| stopped()),
                _ = stop.wait_for(|stop| *stop) => stopped(),
            }
        }
        .boxed()
    }

    fn end_turn(&self, turn: &str) {
        self.state().ended_turns.push(turn.to_owned());
    }

    fn forget_chat(&self, _: &str) {}
}
