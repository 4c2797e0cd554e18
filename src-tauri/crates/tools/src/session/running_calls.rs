//! The calls that run in a session: what their servers say of them, and ask amid them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use protocol::CallProgress;
use rmcp::model::ProgressToken;
use tokio::sync::watch;

use crate::elicitation::{Elicitation, Reply};

/// Requests of a server for the person in one call at most.
const MOST_ASKED: usize = 10;

/// Asks the person, and waits for the reply.
pub type Ask = Arc<dyn Fn(Elicitation) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Whoever made a call.
#[derive(Default)]
pub struct Caller {
    /// Hears how far it is.
    pub progress: watch::Sender<CallProgress>,
    /// Asks the person what the server wants to know; without it every request is declined.
    pub ask: Option<Ask>,
}

impl From<watch::Sender<CallProgress>> for Caller {
    fn from(progress: watch::Sender<CallProgress>) -> Self {
        Self { progress, ask: None }
    }
}

/// The calls that run in a session.
#[derive(Clone, Default)]
pub(super) struct RunningCalls(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: Mutex<Calls>,
    /// True while the person is asked: a server that waits for that may be silent in all of its calls.
    asks: watch::Sender<bool>,
}

#[derive(Default)]
struct Calls {
    /// The number of the next call.
    next: u64,
    running: HashMap<u64, Running>,
}

struct Running {
    caller: Arc<Caller>,
    /// The name of its latest request, by which the server tells its progress.
    token: Option<ProgressToken>,
    asked: usize,
    /// Gone with the call.
    lives: watch::Sender<()>,
}

/// A call, which is one of the running ones as long as this lives.
pub(super) struct Registered {
    calls: RunningCalls,
    number: u64,
}

impl RunningCalls {
    /// Adds a call.
    pub(super) fn add(&self, caller: Caller) -> Registered {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        let running = Running {
            caller: Arc::new(caller),
            token: None,
            asked: 0,
            lives: watch::Sender::default(),
        };
        calls.running.insert(number, running);
        Registered {
            calls: self.clone(),
            number,
        }
    }

    /// Passes on how far a call is.
    pub(super) fn tell(&self, token: &ProgressToken, done: f64, total: Option<f64>, message: Option<String>) {
        let calls = self.lock();
        let mut running = calls.running.values();
        if let Some(call) = running.find(|call| call.token.as_ref() == Some(token)) {
            call.caller.progress.send_modify(|progress| {
                (progress.done, progress.total, progress.message) = (Some(done), total, message);
            });
        }
    }

    /// True while the person is asked.
    pub(super) fn asks(&self) -> watch::Receiver<bool> {
        self.0.asks.subscribe()
    }

    /// Asks the person on behalf of the call that began last: a server does not say of which it asks.
    ///
    /// # Errors
    /// A sentence for the server; nobody was asked then.
    pub(super) async fn ask(&self, elicitation: Elicitation) -> Result<Reply, String> {
        let (_asking, caller, mut lives) = {
            let mut calls = self.lock();
            let last = calls.running.keys().max().copied();
            let call = last.and_then(|last| calls.running.get_mut(&last));
            let call = call.ok_or("the person is asked only while a tool of this server is called")?;
            if *self.0.asks.borrow() {
                return Err("the person is asked one thing at a time".to_owned());
            }
            if call.asked == MOST_ASKED {
                return Err(format!("the person is asked at most {MOST_ASKED} times in a call"));
            }
            call.asked += 1;
            (
                Asking::begin(self.clone(), call.caller.clone()),
                call.caller.clone(),
                call.lives.subscribe(),
            )
        };
        let Some(ask) = caller.ask.clone() else {
            return Ok(Reply::Decline);
        };
        tokio::select! {
            reply = ask(elicitation) => Ok(reply),
            _ = lives.changed() => Ok(Reply::Cancel),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // Only single insertions, removals and counts happen under this lock.
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered {
    /// Hears of progress by this name from now on.
    pub(super) fn listen(&self, token: ProgressToken) {
        if let Some(call) = self.calls.lock().running.get_mut(&self.number) {
            call.token = Some(token);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.calls.lock().running.remove(&self.number);
    }
}

/// Says that the person is asked, as long as it lives.
struct Asking {
    calls: RunningCalls,
    caller: Arc<Caller>,
}

impl Asking {
    fn begin(calls: RunningCalls, caller: Arc<Caller>) -> Self {
        calls.0.asks.send_replace(true);
        caller.progress.send_modify(|progress| progress.asks = true);
        Self { calls, caller }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.caller.progress.send_modify(|progress| progress.asks = false);
        self.calls.0.asks.send_replace(false);
    }
}
