//! An answer of this process whose calls wait or run.

use tokio::sync::watch;

/// The calls of an answer, one after the other.
#[derive(Debug)]
pub(crate) struct ToolTurn {
    pub(crate) chat: String,
    /// The answer that made them.
    pub(crate) answer: String,
    /// Becomes true when somebody wants the turn to end.
    pub(crate) stop: watch::Sender<bool>,
}
