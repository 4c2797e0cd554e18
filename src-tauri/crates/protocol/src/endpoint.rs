//! Other programs that answer, as settings and windows speak of them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Error, ThinkingControl};

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
