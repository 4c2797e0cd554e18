//! Programs and addresses: what a session runs over.

use std::time::Duration;

use rmcp::service::ServiceError;
use tokio::process::Child;
use tokio::time::timeout;

use super::call_error::CallError;
use crate::http::{Challenge, Failure, HttpClient};
use crate::stdio::ErrorLines;

/// The thing that carries a session.
pub(super) enum Carrier {
    /// A program of this computer.
    Program {
        /// The guard that it runs behind.
        guard: Child,
        /// The end of its standard error.
        errors: ErrorLines,
    },
    /// An address.
    Address {
        /// The client that asks it.
        client: HttpClient,
        /// Words of Ponder about what it asked for.
        notes: ErrorLines,
    },
}

impl Carrier {
    /// The last lines that say why something did not work.
    pub(super) fn log(&self, count: usize) -> Vec<String> {
        match self {
            Self::Program { errors, .. } => errors.last(count),
            Self::Address { client, notes } => {
                let failures = client.failures();
                let mut lines: Vec<String> = failures.iter().map(Failure::to_string).collect();
                lines.extend(notes.last(count));
                lines.split_off(lines.len().saturating_sub(count))
            }
        }
    }

    /// Adds a word of Ponder to the log.
    pub(super) fn note(&self, word: &str) {
        match self {
            Self::Program { errors, .. } => errors.note(word),
            Self::Address { notes, .. } => notes.note(word),
        }
    }

    /// The demand of an address for the person, if it is one of this kind.
    pub(super) fn demand(&self, is_it: impl Fn(&Failure) -> bool) -> Option<Challenge> {
        match self {
            Self::Program { .. } => None,
            Self::Address { client, .. } => client.demand().filter(is_it)?.challenge().cloned(),
        }
    }

    /// The error of a call whose answer cannot come any more.
    pub(super) fn lost(&self, error: &ServiceError) -> CallError {
        let closed = matches!(
            error,
            ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. }
        );
        match self {
            _ if !closed => CallError::Refused(error.to_string()),
            Self::Program { .. } => CallError::Ended,
            Self::Address { client, .. } => CallError::Lost(client.take_stream_failure().unwrap_or(Failure::BrokeOff)),
        }
    }

    /// Waits for the end of a program.
    pub(super) async fn end(self, limit: Duration) {
        if let Self::Program { mut guard, .. } = self {
            if timeout(limit, guard.wait()).await.is_err() {
                tracing::warn!("a server of tools did not end");
            }
        }
    }
}
