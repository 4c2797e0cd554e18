//! The beginning of a session with a server behind an address.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::RoleClient;
use tokio::sync::watch;
use tokio::time::timeout;

use super::carrier::Carrier;
use super::changes;
use super::handler::Handler;
use super::limits::Limits;
use super::running_calls::RunningCalls;
use super::Session;
use crate::http::{ConnectError, Failure, HttpClient};
use crate::stdio::ErrorLines;

/// How often a stream of events that broke off is asked for again, after 1, 2, 4 and 8 seconds.
const RECONNECTIONS: usize = 4;

/// A server behind an address.
pub struct Connection {
    /// The address.
    pub address: String,
    /// The client that asks it.
    pub client: HttpClient,
    /// The folders that the person chose for it.
    pub roots: Vec<PathBuf>,
}

impl Session {
    /// Begins a session with a server behind an address and waits until it is ready.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing runs on then.
    pub async fn connect(connection: Connection, limits: Limits) -> Result<Self, ConnectError> {
        let Connection { address, client, roots } = connection;
        let (listed, list_changes) = watch::channel(0);
        let (calls, roots, notes) = (
            RunningCalls::default(),
            watch::Sender::new(roots),
            ErrorLines::default(),
        );
        // Only one of the ways to begin has the handler in the end.
        let handler = || Handler {
            listed: listed.clone(),
            calls: calls.clone(),
            roots: roots.subscribe(),
            log: notes.clone(),
            refused_sampling: AtomicBool::new(false),
        };
        let beginning = async {
            let error = match begin(handler(), &address, &client, both_protocols()).await {
                Ok(service) => return Ok(service),
                Err(error) => error,
            };
            // Servers before 2026-07-28 may break on a method that they do not know, or answer it with nothing.
            let answered_nothing = matches!(error, ClientInitializeError::ExpectedInitResult(_));
            let error = ConnectError::of(&error, client.last_failure());
            let broke = matches!(error, ConnectError::Failed(Failure::Status { status: 500.., .. }));
            if !answered_nothing && !broke {
                return Err(error);
            }
            let begun = begin(handler(), &address, &client, ClientLifecycleMode::Initialize).await;
            begun.map_err(|error| ConnectError::of(&error, client.last_failure()))
        };
        let begun = timeout(limits.start, beginning).await;
        let service = begun.map_err(|_| ConnectError::Silent(limits.start))??;
        if changes::are_told(service.peer()) {
            tokio::spawn(changes::hear(service.peer().clone(), listed.clone()));
        }
        Ok(Self {
            service,
            carrier: Carrier::Address { client, notes },
            limits,
            list_changes,
            calls,
            roots,
        })
    }
}

/// The newest protocol, and the one before it for servers that do not know it.
fn both_protocols() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

async fn begin(
    handler: Handler,
    address: &str,
    client: &HttpClient,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Handler>, ClientInitializeError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(address);
    let mut patience = ExponentialBackoff::default();
    patience.max_times = Some(RECONNECTIONS);
    config.retry_config = Arc::new(patience);
    let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
    handler.serve_with_lifecycle(transport, lifecycle).await
}
