//! The task that follows a collection.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The task that follows a collection.
pub(super) struct Follower {
    pub task: AbortHandle,
    /// Has it look once more.
    pub look: Arc<Notify>,
}
