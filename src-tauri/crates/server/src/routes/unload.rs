//! Unloads a model by request.

use crate::http::error_body::{Kind, Refusal, Retry};
use crate::state::State;

/// Unloads a model now.
///
/// # Errors
/// If it is answering.
pub(crate) async fn unload_now(state: &State, reference: &str) -> Result<(), Refusal> {
    let Some(engine) = state.engine.local() else {
        return Ok(());
    };
    let unloaded = engine.unload_idle(reference).await?;
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
