//! Passes the engine its settings, now and whenever they change.

use std::sync::Weak;

use crate::core::Core;

/// Tells the engine of this computer what it may keep in memory, and how many cores it may use. Ends when the last [`crate::Chat`] is dropped.
pub(crate) async fn pass_on(core: Weak<Core>) {
    let Some(mut settings) = core.upgrade().map(|core| core.settings.subscribe()) else {
        return;
    };
    loop {
        let set = settings.borrow_and_update().engine;
        if let Some(core) = core.upgrade() {
            if let Some(engine) = core.engine.local() {
                engine.limit_prefix_caches(set.prefix_cache_bytes());
                engine.unload_after(set.unload_after());
                engine.set_threads(set.threads);
            }
        }
        if settings.changed().await.is_err() {
            return;
        }
    }
}
