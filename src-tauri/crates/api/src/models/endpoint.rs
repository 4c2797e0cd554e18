//! Endpoints: other programs that answer, as settings and windows show them.

use protocol::{Error, ThinkingControl};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An OpenAI-compatible server. Its key is in the keychain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Endpoint {
    /// Its name: a word without a slash, unique among endpoints. Its models are called `endpoint:NAME/MODEL`.
    pub name: String,
    /// The prefix of `/chat/completions` and `/models`, such as `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// True if the keychain holds a key for it.
    #[serde(default)]
    pub has_key: bool,
    /// True if the user allowed that its key is sent unencrypted to another computer.
    #[serde(default)]
    pub unencrypted_key: bool,
    /// True if the user allowed that it is sent passages of their own chats and notes about them.
    #[serde(default)]
    pub personal: bool,
}

/// An endpoint's address and its consequences for privacy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointAddress {
    /// The address in use: `/v1` is added to one without a path.
    pub base_url: String,
    /// True if requests leave this computer.
    pub leaves_computer: bool,
    /// True if they leave it over plain `http`, where anyone on the way can read them.
    pub unencrypted: bool,
}

/// An endpoint as a window shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointInfo {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: EndpointAddress,
    /// The source of its key. The key itself never reaches a window.
    pub key: KeySource,
    /// True if it has a key that is not sent, because that would be unencrypted and the user did not allow it.
    pub key_held_back: bool,
    /// True if the user allowed that it is sent passages of their own chats and notes about them.
    pub personal: bool,
}

/// The source of an endpoint's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum KeySource {
    /// There is none.
    None,
    /// The system's keychain.
    Keychain,
    /// `PONDER_KEY_<NAME>`, which takes precedence over the keychain.
    Environment,
}

/// A model that an endpoint serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteModel {
    /// Its name in chats and on the command line: `endpoint:ENDPOINT/NAME`.
    pub reference: String,
    /// The endpoint's name.
    pub endpoint: String,
    /// Its name at the endpoint.
    pub name: String,
    /// The size of its context in tokens; `None` if the endpoint does not report it.
    pub context: Option<u32>,
    /// Its reasoning controls, as far as they are known.
    pub thinking: ThinkingControl,
    /// True if requests to it leave this computer.
    pub leaves_computer: bool,
}

/// An endpoint with the models that it lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointModels {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// True if requests to its models leave this computer.
    pub leaves_computer: bool,
    /// Its models; none if it did not answer.
    pub models: Vec<RemoteModel>,
    /// The reason why it did not answer.
    pub problem: Option<Error>,
}
