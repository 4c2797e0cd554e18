use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use protocol::{ErrorCode, Reason};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error("the name {0} has no address")]
pub(crate) struct NoAddress(pub(crate) String);

/// A name that leads into this computer's network, where it must not.
#[derive(Debug, thiserror::Error)]
#[error("the name {0} leads into this computer's own network")]
pub(crate) struct LocalAddress(pub(crate) String);

/// Errors of outbound requests. No message contains a token or the query of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection may be opened.
    #[error("{}", offline(*forced))]
    Offline {
        /// True if the environment forces it, rather than the switch.
        forced: bool,
    },
    /// The host's name has no address.
    #[error(
        "{host} was not found: this computer is not on the internet, or the name is wrong; nothing is lost, try again when it is connected"
    )]
    Dns {
        /// The host.
        host: String,
    },
    /// No connection could be opened.
    #[error("{host}{} cannot be reached ({reason}); nothing is lost, try again later", if *proxied { " (or the proxy before it)" } else { "" })]
    Connect {
        /// The host.
        host: String,
        /// True if a proxy is in use.
        proxied: bool,
        /// The system's message.
        reason: String,
    },
    /// The server cannot prove who it is, or speaks no TLS.
    #[error("{host} could not be trusted, so nothing was sent to it ({reason}); check this computer's date, and whether a network or a proxy asks to sign in first")]
    Tls {
        /// The host.
        host: String,
        /// The problem with its certificate.
        reason: String,
    },
    /// The host is this computer or in its network, and no address that the user set.
    #[error("{host} leads into this computer's own network, where no server on the internet is, so nothing was sent to it; a network that asks to sign in first may do that. A mirror there is set with HF_ENDPOINT")]
    LocalNetwork {
        /// The host.
        host: String,
    },
    /// The proxy refused.
    #[error("the proxy that this computer is set to use did not let the request through to {host} ({reason}); check the proxy's settings")]
    Proxy {
        /// The host that was to be reached.
        host: String,
        /// The proxy's reason.
        reason: String,
    },
    /// No answer in time.
    #[error("{host} did not answer within {} seconds; nothing is lost, try again later", after.as_secs())]
    TimedOut {
        /// The host.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// The connection ended in the middle of a response.
    #[error("the connection to {host} broke off in the middle; what arrived is kept, try again")]
    ConnectionLost {
        /// The host.
        host: String,
    },
    /// A redirect that is not followed.
    #[error("{host} redirected us in a way that is not safe to follow: {reason}; nothing was fetched")]
    Redirect {
        /// The host that answered with it.
        host: String,
        /// Why not.
        reason: String,
    },
    /// 401 without a better reason.
    #[error("{host} {}", unauthorised(*with_token))]
    Unauthorised {
        /// The host.
        host: String,
        /// True if a token was sent.
        with_token: bool,
    },
    /// 401 or 403 from a server of models.
    #[error("{host} {}", key_refused(*with_key))]
    KeyRefused {
        /// The host.
        host: String,
        /// True if a key was sent.
        with_key: bool,
    },
    /// The author gives the model only to people who accept its terms.
    #[error("the author of this model gives it only to people who accept its terms: {}", gated(*with_token))]
    Gated {
        /// True if a token was sent.
        with_token: bool,
    },
    /// 404.
    #[error("{host} has no {}; check the name, it may have been renamed, removed, or be private", if what.is_empty() { "such page" } else { what.as_str() })]
    NotFound {
        /// The host.
        host: String,
        /// The missing thing by the hub's error code: a model, a revision, a file.
        what: String,
    },
    /// 429.
    #[error("{host} asks us to wait{}, because it got too many requests in a short time{}", wait(*retry_after), if *token_helps { "; a token from your account raises the limit" } else { "" })]
    TooManyRequests {
        /// The host.
        host: String,
        /// How long, if it says so.
        retry_after: Option<Duration>,
        /// True if the hub was asked without a token, which would raise the limit.
        token_helps: bool,
    },
    /// 5xx.
    #[error("{host} has a problem at the moment (status {status}); nothing is lost, try again later")]
    ServerError {
        /// The host.
        host: String,
        /// The status.
        status: u16,
        /// How long to wait, if it says so.
        retry_after: Option<Duration>,
    },
    /// Any other status that is no success.
    #[error("{host} refused the request with status {status}")]
    UnexpectedStatus {
        /// The host.
        host: String,
        /// The status.
        status: u16,
        /// True if this is not the hub's own address. A signed address of a CDN expires, and asking the hub again
        /// helps.
        elsewhere: bool,
    },
    /// The response is larger than anything of its kind should be.
    #[error("{host} sent more than the {limit} bytes that such a response may have, so the rest was not read")]
    TooLarge {
        /// The host.
        host: String,
        /// The most that is read.
        limit: u64,
    },
    /// The response is not what was asked for.
    #[error(
        "{host} answered with something that is not what was asked for ({reason}); this network or its proxy may want you to sign in first"
    )]
    UnexpectedBody {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The request body cannot be written as JSON.
    #[error("what was to be sent cannot be written as JSON ({reason})")]
    Unserializable {
        /// Why.
        reason: String,
    },
    /// An address that no request can be sent to.
    #[error("{address} is not an address that a request can be sent to")]
    BadAddress {
        /// The address, without its query.
        address: String,
    },
    /// HF_ENDPOINT is no address of a hub.
    #[error("HF_ENDPOINT is {address:?}, which is not the address of a hub; one looks like https://huggingface.co, without a user name, password or query")]
    BadEndpoint {
        /// The variable's value, without a password.
        address: String,
    },
    /// The keychain does not answer.
    #[error("this computer's keychain cannot be used ({reason}); a token for the hub can also be given in the environment variable HF_TOKEN, before Ponder is started")]
    Keychain {
        /// Why.
        reason: String,
    },
    /// The value is no token of the hub.
    #[error("this is not a token: it is one word that begins with hf_, from the page Settings, Access Tokens of your account")]
    BadToken,
    /// The value is no key of an endpoint.
    #[error("this is not a key: a key is one word of letters, digits and signs, at most 4096 long")]
    BadKey,
    /// The switch could not be stored.
    #[error("the setting could not be stored in {} ({reason}); if you went offline, that holds until Ponder is closed", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// True if a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Dns { .. }
            | Error::Connect { .. }
            | Error::Proxy { .. }
            | Error::TimedOut { .. }
            | Error::ConnectionLost { .. }
            | Error::TooManyRequests { .. }
            | Error::ServerError { .. } => true,
            Error::UnexpectedStatus { status, elsewhere, .. } => *elsewhere || matches!(status, 408 | 425),
            _ => false,
        }
    }

    /// How long the server asks us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::TooManyRequests { retry_after, .. } | Error::ServerError { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The words that windows have for it, if they are others than those of its code.
    fn reason(&self) -> Option<Reason> {
        Some(match self {
            Error::Offline { forced: true } => Reason::OfflineForced,
            Error::Dns { .. } => Reason::HostNotFound,
            Error::Connect { .. } => Reason::HostUnreachable,
            Error::Tls { .. } => Reason::HostUntrusted,
            Error::Proxy { .. } => Reason::ProxyRefused,
            Error::TimedOut { .. } => Reason::TimedOut,
            Error::ConnectionLost { .. } => Reason::ConnectionLost,
            Error::LocalNetwork { .. }
            | Error::Redirect { .. }
            | Error::UnexpectedStatus { .. }
            | Error::TooLarge { .. }
            | Error::UnexpectedBody { .. } => Reason::UnexpectedResponse,
            Error::Unauthorised { .. } => Reason::AccessDeclined,
            Error::NotFound { .. } => Reason::PageNotFound,
            Error::TooManyRequests { retry_after: None, .. } => Reason::RateLimited,
            Error::TooManyRequests { .. } => Reason::RateLimitedFor,
            Error::ServerError { .. } => Reason::ServerTrouble,
            Error::BadAddress { .. } => Reason::BadAddress,
            Error::BadEndpoint { .. } => Reason::BadMirror,
            Error::BadToken => Reason::BadToken,
            Error::BadKey => Reason::BadKey,
            Error::Setting { .. } => Reason::SettingNotSaved,
            Error::Offline { forced: false }
            | Error::KeyRefused { .. }
            | Error::Gated { .. }
            | Error::Unserializable { .. }
            | Error::Keychain { .. } => return None,
        })
    }

    /// An error of the HTTP client as one of these.
    pub(crate) fn of_transport(error: &reqwest::Error, host: &str, proxied: bool, after: Duration) -> Self {
        let host = host.to_owned();
        let mut said = Vec::new();
        let mut kind = None;
        let mut next: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(cause) = next {
            if cause.is::<NoAddress>() {
                return Error::Dns { host };
            }
            if cause.is::<LocalAddress>() {
                return Error::LocalNetwork { host };
            }
            said.push(cause.to_string());
            if let Some(inner) = cause.downcast_ref::<io::Error>() {
                kind = Some(inner.kind());
                // The source of an io::Error is the source of the error that it holds, so that error is read here.
                if let Some(held) = inner.get_ref() {
                    said.push(held.to_string());
                }
            }
            next = cause.source();
        }
        // Without the number that the standard library adds to the system's text.
        let without_number = |text: &String| text.split(" (os error ").next().map(str::to_owned);
        let reason = said
            .last()
            .and_then(without_number)
            .unwrap_or_else(|| "no reason was given".into());
        let all = said.join(" ").to_lowercase();
        if error.is_timeout() || kind == Some(io::ErrorKind::TimedOut) {
            return Error::TimedOut { host, after };
        }
        if all.contains("certificate")
            || all.contains("tls")
            || all.contains("corrupt message")
            || all.contains("handshake")
        {
            return Error::Tls { host, reason };
        }
        if all.contains("tunnel") || all.contains("proxy") {
            return Error::Proxy { host, reason };
        }
        if error.is_connect() {
            return Error::Connect { host, proxied, reason };
        }
        if error.is_builder() {
            return Error::BadAddress { address: host };
        }
        // Everything after the connection was open and before the response was complete.
        Error::ConnectionLost { host }
    }
}

