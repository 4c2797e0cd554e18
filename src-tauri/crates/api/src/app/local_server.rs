//! The server that answers other programs of this computer, as the windows show it.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::models::KeySource;

/// How the server is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(export)]
pub struct ServerSettings {
    /// Whether it answers.
    pub on: bool,
    /// The port that it listens on.
    pub port: u16,
    /// Whether other computers of the network may ask, too; only with a key.
    pub network: bool,
    /// When the key was made that clients must send, in milliseconds since 1970; the key itself lies in the keychain. `None`: there
    /// is none. So another key is another setting, and every process hears of it.
    #[ts(type = "number | null")]
    pub key_made_at: Option<i64>,
}

impl ServerSettings {
    /// The port unless another one is chosen.
    pub const PORT: u16 = 8231;
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            on: false,
            port: Self::PORT,
            network: false,
            key_made_at: None,
        }
    }
}

/// A program that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PortHolder {
    /// What the system calls it.
    pub name: String,
    /// The id of its process.
    pub process: u32,
}

/// Whether the server answers, and why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ServerState {
    /// It is switched off.
    Off,
    /// It is being started; a keychain may wait for a person.
    Starting,
    /// It answers.
    On,
    /// Another program listens on its port.
    PortTaken {
        /// Which, if that is known.
        by: Option<PortHolder>,
    },
    /// Other computers could ask, or a key is set, and there is none in the keychain.
    KeyNeeded,
    /// It could not be started.
    Failed {
        /// Why.
        error: Error,
    },
}

/// The server at this moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerStatus {
    /// How it is set.
    pub settings: ServerSettings,
    /// Whether it answers.
    pub state: ServerState,
    /// Its address without a path, such as `http://127.0.0.1:8231`.
    pub address: String,
    /// The same for other computers; `None` if they may not ask, or this computer's address is not known.
    pub network_address: Option<String>,
    /// Where the key comes from that clients must send.
    pub key: KeySource,
    /// What it does.
    pub figures: ServerFigures,
    /// The programs that have asked since it started, the last one that asked first.
    pub clients: Vec<InboundClient>,
}

/// What the server does at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerFigures {
    /// Requests that are being answered.
    pub in_flight: usize,
    /// Open connections.
    pub connections: usize,
    /// Tokens written per second, over the last ten seconds.
    pub tokens_per_second: f64,
    /// Requests since the start.
    #[ts(type = "number")]
    pub requests: u64,
}

/// A program that has asked since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct InboundClient {
    /// What it calls itself.
    pub name: String,
    /// How often it has asked for something.
    #[ts(type = "number")]
    pub requests: u64,
    /// Tokens that it sent.
    #[ts(type = "number")]
    pub prompt_tokens: u64,
    /// Tokens that it was sent.
    #[ts(type = "number")]
    pub completion_tokens: u64,
    /// When it last asked, in milliseconds since 1970.
    #[ts(type = "number")]
    pub last_seen_at: i64,
}

/// How another program is told to ask this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ClientSetup {
    /// The program, such as `Claude Code`.
    pub name: String,
    /// The file that the text belongs into; `None`: a terminal, or a program of one's own.
    pub file: Option<String>,
    /// The language of the text, as highlighters call it.
    pub language: String,
    /// What is to be copied.
    pub text: String,
}
