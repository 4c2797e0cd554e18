//! A server that runs: what it lists, and calls of its tools.

mod call;
mod call_error;
mod carrier;
mod changes;
mod connect;
mod handler;
mod limits;
mod lists;
mod running_calls;

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ServerResult};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RequestHandle, RunningService,
    ServiceError,
};
use rmcp::RoleClient;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::{failure_of_service, Challenge, Failure};
use crate::stdio::{ErrorLines, Guard, Launch, StartError};

pub use call_error::CallError;
pub use connect::Connection;
pub use handler::can_be_root;
pub use limits::Limits;
pub use running_calls::{Ask, Caller};

use carrier::Carrier;
use handler::Handler;
use running_calls::RunningCalls;

/// Lines of standard error that go with an error; its sentence has the last ones.
const SAID: usize = 400;

/// How long its guard may take to end a server: twice its own patience, and some.
const END: Duration = Duration::from_secs(8);

/// How long the rest of a standard error may take; a process that outlives its server may hold it open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a server may take to react to a cancellation, which is a wish.
const CANCEL: Duration = Duration::from_secs(2);

/// A server that runs.
pub struct Session {
    service: RunningService<RoleClient, Handler>,
    carrier: Carrier,
    limits: Limits,
    list_changes: watch::Receiver<u64>,
    calls: RunningCalls,
    roots: watch::Sender<Vec<PathBuf>>,
}

impl Session {
    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing of the server runs on then.
    pub async fn start(launch: &Launch, guard: &Guard, limits: Limits) -> Result<Self, StartError> {
        Self::start_with_roots(launch, guard, limits, Vec::new()).await
    }

    /// The same with folders that the person chose for it.
    ///
    /// # Errors
    /// [`StartError`]; nothing of the server runs on then.
    pub async fn start_with_roots(
        launch: &Launch,
        guard: &Guard,
        limits: Limits,
        roots: Vec<PathBuf>,
    ) -> Result<Self, StartError> {
        let mut child = launch.start(guard)?;
        let errors = ErrorLines::default();
        let reading = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(errors.clone().read(stderr)));
        let pipes = child.stdout.take().zip(child.stdin.take());
        let pipes = pipes.ok_or_else(|| StartError::System(std::io::ErrorKind::BrokenPipe.into()))?;
        let (listed, list_changes) = watch::channel(0);
        let (calls, roots) = (RunningCalls::default(), watch::Sender::new(roots));
        let handler = Handler {
            listed,
            calls: calls.clone(),
            roots: roots.subscribe(),
            log: errors.clone(),
            refused_sampling: AtomicBool::new(false),
        };
        // The newest protocol's probe would end a server that is slow to start.
        let serving = handler.serve_with_lifecycle(pipes, ClientLifecycleMode::Initialize);
        let begun = timeout(limits.start, serving).await;
        let service = match begun {
            Ok(Ok(service)) => service,
            failed => {
                // Its input is closed, so that the guard ends it; what it said last is read until then.
                let ended = timeout(END, child.wait()).await;
                tracing::debug!(?ended, "a server of tools did not become ready");
                if let Some(reading) = reading {
                    // The last words may still be in the pipe when the process is gone.
                    let read = timeout(LAST_WORDS, reading).await;
                    tracing::debug!(?read, "its standard error ended");
                }
                let said = errors.last(SAID);
                return Err(match failed {
                    Err(_) => StartError::Silent(limits.start, said),
                    Ok(Err(
                        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. },
                    )) => StartError::Ended(said),
                    Ok(Err(error)) => StartError::NoServer {
                        reason: error.to_string(),
                        lines: said,
                    },
                    Ok(Ok(_)) => StartError::Ended(said),
                });
            }
        };
        Ok(Self {
            service,
            carrier: Carrier::Program { guard: child, errors },
            limits,
            list_changes,
            calls,
            roots,
        })
    }

    /// The last lines of a program's standard error; of an address, the failures that came last.
    pub fn log(&self, count: usize) -> Vec<String> {
        self.carrier.log(count)
    }

    /// Changes each time the server says that its list changed.
    pub fn list_changes(&self) -> watch::Receiver<u64> {
        self.list_changes.clone()
    }

    /// Gives the server other folders, and tells it.
    pub async fn set_roots(&self, roots: Vec<PathBuf>) {
        let changed = self.roots.send_if_modified(|known| {
            let changed = *known != roots;
            *known = roots;
            changed
        });
        if changed {
            let told = self.service.peer().notify_roots_list_changed().await;
            tracing::debug!(?told, "a server of tools was told of other folders");
        }
    }

    /// Ends the server and everything that it started; of an address, the session with it.
    pub async fn close(self) {
        let Self {
            mut service, carrier, ..
        } = self;
        let closed = service.close_with_timeout(CANCEL).await;
        tracing::debug!(?closed, "a server of tools was told to end");
        drop(service);
        carrier.end(END).await;
    }

    /// Lets the server go: its guard ends it and everything that it started. A call that runs is lost.
    pub fn let_go(&self) {
        self.service.cancellation_token().cancel();
    }

    /// The demand of an address that refused whoever signed in, or that nobody did.
    pub fn refused_sign_in(&self) -> Option<Challenge> {
        self.carrier.demand(|failure| matches!(failure, Failure::SignIn(_)))
    }

    /// The demand of an address for a permission that was not given, which other calls do without.
    pub fn wanted_permission(&self) -> Option<Challenge> {
        self.carrier
            .demand(|failure| matches!(failure, Failure::MorePermissions(_)))
    }

    /// True if the server lets nothing through any more.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<RequestHandle<RoleClient>, ServiceError>> + '_ {
        // As it is, because what is read strictly loses everything to one odd field.
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        self.service
            .peer()
            .send_request_with_option(request, PeerRequestOptions::no_options())
    }

    fn failure(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => CallError::Refused(error.message.into_owned()),
            error => match failure_of_service(&error) {
                Some(failure) if failure.is_before_work() => CallError::NotDone(failure),
                Some(failure) => CallError::Lost(failure),
                None => self.carrier.lost(&error),
            },
        }
    }
}

fn value(answer: ServerResult) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}