fn offline(forced: bool) -> &'static str {
    if forced {
        "HF_HUB_OFFLINE is set, so no connection is opened; what is on this computer works. Start Ponder without it to use the network"
    } else {
        "Ponder is set to Offline, so no connection is opened; what is on this computer works. Switch Offline off to use the network"
    }
}

fn unauthorised(with_token: bool) -> &'static str {
    if with_token {
        "did not accept the token: it may have been withdrawn, or may not read this model. Make a new one on the page Settings, Access Tokens of your account"
    } else {
        "shows this only to people it knows: it is private, or there is no such model. A token from the page Settings, Access Tokens of your account tells it who you are"
    }
}

fn key_refused(with_key: bool) -> &'static str {
    if with_key {
        "did not accept the key for it; ask who runs it for a new one and store that"
    } else {
        "asks for a key; ask who runs it for one and store it with the endpoint"
    }
}

fn gated(with_token: bool) -> &'static str {
    if with_token {
        "open its page on the hub with the account of your token, accept the terms there (some authors answer by hand), and try again"
    } else {
        "open its page on the hub and accept the terms there, make a token on the page Settings, Access Tokens of your account, give it to Ponder, and try again"
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    match retry_after.map(|wait| wait.as_secs().max(1)) {
        Some(1) => " 1 second".into(),
        Some(seconds) => format!(" {seconds} seconds"),
        None => String::new(),
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Offline { .. } => ErrorCode::Offline,
            Error::Unauthorised { .. } | Error::Gated { .. } => ErrorCode::Gated,
            Error::NotFound { .. } => ErrorCode::NotFound,
            Error::BadAddress { .. }
            | Error::BadEndpoint { .. }
            | Error::BadToken
            | Error::BadKey
            | Error::KeyRefused { .. } => ErrorCode::BadRequest,
            Error::Keychain { .. } => ErrorCode::Keychain,
            Error::Setting { .. } => ErrorCode::Storage,
            _ => ErrorCode::Network,
        };
        let mut message = protocol::Error::new(code, error.to_string());
        if let Some(reason) = error.reason() {
            message = message.narrowed(reason);
        }
        match error {
            Error::Offline { .. } | Error::Gated { .. } | Error::BadToken | Error::BadKey => message,
            Error::Dns { host }
            | Error::ConnectionLost { host }
            | Error::LocalNetwork { host }
            | Error::Unauthorised { host, .. }
            | Error::KeyRefused { host, .. } => message.with("host", host),
            Error::Connect { host, reason, .. }
            | Error::Tls { host, reason }
            | Error::Proxy { host, reason }
            | Error::Redirect { host, reason }
            | Error::UnexpectedBody { host, reason } => message.with("host", host).with("reason", reason),
            Error::TimedOut { host, after } => message.with("host", host).with("seconds", after.as_secs()),
            Error::NotFound { host, what } => message.with("host", host).with("what", what),
            Error::TooManyRequests { host, retry_after, .. } => {
                let message = message.with("host", host);
                match retry_after {
                    Some(wait) => message.with("seconds", wait.as_secs().max(1)),
                    None => message,
                }
            }
            Error::ServerError { host, status, .. } | Error::UnexpectedStatus { host, status, .. } => {
                message.with("host", host).with("status", status)
            }
            Error::TooLarge { host, limit } => message.with("host", host).with("limit", limit),
            Error::BadAddress { address } | Error::BadEndpoint { address } => message.with("address", address),
            Error::Unserializable { reason } => message.with("reason", reason),
            Error::Keychain { reason } => message.with("variable", "HF_TOKEN").with("reason", reason),
            Error::Setting { path, reason } => message.with("path", path.display().to_string()).with("reason", reason),
        }
    }
}
