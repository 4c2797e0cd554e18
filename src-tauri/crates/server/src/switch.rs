//! A server that its host switches on and off, sets up otherwise and looks at, while it runs.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{Engine, ImageDetail, KeySource, ModelShelf, ServerSettings, ServerState, ServerStatus};
use tokio::sync::Mutex as AsyncMutex;

use crate::state::State;
use crate::{Error, Server, ServerConfig};

/// A server that is off at first.
pub struct ServerSwitch {
    engine: Arc<dyn Engine>,
    models: Arc<dyn ModelShelf>,
    /// The server that runs, and how it is set. Held while it is started or stopped, so that two changes do not cross.
    running: AsyncMutex<Option<(ServerSettings, Server)>>,
    snapshot: Mutex<Snapshot>,
}

/// What is looked at, also while a server is being started.
struct Snapshot {
    settings: ServerSettings,
    image_detail: ImageDetail,
    state: ServerState,
    live: Option<Arc<State>>,
}

impl ServerSwitch {
    /// Switched off; it will answer with this engine, and with these models alone.
    pub fn new(engine: Arc<dyn Engine>, models: Arc<dyn ModelShelf>) -> Self {
        let snapshot = Snapshot {
            settings: ServerSettings::default(),
            image_detail: ImageDetail::default(),
            state: ServerState::Off,
            live: None,
        };
        Self {
            engine,
            models,
            running: AsyncMutex::default(),
            snapshot: Mutex::new(snapshot),
        }
    }

    /// Sets it up like this: starts it, stops it, or starts it anew if it differs. Answers that run when it is stopped end with an
    /// error. `key` gives the key that clients must send; it is waited for only if the server has to be started. Called within a
    /// tokio runtime, which answers from then on.
    pub async fn set(&self, settings: &ServerSettings, key: impl Future<Output = protocol::Result<Option<String>>>) {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(|(before, _)| before == settings) {
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

    /// How closely pictures are looked at from the next request on, if it does not say.
    pub fn set_image_detail(&self, detail: ImageDetail) {
        let mut snapshot = self.snapshot();
        snapshot.image_detail = detail;
        if let Some(live) = &snapshot.live {
            live.set_image_detail(detail);
        }
    }

    async fn start(&self, settings: &ServerSettings, key: Option<String>) -> crate::Result<Server> {
        let config = ServerConfig {
            address: address(settings),
            key,
            image_detail: self.snapshot().image_detail,
            ..ServerConfig::default()
        };
        Server::start(config, self.engine.clone(), self.models.clone()).await
    }

    /// Stops it, whatever is set, as at the end of the app.
    pub async fn stop(&self) {
        let stopped = self.running.lock().await.take();
        if let Some((settings, server)) = stopped {
            self.show(&settings, ServerState::Off);
            server.stop().await;
        }
    }

    /// How it is set, whether it answers, and whom. The host knows where the key comes from.
    pub fn status(&self, key: KeySource) -> ServerStatus {
        let snapshot = self.snapshot();
        let live = snapshot.live.as_ref();
        let (settings, port) = (snapshot.settings.clone(), snapshot.settings.port);
        ServerStatus {
            address: format!("http://127.0.0.1:{port}"),
            network_address: own_address().filter(|_| settings.network).map(|ip| format!("http://{ip}:{port}")),
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
        // Its fields are replaced whole, so a poisoned one is still right.
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that nobody guesses: 128 bits of the system's randomness.
///
/// # Errors
/// If the system gives none.
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
    let ip = if settings.network {
        Ipv4Addr::UNSPECIFIED
    } else {
        Ipv4Addr::LOCALHOST
    };
    SocketAddr::new(ip.into(), settings.port)
}

/// The address of this computer in its network.
fn own_address() -> Option<IpAddr> {
    /// An address that is kept for examples: nothing is sent to it, it only makes the system choose where it would be sent from.
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
