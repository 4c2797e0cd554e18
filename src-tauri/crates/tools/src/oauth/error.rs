//! Why nobody is signed in, in sentences.

use std::time::Duration;

use rmcp::transport::AuthError;

use crate::visible::visible;

/// Why a sign-in did not end well. Nothing was kept then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Tokens would be read by others on the way.
    #[error("{0} is not encrypted (https), so nobody signs in there; only a server on this computer may do without")]
    NotEncrypted(String),
    /// The connection.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// The server's own description of its sign-in is missing or does not fit.
    #[error("the server wants you to sign in, but its description of how does not fit: {0}")]
    Description(String),
    /// The server knows only programs that somebody registered.
    #[error("the server does not let Ponder register itself ({0}); ask for a client id, and perhaps a secret, where the server is run, and sign in with these")]
    NoRegistration(String),
    /// The browser was not opened.
    #[error("the page to sign in was not opened")]
    NotOpened,
    /// No address of this computer can be listened on.
    #[error("no address of this computer could be opened for the way back from the browser: {0}")]
    NoWayBack(String),
    /// Nothing came back from the browser.
    #[error("nothing came back from the browser for {} minutes; sign in again when you are ready", .0.as_secs() / 60)]
    TooLate(Duration),
    /// The person or the server said no.
    #[error("the page to sign in sent you back without permission: {0}")]
    Refused(String),
    /// The sign-in is of another server than the one that was asked.
    #[error("the sign-in comes from {received}, not from {expected}, so it was not used; somebody may have tried to take it over")]
    OtherIssuer {
        /// The one that was asked.
        expected: String,
        /// The one that answered, or a word that none is named.
        received: String,
    },
    /// No token was given.
    #[error("the server gave no permission although you signed in: {0}")]
    NoToken(String),
    /// The keychain, without which no token is kept.
    #[error("this computer's keychain cannot be used: {0}")]
    Keychain(String),
}

impl Error {
    /// The sentence for an error of rmcp. `last` is what the client saw last, because rmcp does not pass everything on.
    pub(super) fn of(error: &AuthError, last: Option<Self>) -> Self {
        if let Some(last) = last {
            return last;
        }
        let shown = |text: &dyn std::fmt::Display| visible(&text.to_string().chars().take(400).collect::<String>());
        match error {
            AuthError::RegistrationFailed(reason) => Self::NoRegistration(shown(reason)),
            AuthError::AuthorizationServerMismatch {
                expected_issuer,
                received_issuer,
            } => Self::OtherIssuer {
                expected: shown(expected_issuer),
                received: shown(received_issuer),
            },
            AuthError::AuthorizationServerMissingIssuer { expected_issuer } => Self::OtherIssuer {
                expected: shown(expected_issuer),
                received: "nobody by name".to_owned(),
            },
            AuthError::TokenExchangeFailed(reason)
            | AuthError::TokenRefreshFailed(reason)
            | AuthError::TokenRefreshRejected(reason)
            | AuthError::AuthorizationFailed(reason) => Self::NoToken(shown(reason)),
            AuthError::CredentialStoreError(reason) => Self::Keychain(shown(reason)),
            other => Self::Description(shown(other)),
        }
    }
}
