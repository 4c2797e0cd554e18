//! A running server: it binds its port, listens, and stops.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use api::{InboundClient, ModelShelf, ServerFigures};
use protocol::Engine;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::answer::responses_store::ResponsesStore;
use crate::config::{Limits, ServerConfig};
use crate::error::{Error, Result};
use crate::figures::clients::Clients;
use crate::figures::metrics::Metrics;
use crate::http::auth::Guard;
use crate::http::connections::{Connections, Places};
use crate::http::heap_trim::HeapTrim;
use crate::http::json_body::Bodies;
use crate::http::port_holder;
use crate::models::served::ServedModels;
use crate::routes;
use crate::routes::listener;
use crate::state::State;

/// The maximum number of JSON schemas checked at once.
const SCHEMAS_AT_ONCE: usize = 2;

/// The maximum number of prompts whose tokens are counted at once, each on a thread of the engine.
const COUNTS_AT_ONCE: usize = 2;

/// A running server. It stops when this is dropped.
pub struct Server {
    pub(crate) state: Arc<State>,
    listening: JoinHandle<()>,
}

impl Server {
    /// Starts listening. Called within a tokio runtime, which serves from then on.
    ///
    /// # Errors
    /// If the address is taken, cannot be listened on, or needs a key.
    pub async fn start(config: ServerConfig, engine: Arc<dyn Engine>, models: Arc<dyn ModelShelf>) -> Result<Self> {
        let key = config.key.filter(|key| !key.is_empty());
        if key.is_none() && !config.address.ip().is_loopback() {
            return Err(Error::NeedsKey(config.address));
        }
        let listener =
            TcpListener::bind(config.address)
                .await
                .map_err(|reason| match (reason.kind(), config.address) {
                    (ErrorKind::AddrInUse, address) => Error::PortTaken {
                        address,
                        by: port_holder::of(address.port()),
                    },
                    (_, address) => Error::Address { address, reason },
                })?;
        // Port 0 was replaced by a free one.
        let address = listener.local_addr().unwrap_or(config.address);
        let limits = config.limits;
        let state = Arc::new(State {
            engine,
            served_models: ServedModels::new(models, config.fallback_model),
            guard: Guard::new(address, config.allow_hosts, config.allow_origins, key.as_deref()),
            connections: Connections::new(places(&limits)),
            clients: Clients::default(),
            metrics: Metrics::new(),
            responses: ResponsesStore::default(),
            limits,
            bodies: Bodies::new(limits.body_bytes, limits.body_time, limits.all_body_bytes),
            heap_trim: HeapTrim::new(config.trim_heap, limits.trim_delay),
            schemas: Arc::new(Semaphore::new(SCHEMAS_AT_ONCE)),
            counts: Arc::new(Semaphore::new(COUNTS_AT_ONCE)),
            keep_alive: config.keep_alive,
            image_detail: Mutex::new(config.image_detail),
            documents: config.documents,
            address,
            stop: CancellationToken::new(),
        });
        let router = routes::router(state.clone());
        let listening = tokio::spawn(listener::listen(listener, state.clone(), router));
        Ok(Self { state, listening })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// The programs that sent requests since its start, the most recent one first.
    pub fn clients(&self) -> Vec<InboundClient> {
        self.state.clients.list()
    }

    /// The current figures.
    pub fn figures(&self) -> ServerFigures {
        self.state.metrics.figures()
    }

    /// Stops listening, ends the running answers with an error of their surface, and waits until the port is free and
    /// the connections are closed, about a second at most.
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

fn places(limits: &Limits) -> Places {
    Places {
        all: limits.connections,
        new: limits.new_connections,
        of_peer: limits.connections_of_peer,
        kept_for_loopback: limits.connections_of_loopback,
    }
}
