//! Unloads models: after their keep-alive time, or by request.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::http::error_body::{Kind, Refusal, Retry};
use crate::state::State;

/// The bounds of the polling interval, which is a tenth of the shortest keep-alive time.
const SHORTEST_LOOK: Duration = Duration::from_millis(200);
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// A model that is not in memory this long after its request will not be loaded for it; no model takes as much time.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);

/// Unloads models after their keep-alive time, until the server stops. The engine knows the idle times, because it
/// knows all users of a model.
pub(crate) async fn unload_idle_models(state: Arc<State>) {
    let mut looked = Instant::now();
    loop {
        let leaving = state.unloading.leaving();
        let shortest = leaving.iter().map(|(_, time)| *time).min();
        let look = async {
            match shortest {
                // From the last poll on, however many requests came since.
                Some(time) => tokio::time::sleep_until(looked + (time / 10).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = state.unloading.asked.notified() => continue,
            () = look => {}
        }
        looked = Instant::now();
        let loaded = state.loaded().await;
        let answers = state.metrics.answers.load(Ordering::Relaxed);
        for (reference, time) in leaving {
            let Some(engine) = state.engine.local() else { return };
            if loaded.contains(&reference) {
                if let Ok(true) = engine.unload_idle(&reference, time).await {
                    tracing::info!(model = reference, "unloaded, because nobody asked for it");
                    // A request that has not reached the engine yet may be about to load it again.
                    if state.metrics.answers.load(Ordering::Relaxed) == 0 {
                        state.unloading.forget(&reference, looked);
                    }
                }
            } else if answers == 0 {
                if let Some(long_ago) = looked.checked_sub(FORGOTTEN) {
                    state.unloading.forget(&reference, long_ago);
                }
            }
        }
    }
}

/// Unloads a model now.
///
/// # Errors
/// If it is answering.
pub(crate) async fn unload_now(state: &State, reference: &str) -> Result<(), Refusal> {
    let Some(engine) = state.engine.local() else {
        return Ok(());
    };
    let unloaded = engine.unload_idle(reference, Duration::ZERO).await?;
    if unloaded || !state.loaded().await.iter().any(|loaded| loaded == reference) {
        return Ok(());
    }
    let mut refusal = Refusal::new(
        Kind::Unavailable,
        "the model answers, or another one is being loaded; ask again when that has ended",
    );
    refusal.retry = Retry::After(1);
    Err(refusal)
}
