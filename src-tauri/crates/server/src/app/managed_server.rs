//! A server that its host starts, stops and reconfigures while the app runs.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{KeySource, ModelShelf, ServerSettings, ServerState, ServerStatus};
use protocol::{DocumentSearch, Engine, ImageDetail};
use tokio::sync::Mutex as AsyncMutex;

use crate::answer::allowed_documents::AllowedDocuments;
use crate::config::ServerConfig;
use crate::error::{Error, Result};
use crate::server::Server;
use crate::state::State;

/// A server that is off at first.
pub struct ServerSwitch {
    engine: Arc<dyn Engine>,
    models: Arc<dyn ModelShelf>,
    /// As [`ServerConfig::trim_heap`].
    trim_heap: Option<fn()>,
    /// The documents; which of them clients may search is in the settings.
    documents: AllowedDocuments,
    /// The running server and its settings. Locked during a start or stop, so that two changes do not interleave.
    running: AsyncMutex<Option<(ServerSettings, Server)>>,
    snapshot: Mutex<Snapshot>,
}

/// The status, readable while a server is being started.
struct Snapshot {
    settings: ServerSettings,
    image_detail: ImageDetail,
    state: ServerState,
    live: Option<Arc<State>>,
}

impl ServerSwitch {
    /// A stopped server; it will use this engine and only these models, and give memory back by this function. Clients
    /// may search those of the documents that the settings allow.
    pub fn new(
        engine: Arc<dyn Engine>,
        models: Arc<dyn ModelShelf>,
        trim_heap: Option<fn()>,
        documents: Arc<dyn DocumentSearch>,
    ) -> Self {
        let snapshot = Snapshot {
            settings: ServerSettings::default(),
            image_detail: ImageDetail::default(),
            state: ServerState::Off,
            live: None,
        };
        Self {
            engine,
            models,
            trim_heap,
            documents: AllowedDocuments::new(documents, Vec::new()),
            running: AsyncMutex::default(),
            snapshot: Mutex::new(snapshot),
        }
    }

    /// Applies the settings: starts, stops or restarts the server if they differ. A stop ends running answers with an
    /// error. `key` is the key that clients must send; it is awaited only for a start. Called within a tokio runtime,
    /// which serves from then on.
    pub async fn set(&self, settings: &ServerSettings, key: impl Future<Output = protocol::Result<Option<String>>>) {
        let mut running = self.running.lock().await;
        self.documents.allow(&settings.collections);
        if let Some((before, _)) = running.as_mut().filter(|(before, _)| is_same_server(before, settings)) {
            before.clone_from(settings);
            self.snapshot().settings.clone_from(settings);
            return;
        }
        if let Some((_, server)) = running.take() {
            self.snapshot().live = None;
            server.stop().await;
        }
        if !settings.on {
            self.show(settings, ServerState::Off);
            return;
        }
        self.show(settings, ServerState::Starting);
        let state = match key.await {
            Err(error) => ServerState::Failed { error },
            Ok(None) if settings.network || settings.key_made_at.is_some() => ServerState::KeyNeeded,
            Ok(key) => match self.start(settings, key).await {
                Ok(server) => {
                    self.snapshot().live = Some(server.state.clone());
                    *running = Some((settings.clone(), server));
                    ServerState::On
                }
                Err(Error::PortTaken { by, .. }) => ServerState::PortTaken { by },
                Err(Error::NeedsKey(_)) => ServerState::KeyNeeded,
                Err(error) => ServerState::Failed { error: error.into() },
            },
        };
        self.show(settings, state);
    }

    /// Sets the default image detail from the next request on.
    pub fn set_image_detail(&self, detail: ImageDetail) {
        let mut snapshot = self.snapshot();
        snapshot.image_detail = detail;
        if let Some(live) = &snapshot.live {
            live.set_image_detail(detail);
        }
    }

    async fn start(&self, settings: &ServerSettings, key: Option<String>) -> Result<Server> {
        let config = ServerConfig {
            address: address(settings),
            key,
            image_detail: self.snapshot().image_detail,
            trim_heap: self.trim_heap,
            documents: self.documents.clone(),
            ..ServerConfig::default()
        };
        Server::start(config, self.engine.clone(), self.models.clone()).await
    }

    /// Stops it regardless of the settings, as at the end of the app.
    pub async fn stop(&self) {
        let stopped = self.running.lock().await.take();
        if let Some((settings, server)) = stopped {
            self.show(&settings, ServerState::Off);
            server.stop().await;
        }
    }

    /// The settings, state and clients. The host knows the source of the key.
    pub fn status(&self, key: KeySource) -> ServerStatus {
        let snapshot = self.snapshot();
        let live = snapshot.live.as_ref();
        let (settings, port) = (snapshot.settings.clone(), snapshot.settings.port);
        ServerStatus {
            address: format!("http://127.0.0.1:{port}"),
            network_address: own_address()
                .filter(|_| settings.network)
                .map(|ip| format!("http://{ip}:{port}")),
            state: snapshot.state.clone(),
            key,
            figures: live.map(|live| live.metrics.figures()).unwrap_or_default(),
            clients: live.map(|live| live.clients.list()).unwrap_or_default(),
            settings,
        }
    }

    fn show(&self, settings: &ServerSettings, state: ServerState) {
        let mut snapshot = self.snapshot();
        if state != ServerState::On {
            snapshot.live = None;
        }
        (snapshot.settings, snapshot.state) = (settings.clone(), state);
    }

    fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        // Its fields are replaced at once, so a poisoned one is still right.
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a server with one of these settings need not start again for the other: collections are allowed while it
/// runs.
fn is_same_server(one: &ServerSettings, other: &ServerSettings) -> bool {
    let without = |settings: &ServerSettings| ServerSettings {
        collections: Vec::new(),
        ..settings.clone()
    };
    without(one) == without(other)
}

/// A random key of 128 bits.
///
/// # Errors
/// If the system has no randomness.
pub fn new_key() -> protocol::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("no key was made, because the system gives no random numbers: {error}");
        protocol::Error::new(protocol::ErrorCode::Storage, message)
    })?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("ponder-{digits}"))
}

fn address(settings: &ServerSettings) -> SocketAddr {
    let ip = match settings.network {
        true => Ipv4Addr::UNSPECIFIED,
        false => Ipv4Addr::LOCALHOST,
    };
    SocketAddr::new(ip.into(), settings.port)
}

/// This computer's address in its network.
fn own_address() -> Option<IpAddr> {
    /// An address reserved for documentation: nothing is sent to it, it only makes the system choose a source address.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_could_stand_in_a_header() {
        let (one, other) = (new_key().unwrap(), new_key().unwrap());
        assert!(
            one != other && one.len() == 39 && one.bytes().all(|byte| byte.is_ascii_graphic()),
            "{one}"
        );
    }
}
