//! Reacts to memory pressure, and keeps the computer awake during long work.

use std::sync::Arc;

use ::power::{KeepAwake, MemoryPressure};
use api::MemoryRelease;
use protocol::LocalEngine;
use tauri::{AppHandle, Manager};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::app::state::App;
use crate::events;
use crate::words;

/// A smaller release is not reported, in bytes.
const WORTH_SAYING: u64 = 32 << 20;

/// Starts both, and notifies windows about loaded models.
pub fn start(app: &AppHandle) {
    if let Some(pressure) = ::power::memory_pressure() {
        let (engine, app) = (app.state::<App>().engine.clone(), app.clone());
        tauri::async_runtime::spawn(release_when_short(engine, pressure, move |release| {
            events::tell(&app, events::MEMORY_RELEASED, release, "that memory was given back")
        }));
    }
    tauri::async_runtime::spawn(keep_awake(app.clone()));
    tauri::async_runtime::spawn(follow_engine(app.clone()));
}

/// Notifies windows whenever the set of loaded models changes.
async fn follow_engine(app: AppHandle) {
    let mut activity = app.state::<App>().engine.follow();
    let mut known = activity.borrow_and_update().loaded.clone();
    while activity.changed().await.is_ok() {
        let loaded = activity.borrow_and_update().loaded.clone();
        if loaded == known {
            continue;
        }
        known = loaded;
        events::tell(&app, events::ENGINE_CHANGED, (), "a change of the engine");
    }
}

/// Frees memory whenever the system reports pressure, and reports the amount if it is large enough.
async fn release_when_short(
    engine: Arc<dyn LocalEngine>,
    mut pressure: UnboundedReceiver<MemoryPressure>,
    tell: impl Fn(MemoryRelease) + Send,
) {
    while let Some(mut worst) = pressure.recv().await {
        // Reports during a release are about the memory before it.
        while let Ok(more) = pressure.try_recv() {
            worst = worst.max(more);
        }
        match release(engine.as_ref(), worst).await {
            Ok(release) => {
                tracing::info!(?worst, bytes = release.bytes, unloaded = ?release.unloaded, "memory got short");
                if release.bytes >= WORTH_SAYING || !release.unloaded.is_empty() {
                    tell(release);
                }
            }
            Err(error) => tracing::warn!(?worst, "memory got short, and none was given back: {error}"),
        }
    }
}

/// Frees the caches; under critical pressure also unloads idle models.
async fn release(engine: &dyn LocalEngine, pressure: MemoryPressure) -> protocol::Result<MemoryRelease> {
    let held = || async { engine.memory().await.map(|memory| memory.active + memory.cache) };
    let before = held().await?;
    engine.free_caches().await?;
    let mut unloaded = Vec::new();
    if pressure == MemoryPressure::Critical {
        for model in engine.loaded() {
            if engine.unload_idle(&model.reference).await? {
                unloaded.push(model.reference);
            }
        }
    }
    Ok(MemoryRelease {
        bytes: before.saturating_sub(held().await?),
        unloaded,
    })
}

/// Prevents sleep while there is work, if the user wants that.
async fn keep_awake(app: AppHandle) {
    let state = app.state::<App>();
    let (mut settings, mut answers) = (state.chat.settings().follow(), state.chat.changes());
    let (mut downloads, mut engine) = (state.hub.downloads().watch(), state.engine.follow());
    let (mut awake, mut complained) = (None, false);
    loop {
        let wanted = settings.borrow_and_update().keep_awake
            && (!state.chat.answers().running().is_empty()
                || engine.borrow_and_update().busy
                || downloads
                    .borrow_and_update()
                    .iter()
                    .any(|download| download.state.is_under_way()));
        answers.borrow_and_update();
        if wanted != awake.is_some() {
            awake = match wanted {
                true => hold_sleep_off(words::current(&app).awake, &mut complained).await,
                false => None,
            };
        }
        let changed = tokio::select! {
            changed = settings.changed() => changed,
            changed = answers.changed() => changed,
            changed = downloads.changed() => changed,
            changed = engine.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Asks the system, which may take a moment. A missing service is logged once.
async fn hold_sleep_off(reason: &'static str, complained: &mut bool) -> Option<KeepAwake> {
    match tauri::async_runtime::spawn_blocking(move || KeepAwake::new(reason)).await {
        Ok(Ok(awake)) => return Some(awake),
        Ok(Err(error)) if !std::mem::replace(complained, true) => {
            tracing::warn!(%error, "the computer may go to sleep while it answers")
        }
        Ok(Err(_)) => {}
        Err(error) => tracing::warn!(%error, "sleep could not be held off"),
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use protocol::fake::FakeEngine;
    use protocol::{FolderSource, MemoryFigures};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    const LOADED: MemoryFigures = MemoryFigures {
        active: 1_000_000_000,
        peak: 0,
        cache: 200_000_000,
    };

    fn loaded() -> FakeEngine {
        let engine = FakeEngine::new();
        drop(engine.load(FolderSource {
            reference: "pebble".into(),
            path: "/models/pebble".into(),
            revision: None,
            adapter: None,
        }));
        engine.set_memory(LOADED);
        engine
    }

    /// The reports to the windows after these pressure events at once.
    async fn told(engine: &FakeEngine, said: &[MemoryPressure]) -> Vec<MemoryRelease> {
        let (say, pressure) = unbounded_channel();
        for pressure in said {
            say.send(*pressure).expect("somebody listens");
        }
        drop(say);
        let (tell, told) = channel();
        release_when_short(Arc::new(engine.clone()), pressure, move |release| {
            drop(tell.send(release))
        })
        .await;
        told.into_iter().collect()
    }

    fn release_of(bytes: u64, unloaded: &[&str]) -> MemoryRelease {
        MemoryRelease {
            bytes,
            unloaded: unloaded.iter().map(|reference| (*reference).to_owned()).collect(),
        }
    }

    #[tokio::test]
    async fn a_warning_frees_caches_and_leaves_the_model() {
        let engine = loaded();
        engine.set_idle(Some(Duration::from_secs(60)));
        assert_eq!(
            told(&engine, &[MemoryPressure::Warning]).await,
            [release_of(200_000_000, &[])]
        );
        assert_eq!(engine.loaded().len(), 1);
        // Nothing is left to free, so nothing is reported.
        assert_eq!(told(&engine, &[MemoryPressure::Warning]).await, []);
    }

    #[tokio::test]
    async fn when_it_is_critical_models_go_that_do_not_answer() {
        let engine = loaded();
        assert_eq!(
            told(&engine, &[MemoryPressure::Critical]).await,
            [release_of(200_000_000, &[])]
        );
        assert_eq!(engine.loaded().len(), 1, "it answers");
        engine.set_idle(Some(Duration::ZERO));
        // The events during a release are merged into the worst of them.
        let said = [
            MemoryPressure::Warning,
            MemoryPressure::Critical,
            MemoryPressure::Warning,
        ];
        assert_eq!(told(&engine, &said).await, [release_of(1_000_000_000, &["pebble"])]);
        assert!(engine.loaded().is_empty());
    }

    #[tokio::test]
    async fn a_little_is_given_back_without_a_word() {
        let engine = loaded();
        engine.set_memory(MemoryFigures {
            cache: 1_000_000,
            ..LOADED
        });
        assert_eq!(told(&engine, &[MemoryPressure::Warning]).await, []);
        assert_eq!(engine.memory().await.map(|memory| memory.cache), Ok(0));
    }
}
