//! Tasks that run as long as the chats are open.

mod backups;
mod processes;
mod search_index;

use std::sync::Arc;

use crate::core::Core;

/// Starts all of them. Each ends when the last [`crate::Chat`] is dropped.
pub(crate) fn spawn(core: &Arc<Core>) {
    tokio::spawn(processes::watch(Arc::downgrade(core)));
    tokio::spawn(search_index::read_into_index(Arc::downgrade(core)));
    tokio::spawn(backups::back_up_daily(Arc::downgrade(core)));
}
