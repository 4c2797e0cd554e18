//! The local server: models of this computer behind OpenAI's and Anthropic's HTTP interfaces, for editors, agents and scripts.
//!
//! It knows an [`Engine`] and a [`ModelShelf`], nothing of chats. Each surface is translated in files of its own without a socket:
//! a request to [`protocol::Request`], what the engine says to wire events. Contents are never logged.

mod answer_format;
mod anthropic;
mod broken_call;
mod call;
mod catalogue;
mod client_setups;
mod clients;
mod connection;
mod conversation;
mod error;
mod exchange;
mod field_log;
mod fields;
mod guard;
mod ids;
mod images;
mod json_body;
mod listener;
mod metrics;
mod openai;
mod openapi;
mod port_holder;
mod refusal;
mod reply;
mod reply_event;
mod responses_store;
mod routes;
mod sampling;
mod state;
mod switch;
mod tools;
mod unloading;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::{Engine, ImageDetail, InboundClient, ModelShelf, ServerFigures, ServerSettings};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use catalogue::{served_models, ServedModel};
pub use client_setups::client_setups;
pub use error::{Error, Result};
pub use switch::{new_key, ServerSwitch};
pub use unloading::KeepAlive;

use catalogue::Catalogue;
use clients::Clients;
use exchange::Clock;
use guard::Guard;
use json_body::BodyLimits;
use metrics::Metrics;
use responses_store::ResponsesStore;
use state::State;
use unloading::Unloading;

/// The port that is listened on unless another one is chosen.
pub const DEFAULT_PORT: u16 = ServerSettings::PORT;

/// How many answers may wait for their turn, beside those that are made.
pub const WAITING: usize = 32;

/// How many JSON schemas are checked at once.
const SCHEMAS_AT_ONCE: usize = 2;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where it listens. Any address but one of this computer's own needs a key.
    pub address: SocketAddr,
    /// What clients must send, if anything.
    pub key: Option<String>,
    /// Web pages that may ask, such as `http://localhost:3000`.
    pub allow_origins: Vec<String>,
    /// More names of this server, such as that of a proxy in front of it, with or without a port.
    pub allow_hosts: Vec<String>,
    /// The model that answers to names that nobody here has; without one they are an error.
    pub fallback_model: Option<String>,
    /// How long a model that was asked stays loaded, unless a request says otherwise.
    pub keep_alive: KeepAlive,
    /// How closely pictures are looked at if a request does not say.
    pub image_detail: ImageDetail,
    /// Limits.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            key: None,
            allow_origins: Vec::new(),
            allow_hosts: Vec::new(),
            fallback_model: None,
            keep_alive: KeepAlive::default(),
            image_detail: ImageDetail::default(),
            limits: Limits::default(),
        }
    }
}

/// What a client may take, and how long it is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a request's line and headers.
    pub header_bytes: usize,
    /// Time for a request's headers, and for the next request of a connection.
    pub header_time: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Time for a body.
    pub body_time: Duration,
    /// Time for checking a JSON schema.
    pub schema_time: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Answers that may be made or waited for at once; more are told to come back later.
    pub answers: usize,
    /// How long a reader may take nothing.
    pub reader_patience: Duration,
    /// How often a client that waits hears that it does.
    pub ping: Duration,
    /// How often it hears so in a form that it takes for progress.
    pub counted_ping: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 16 << 10,
            // Clients close idle connections after 4 to 15 s; who closes first must not be us.
            header_time: Duration::from_secs(20),
            body_bytes: 32 << 20,
            body_time: Duration::from_secs(30),
            // Those of real clients take milliseconds.
            schema_time: Duration::from_secs(2),
            connections: 128,
            // As many as the engine makes at once on a CPU, and as it lets wait.
            answers: 4 + WAITING,
            reader_patience: Duration::from_secs(60),
            ping: Duration::from_secs(5),
            counted_ping: Duration::from_secs(60),
        }
    }
}

/// A running server. It stops when this is dropped.
pub struct Server {
    state: Arc<State>,
    listening: JoinHandle<()>,
}

impl Server {
    /// Starts to listen. Called within a tokio runtime, which answers from then on.
    ///
    /// # Errors
    /// If the address is taken, cannot be listened on, or needs a key.
    pub async fn start(config: ServerConfig, engine: Arc<dyn Engine>, models: Arc<dyn ModelShelf>) -> Result<Self> {
        let key = config.key.filter(|key| !key.is_empty());
        if key.is_none() && !config.address.ip().is_loopback() {
            return Err(Error::NeedsKey(config.address));
        }
        let listener = TcpListener::bind(config.address).await.map_err(|reason| match reason.kind() {
            ErrorKind::AddrInUse => Error::PortTaken {
                address: config.address,
                by: port_holder::of(config.address.port()),
            },
            _ => Error::Address {
                address: config.address,
                reason,
            },
        })?;
        // Port 0 has become another one.
        let address = listener.local_addr().unwrap_or(config.address);
        let (limits, stop) = (config.limits, CancellationToken::new());
        let state = Arc::new(State {
            engine,
            catalogue: Catalogue::new(models, config.fallback_model),
            guard: Guard::new(address, config.allow_hosts, config.allow_origins, key.as_deref()),
            clients: Clients::default(),
            metrics: Metrics::new(),
            responses: ResponsesStore::default(),
            clock: Clock {
                ping: limits.ping,
                counted: limits.counted_ping,
            },
            most_answers: limits.answers,
            body: BodyLimits {
                bytes: limits.body_bytes,
                time: limits.body_time,
            },
            schemas: Arc::new(Semaphore::new(SCHEMAS_AT_ONCE)),
            schema_time: limits.schema_time,
            unloading: Unloading::new(config.keep_alive),
            image_detail: Mutex::new(config.image_detail),
            address,
            stop,
        });
        let router = routes::router(state.clone());
        tokio::spawn(unloading::unload_idle_models(state.clone()));
        let listening = tokio::spawn(listener::listen(listener, state.clone(), router, limits));
        Ok(Self { state, listening })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// The programs that have asked since it started, the last one that asked first.
    pub fn clients(&self) -> Vec<InboundClient> {
        self.state.clients.list()
    }

    /// What it does at the moment.
    pub fn figures(&self) -> ServerFigures {
        self.state.metrics.figures()
    }

    /// Stops to listen, ends the answers that run with an error of their surface, and waits until the port is free and the
    /// connections are closed, about a second at most.
    pub async fn stop(mut self) {
        self.state.stop.cancel();
        // It ends by itself and does not panic.
        let _ = (&mut self.listening).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stop.cancel();
    }
}
