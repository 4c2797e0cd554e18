//! The configuration of a server, and its limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use api::ServerSettings;
use protocol::ImageDetail;

use crate::answer::allowed_documents::AllowedDocuments;
use crate::models::keep_alive::KeepAlive;

/// The default port.
pub const DEFAULT_PORT: u16 = ServerSettings::PORT;

/// The maximum number of waiting answers, in addition to the running ones.
pub const WAITING: usize = 32;

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address that it listens on. Any address but a loopback one needs a key.
    pub address: SocketAddr,
    /// The key that clients must send, if any.
    pub key: Option<String>,
    /// Origins of web pages that may send requests, such as `http://localhost:3000`.
    pub allow_origins: Vec<String>,
    /// More names of this server, such as that of a proxy in front of it, with or without a port.
    pub allow_hosts: Vec<String>,
    /// The model that serves unknown names; without one they are an error.
    pub fallback_model: Option<String>,
    /// The default keep-alive time of a model.
    pub keep_alive: KeepAlive,
    /// The default image detail.
    pub image_detail: ImageDetail,
    /// The documents that clients may search.
    pub documents: AllowedDocuments,
    /// Gives memory that the allocator keeps back to the system; called a while after a large request.
    pub trim_heap: Option<fn()>,
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
            documents: AllowedDocuments::default(),
            trim_heap: None,
            limits: Limits::default(),
        }
    }
}

/// Limits for clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a request's line and headers.
    pub header_bytes: usize,
    /// Time for the headers of a connection's first request.
    pub first_header_time: Duration,
    /// Time for a request's headers, and for the next request of a connection.
    pub header_time: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are being read and translated.
    pub all_body_bytes: usize,
    /// Time for a body, and for waiting until there is room for it.
    pub body_time: Duration,
    /// The time after a large request until memory is given back to the system, once for all that end meanwhile.
    pub trim_delay: Duration,
    /// Time for checking a JSON schema.
    pub schema_time: Duration,
    /// Connections with a request at once.
    pub connections: usize,
    /// Connections without one yet at once: of this computer, and as many of others. The oldest goes for the next.
    pub new_connections: usize,
    /// Connections of one other computer.
    pub connections_of_peer: usize,
    /// Connections that are kept for this computer.
    pub connections_of_loopback: usize,
    /// Running and waiting answers at once; more are refused with 429.
    pub answers: usize,
    /// The time that a client may read nothing.
    pub reader_patience: Duration,
    /// The interval of keep-alive comments and pings.
    pub ping: Duration,
    /// The interval of keep-alive events that clients count as progress.
    pub counted_ping: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 16 << 10,
            first_header_time: Duration::from_secs(5),
            // Clients close idle connections after 4 to 15 s; the server must not close first.
            header_time: Duration::from_secs(20),
            body_bytes: 32 << 20,
            all_body_bytes: 256 << 20,
            body_time: Duration::from_secs(30),
            trim_delay: Duration::from_secs(3),
            // Schemas of real clients take milliseconds.
            schema_time: Duration::from_secs(2),
            connections: 128,
            new_connections: 64,
            connections_of_peer: 16,
            connections_of_loopback: 16,
            // The engine's slots on a CPU, and its queue.
            answers: 4 + WAITING,
            reader_patience: Duration::from_secs(60),
            ping: Duration::from_secs(5),
            counted_ping: Duration::from_secs(60),
        }
    }
}
