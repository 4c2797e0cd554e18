//! Models that nobody asked anything for a while leave memory, as it is set; and a person may send one away at once.

use std::sync::Weak;
use std::time::Duration;

use protocol::{Error, ErrorCode, Result};
use tokio::time::sleep;

use crate::{Chat, Inner};

/// How often models are looked at, at least and at most; between them a tenth of the time that they may be idle.
const SHORTEST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_secs(30);

impl Chat {
    /// Frees the memory of a model now; its next answer loads it again. Changes nothing if it is not loaded.
    ///
    /// # Errors
    /// `Busy` while it answers, or while another model is being loaded beside it.
    pub async fn eject_model(&self, reference: &str) -> Result<()> {
        let Some(engine) = self.0.engine.local() else { return Ok(()) };
        let ejected = engine.unload_idle(reference, Duration::ZERO).await?;
        if ejected || !engine.loaded().iter().any(|info| info.reference == reference) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Busy,
            "the model answers, or another one is being loaded; stop that first, or try again when it has ended",
        ))
    }
}

/// Tells the engine what it may keep, and frees models that were idle for as long as is set, while somebody uses the chats.
pub(crate) async fn unload_idle_models(inner: Weak<Inner>) {
    let Some(mut settings) = inner.upgrade().map(|inner| inner.settings.subscribe()) else {
        return;
    };
    loop {
        let set = settings.borrow_and_update().engine;
        if let Some(inner) = inner.upgrade() {
            if let Some(engine) = inner.engine.local() {
                engine.limit_prefix_caches(set.prefix_cache_bytes());
            }
        }
        let idle = set.unload_after.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
        tokio::select! {
            changed = settings.changed() => if changed.is_err() { return },
            () = unload_after(&inner, idle) => return,
        }
    }
}

/// Ends when nobody uses the chats any more.
async fn unload_after(inner: &Weak<Inner>, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        sleep((idle / 10).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
        let Some(inner) = inner.upgrade() else { return };
        let Some(engine) = inner.engine.local() else { return };
        for info in engine.loaded() {
            match engine.unload_idle(&info.reference, idle).await {
                Ok(true) => tracing::info!(model = info.reference, "unloaded, because nobody asked it anything"),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "a model could not be unloaded"),
            }
        }
    }
}
