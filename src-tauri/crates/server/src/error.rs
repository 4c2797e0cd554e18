//! The reasons why the server does not start.

use std::net::SocketAddr;

use api::PortHolder;
use protocol::Reason;

/// The reasons why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is reachable from other computers, and there is no key.
    #[error("{0} can be reached from other computers, so a key is needed; set one (--api-key, or PONDER_API_KEY), or listen on 127.0.0.1")]
    NeedsKey(SocketAddr),
    /// Another program listens there.
    #[error("port {} is taken by {}; end that one, or choose another port (--port)", address.port(), holder(by.as_ref()))]
    PortTaken {
        /// The address.
        address: SocketAddr,
        /// That program, if it is known.
        by: Option<PortHolder>,
    },
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        reason: std::io::Error,
    },
}

fn holder(by: Option<&PortHolder>) -> String {
    match by {
        Some(PortHolder { name, process }) => format!("{name} (process {process})"),
        None => "another program, perhaps by another Ponder".to_owned(),
    }
}

/// A result of the server.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NeedsKey(_) => Self::because(Reason::ServerNeedsKey, message),
            Error::PortTaken {
                address,
                by: Some(holder),
            } => Self::because(Reason::PortTaken, message)
                .with("port", address.port())
                .with("name", holder.name),
            Error::PortTaken { address, by: None } => {
                Self::because(Reason::PortTakenUnknown, message).with("port", address.port())
            }
            Error::Address { address, .. } => {
                Self::because(Reason::ServerAddress, message).with("address", address.to_string())
            }
        }
    }
}
