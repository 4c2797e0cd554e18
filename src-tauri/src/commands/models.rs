//! Models on this computer.

use api::{EngineStatus, LocalModel};
use command::command;
use protocol::{Capabilities, Result};
use tauri::{AppHandle, State};

use super::models_changed;
use crate::app::state::App;

/// The models on this computer.
#[command(chat, models, settings, quick)]
pub async fn models(app: State<'_, App>) -> Result<Vec<LocalModel>> {
    let folder = app.models.clone();
    // Many config files and templates are read; this must not block the windows.
    app.run_blocking(move || Ok(folder.list())).await
}

/// The reference of the model that new chats use.
#[command(chat, models, settings, quick)]
pub async fn default_model(app: State<'_, App>) -> Result<String> {
    app.chat.settings().default_model().await
}

/// Sets the model that new chats use.
#[command(models)]
pub async fn set_default_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    app.chat.settings().set_default_model(&reference).await?;
    models_changed(&handle);
    Ok(())
}

/// The capabilities of the model of this reference, or of the default model. Opens no connection.
#[command(chat)]
pub async fn capabilities(app: State<'_, App>, reference: Option<String>) -> Result<Capabilities> {
    app.endpoints().await?;
    app.chat.models().capabilities(reference.as_deref()).await
}

/// Unloads a model from memory; its next answer loads it again. Rejects with `busy` while it answers.
#[command(settings)]
pub async fn unload_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    app.chat.models().unload_idle(&reference).await?;
    models_changed(&handle);
    Ok(())
}

/// The loaded models and the memory they take.
#[command(chat, models, settings)]
pub async fn engine_status(app: State<'_, App>) -> Result<EngineStatus> {
    // The engine has found its devices when it answers.
    let memory = app.engine.memory().await?;
    Ok(EngineStatus {
        loaded: app.engine.loaded(),
        memory,
        has_card: app.engine.has_card(),
    })
}
