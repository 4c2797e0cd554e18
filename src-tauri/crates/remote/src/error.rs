//! Errors of endpoints.

use std::time::Duration;

use protocol::{ErrorCode, Reason};

/// An error of an endpoint. It becomes a [`protocol::Error`] when it leaves this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no endpoint of this name.
    #[error("there is no endpoint called {0}; add it, or choose another model")]
    NoEndpoint(String),
    /// A name that cannot be used.
    #[error(
        "`{0}` cannot be the name of an endpoint: it is a word of letters, digits, `-`, `_` and `.`, at most 40 long"
    )]
    BadName(String),
    /// A base URL that cannot be used.
    #[error("`{0}` is not the address of an endpoint; it looks like http://127.0.0.1:8080/v1, without a password or a question mark")]
    BadUrl(String),
    /// A name that another endpoint has.
    #[error("there is an endpoint called {0} already; remove it first")]
    NameTaken(String),
    /// The model is in a folder of this computer.
    #[error("{0} is a model of this computer, and no endpoint has it")]
    NotRemote(String),
    /// A request that no endpoint supports.
    #[error("a model behind an endpoint cannot {0}")]
    NotSupported(&'static str),
    /// The endpoint does not know the model.
    #[error("the endpoint {endpoint} has no model `{model}`; look at the list of its models, or at its address")]
    NoModel {
        /// The endpoint.
        endpoint: String,
        /// The model.
        model: String,
    },
    /// 401 or 403.
    #[error("the endpoint {endpoint} {}", if *with_key { "did not accept its key; store the right one" } else { "asks for a key; store one with it" })]
    KeyRefused {
        /// The endpoint.
        endpoint: String,
        /// True if a key was sent.
        with_key: bool,
    },
    /// The key would go over plain `http` to another computer.
    #[error("the endpoint {0} is not encrypted, so anyone on the network path could read its key, and nothing was sent; use https or a tunnel, or allow it: in Settings with the key, on the command line with `--unencrypted-key`")]
    KeyUnencrypted(String),
    /// 429.
    #[error("the endpoint {endpoint} asks us to wait{}; nothing is lost, try again later", wait(*retry_after))]
    TooManyRequests {
        /// The endpoint.
        endpoint: String,
        /// How long, if it says so.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model's context.
    #[error("the endpoint {endpoint} says that the conversation is too long: {message}")]
    ContextFull {
        /// The endpoint.
        endpoint: String,
        /// Its words.
        message: String,
    },
    /// Another refusal of what was asked.
    #[error("the endpoint {endpoint} refused the request (status {status}): {message}")]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The model does not take images.
    #[error("{model} cannot be shown images, says the endpoint {endpoint}: {message}; choose a model that sees, or remove the image")]
    ImagesUnsupported {
        /// The endpoint.
        endpoint: String,
        /// The model.
        model: String,
        /// Its words.
        message: String,
    },
    /// An image that cannot be sent.
    #[error("an image could not be made into a file that endpoints take: {0}")]
    Image(media::Error),
    /// 5xx, or an error in the middle of an answer.
    #[error("the endpoint {endpoint} failed: {message}; what was shown so far is kept, please try again")]
    Failed {
        /// The endpoint.
        endpoint: String,
        /// Its words.
        message: String,
    },
    /// The answer ended without its end.
    #[error("the endpoint {0} broke off in the middle of the answer; what was shown so far is kept, please try again")]
    BrokeOff(String),
    /// The response is no answer.
    #[error(
        "the endpoint {endpoint} does not answer as an OpenAI-compatible server does ({reason}); check its address"
    )]
    Unreadable {
        /// The endpoint.
        endpoint: String,
        /// The reason.
        reason: String,
    },
    /// The keychain does not answer.
    #[error("this computer's keychain cannot be used ({reason}); the key can also be given in the environment variable {variable}, before Ponder is started")]
    Keychain {
        /// The environment variable that may hold the key instead.
        variable: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// The network or the offline switch.
    #[error(transparent)]
    Net(#[from] net::Error),
}

/// A result of an endpoint.
pub type Result<T> = std::result::Result<T, Error>;

fn wait(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(" {} seconds", wait.as_secs().max(1)))
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        let because = |reason| Self::because(reason, &text);
        let coded = |code| Self::new(code, &text);
        match error {
            Error::Net(error) => error.into(),
            Error::NoEndpoint(name) => because(Reason::EndpointMissing).with("name", name),
            Error::NotRemote(model) => coded(ErrorCode::ModelNotFound).with("model", model),
            Error::NoModel { endpoint, model } => because(Reason::EndpointModelMissing)
                .with("endpoint", endpoint)
                .with("model", model),
            Error::BadName(name) => because(Reason::EndpointName).with("name", name),
            Error::NameTaken(name) => because(Reason::EndpointNameTaken).with("name", name),
            Error::BadUrl(url) => because(Reason::EndpointAddress).with("url", url),
            Error::KeyUnencrypted(endpoint) => because(Reason::KeyUnencrypted).with("endpoint", endpoint),
            Error::NotSupported(what) => because(Reason::EndpointUnsupported).with("what", what),
            Error::Refused {
                endpoint,
                status,
                message,
            } => because(Reason::EndpointRefused)
                .with("endpoint", endpoint)
                .with("status", status)
                .with("reason", message),
            Error::ImagesUnsupported {
                endpoint,
                model,
                message,
            } => coded(ErrorCode::ImageNotSeen)
                .with("endpoint", endpoint)
                .with("model", model)
                .with("reason", message),
            Error::Image(error) => Self {
                message: text,
                ..error.into()
            },
            Error::KeyRefused { endpoint, .. } => coded(ErrorCode::KeyRefused).with("endpoint", endpoint),
            Error::Keychain { variable, reason } => coded(ErrorCode::Keychain)
                .with("variable", variable)
                .with("reason", reason),
            Error::ContextFull { endpoint, message } => because(Reason::EndpointContextFull)
                .with("endpoint", endpoint)
                .with("reason", message),
            Error::TooManyRequests { endpoint, retry_after } => {
                let error = because(Reason::EndpointBusy).with("endpoint", endpoint);
                match retry_after {
                    Some(wait) => error.with("seconds", wait.as_secs().max(1)),
                    None => error,
                }
            }
            Error::BrokeOff(endpoint) => because(Reason::EndpointFailed).with("endpoint", endpoint),
            Error::Failed {
                endpoint,
                message: reason,
            } => because(Reason::EndpointFailed)
                .with("endpoint", endpoint)
                .with("reason", reason),
            Error::Unreadable { endpoint, reason } => because(Reason::EndpointUnreadable)
                .with("endpoint", endpoint)
                .with("reason", reason),
        }
    }
}
