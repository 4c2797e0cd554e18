//! Why a request to a server failed, in sentences.

use std::error::Error as StdError;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::DynamicTransportError;

use crate::visible::visible;

/// The error of a request, as rmcp passes it on.
pub(crate) type HttpError = StreamableHttpError<Failure>;

/// Characters of a server's own words that are shown.
const LONGEST_WORDS: usize = 300;

/// A server's demand that somebody signs in: the value of its `WWW-Authenticate`, empty if it sent none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge(pub String);

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The connection.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// It wants somebody to sign in.
    #[error("the server wants you to sign in, under Settings › Tools")]
    SignIn(Challenge),
    /// Whoever signed in may not do this; more has to be allowed.
    #[error("the server wants a permission that you did not give when you signed in; sign in again under Settings › Tools to give it")]
    MorePermissions(Challenge),
    /// It does not take the header `Authorization` of its configuration.
    #[error("the server did not accept the header Authorization; set it again")]
    HeaderRefused,
    /// The sign-in cannot be used now.
    #[error("{0}")]
    Tokens(String),
    /// A status that is no success.
    #[error("the server answered with status {status}{}", words(.said))]
    Status {
        /// The status.
        status: u16,
        /// Its own words.
        said: String,
    },
    /// It forgot the session.
    #[error("the server does not know this session any more")]
    SessionGone,
    /// Its answer is of another kind, such as a web page.
    #[error("the server answered with {0} instead of a message, so this is not the address of a server of tools, or a network wants you to sign in first")]
    OtherKind(String),
    /// Its answer is no message.
    #[error("the server answered with something that is no message: {0}")]
    NoMessage(String),
    /// Its answer is too large.
    #[error("the server sent more than {} MB in one piece, so the rest was not read", .0 >> 20)]
    TooLarge(usize),
    /// It broke off.
    #[error("the connection to the server ended before its answer was complete")]
    BrokeOff,
}

impl Failure {
    /// True if the server cannot have begun to work on the request.
    pub fn is_before_work(&self) -> bool {
        match self {
            Self::Net(error) => matches!(
                error,
                net::Error::Offline { .. }
                    | net::Error::Dns { .. }
                    | net::Error::Connect { .. }
                    | net::Error::Tls { .. }
                    | net::Error::LocalNetwork { .. }
                    | net::Error::Proxy { .. }
                    | net::Error::Redirect { .. }
                    | net::Error::BadAddress { .. }
                    | net::Error::BadKey
            ),
            Self::SignIn(_) | Self::MorePermissions(_) | Self::HeaderRefused | Self::Tokens(_) | Self::SessionGone => {
                true
            }
            Self::Status { status, .. } => matches!(status, 400..=499),
            Self::OtherKind(_) | Self::NoMessage(_) | Self::TooLarge(_) | Self::BrokeOff => false,
        }
    }

    /// The challenge of a server that wants somebody to sign in, or to allow more.
    pub fn challenge(&self) -> Option<&Challenge> {
        match self {
            Self::SignIn(challenge) | Self::MorePermissions(challenge) => Some(challenge),
            _ => None,
        }
    }
}

/// A server's own words behind a sentence.
fn words(said: &str) -> String {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.is_empty() || said.starts_with('<') {
        return String::new();
    }
    let short: String = said.chars().take(LONGEST_WORDS).collect();
    format!(" and says: {}", visible(&short))
}

/// Why a server behind an address is not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// It cannot be reached, refuses, or answers with something else.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// It says nothing.
    #[error("the server said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// It refused to begin, or is no server of tools.
    #[error("the address does not answer as a server of tools: {0}")]
    NoServer(String),
}

impl ConnectError {
    /// The error of a beginning. `last` is what the client saw last, because rmcp does not pass everything on.
    pub(crate) fn of(error: &ClientInitializeError, last: Option<Failure>) -> Self {
        if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
            return Self::of(fallback, last);
        }
        let failure = match error {
            ClientInitializeError::TransportError { error, .. } => failure_of(error),
            _ => None,
        };
        let ended = matches!(
            error,
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
        );
        match failure.or(last.filter(|_| ended)) {
            Some(failure) => Self::Failed(failure),
            None => Self::NoServer(match error {
                ClientInitializeError::JsonRpcError(error) => visible(&error.message),
                other => visible(&other.to_string()),
            }),
        }
    }
}

/// The failure in an error of a call, if it is one of the connection.
pub(crate) fn failure_of(error: &DynamicTransportError) -> Option<Failure> {
    let error: &(dyn StdError + 'static) = error.error.as_ref();
    Some(match error.downcast_ref::<HttpError>()? {
        StreamableHttpError::Client(failure) => failure.clone(),
        StreamableHttpError::AuthRequired(required) => {
            Failure::SignIn(Challenge(required.www_authenticate_header.clone()))
        }
        StreamableHttpError::InsufficientScope(missing) => {
            Failure::MorePermissions(Challenge(missing.www_authenticate_header.clone()))
        }
        StreamableHttpError::SessionExpired => Failure::SessionGone,
        StreamableHttpError::Sse(error) => of_events(error),
        StreamableHttpError::UnexpectedEndOfStream | StreamableHttpError::TransportChannelClosed => Failure::BrokeOff,
        other => Failure::NoMessage(visible(&other.to_string())),
    })
}

/// The failure of a stream of events.
pub(super) fn of_events(error: &rmcp_sse_stream::Error) -> Failure {
    match error {
        rmcp_sse_stream::Error::Body(inner) => match inner.downcast_ref::<Failure>() {
            Some(failure) => failure.clone(),
            None => Failure::BrokeOff,
        },
        other => Failure::NoMessage(other.to_string()),
    }
}

/// The failure in an error of a request that began.
pub(crate) fn failure_of_service(error: &ServiceError) -> Option<Failure> {
    match error {
        ServiceError::TransportSend(error) => failure_of(error),
        _ => None,
    }
}
