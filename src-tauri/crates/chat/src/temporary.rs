//! Temporary chats: in memory with everything they hold, gone unless they are kept.

use protocol::Result;

use crate::core::Core;

/// Moves the chats of a temporary core to those of a file; the temporary one is closed then.
pub(crate) async fn keep(core: &Core, temporary: &Core) -> Result<()> {
    if !temporary.live().is_empty() || !temporary.tool_turns().is_empty() {
        return Err(history::Error::Busy.into());
    }
    core.change(temporary.history.move_into(&core.history)).await
}

/// Stops what runs, and drops the rows and what the engine remembers of them.
pub(crate) async fn discard(core: &Core) {
    core.stop_tool_turns(|_| true);
    core.stop_and_wait(|_| true).await;
    core.history.close().await;
    let freed = match core.engine.local() {
        Some(engine) => engine.free_caches().await,
        None => Ok(()),
    };
    if let Err(error) = freed {
        tracing::warn!(%error, "the prefix cache could not be freed");
    }
}
