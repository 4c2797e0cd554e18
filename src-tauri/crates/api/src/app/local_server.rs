//! The server that answers other programs, as the windows show it.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::models::KeySource;

/// The settings of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(export)]
pub struct ServerSettings {
    /// True if the server is switched on.
    pub on: bool,
    /// The port that it listens on.
    pub port: u16,
    /// True if other computers on the network may connect; this requires a key.
    pub network: bool,
    /// The time at which the clients' key was created, in milliseconds since 1970; the key itself is in the keychain.
    /// `None` if there is none. A new key thereby changes the settings, and every process notices.
    #[ts(type = "number | null")]
    pub key_made_at: Option<i64>,
    /// The ids of the collections of documents that programs may search; none at first.
    pub collections: Vec<String>,
}

impl ServerSettings {
    /// The default port.
    pub const PORT: u16 = 8231;
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            on: false,
            port: Self::PORT,
            network: false,
            key_made_at: None,
            collections: Vec::new(),
        }
    }
}

/// A program that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PortHolder {
    /// Its name, as the system reports it.
    pub name: String,
    /// Its process id.
    pub process: u32,
}

/// The state of the server, with the reason if it does not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ServerState {
    /// It is switched off.
    Off,
    /// It is starting; a keychain may be waiting for the user.
    Starting,
    /// It answers.
    On,
    /// Another program listens on its port.
    PortTaken {
        /// The program, if it is known.
        by: Option<PortHolder>,
    },
    /// Other computers could connect, or a key is set, but the keychain holds none.
    KeyNeeded,
    /// It could not be started.
    Failed {
        /// The reason.
        error: Error,
    },
}

/// The server at this moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerStatus {
    /// Its settings.
    pub settings: ServerSettings,
    /// Its state.
    pub state: ServerState,
    /// Its address without a path, such as `http://127.0.0.1:8231`.
    pub address: String,
    /// The address for other computers; `None` if they may not connect, or if this computer's address is not known.
    pub network_address: Option<String>,
    /// The source of the clients' key.
    pub key: KeySource,
    /// Its load and its counters.
    pub figures: ServerFigures,
    /// The programs that have sent requests since the start, the most recent first.
    pub clients: Vec<InboundClient>,
}

/// The load and the counters of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerFigures {
    /// Requests in progress.
    pub in_flight: usize,
    /// Open connections.
    pub connections: usize,
    /// Tokens written per second, over the last ten seconds.
    pub tokens_per_second: f64,
    /// Requests since the start.
    #[ts(type = "number")]
    pub requests: u64,
}

/// A program that has sent requests since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct InboundClient {
    /// Its name, as it calls itself.
    pub name: String,
    /// The number of its requests.
    #[ts(type = "number")]
    pub requests: u64,
    /// Prompt tokens that it sent.
    #[ts(type = "number")]
    pub prompt_tokens: u64,
    /// Completion tokens that it received.
    #[ts(type = "number")]
    pub completion_tokens: u64,
    /// The time of its last request, in milliseconds since 1970.
    #[ts(type = "number")]
    pub last_seen_at: i64,
}

/// The instructions that connect another program to this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ClientSetup {
    /// The program, such as `Claude Code`.
    pub name: String,
    /// The file that the text belongs in; `None` for a terminal or the user's own program.
    pub file: Option<String>,
    /// The language of the text, as syntax highlighters call it.
    pub language: String,
    /// The text to copy.
    pub text: String,
}
