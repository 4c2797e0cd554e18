//! Models that were not asked anything for a while leave memory, as it is set.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::Core;

/// How often models are looked at, at least and at most; between them a tenth of the time that they may be idle.
const SHORTEST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// Tells the engine what it may keep, and frees models that were idle for as long as is set, while somebody uses the
/// chats.
pub(crate) async fn unload_idle_models(core: Weak<Core>) {
    let Some(mut settings) = core.upgrade().map(|core| core.settings.subscribe()) else {
        return;
    };
    loop {
        let set = settings.borrow_and_update().engine;
        if let Some(core) = core.upgrade() {
            if let Some(engine) = core.engine.local() {
                engine.limit_prefix_caches(set.prefix_cache_bytes());
            }
        }
        let idle = set
            .unload_after
            .map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
        tokio::select! {
            changed = settings.changed() => if changed.is_err() { return },
            () = unload_after(&core, idle) => return,
        }
    }
}

/// Ends when nobody uses the chats any more.
async fn unload_after(core: &Weak<Core>, idle: Option<Duration>) {
    let Some(idle) = idle else {
        return std::future::pending().await;
    };
    loop {
        sleep((idle / 10).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
        let Some(core) = core.upgrade() else { return };
        let Some(engine) = core.engine.local() else { return };
        for info in engine.loaded() {
            match engine.unload_idle(&info.reference, idle).await {
                Ok(true) => tracing::info!(model = info.reference, "unloaded, because nobody asked it anything"),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "a model could not be unloaded"),
            }
        }
    }
}
