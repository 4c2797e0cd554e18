//! Other programs that answer, as settings and windows speak of them.

use protocol::{Error, ThinkingControl};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An OpenAI-compatible server whose models may be asked. Its key itself lies in the keychain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Endpoint {
    /// How it is called: a word without a slash, unique among endpoints. Its models are called `endpoint:NAME/MODEL`.
    pub name: String,
    /// What `/chat/completions` and `/models` are appended to, such as `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// Whether the keychain holds a key for it.
    #[serde(default)]
    pub has_key: bool,
}

/// What an endpoint's address means for what is sent there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointAddress {
    /// The address as it is used: `/v1` is added to one without a path.
    pub base_url: String,
    /// Whether what is sent there leaves this computer.
    pub leaves_computer: bool,
    /// Whether it leaves this computer by plain `http`, so that whoever is on the way can read it, the key included.
    pub unencrypted: bool,
}

/// An endpoint as a window shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointInfo {
    /// How it is called.
    pub name: String,
    /// Where it is.
    pub address: EndpointAddress,
    /// Where the key comes from that is sent to it. The key itself never reaches a window.
    pub key: KeySource,
}

/// Where an endpoint's key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum KeySource {
    /// There is none.
    None,
    /// The system's keychain.
    Keychain,
    /// `PONDER_KEY_<NAME>`, which goes before the keychain.
    Environment,
}

/// A model that an endpoint serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteModel {
    /// How chats and the command line call it: `endpoint:ENDPOINT/NAME`.
    pub reference: String,
    /// The endpoint's name.
    pub endpoint: String,
    /// How the endpoint calls it.
    pub name: String,
    /// Tokens its context holds; `None` if the endpoint does not tell.
    pub context: Option<u32>,
    /// What can be done about its reasoning, as far as is known.
    pub thinking: ThinkingControl,
    /// Whether what is said to it is sent to another computer.
    pub leaves_computer: bool,
}

/// An endpoint with the models that it lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EndpointModels {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Whether what is said to its models is sent to another computer.
    pub leaves_computer: bool,
    /// Its models; none if it did not answer.
    pub models: Vec<RemoteModel>,
    /// Why it did not answer.
    pub problem: Option<Error>,
}
