//! Models on this computer.

use api::{EngineStatus, LocalModel};
use protocol::{Capabilities, Result};
use tauri::{AppHandle, State};

use super::models_changed;
use crate::app::state::App;

#[tauri::command]
pub async fn models(app: State<'_, App>) -> Result<Vec<LocalModel>> {
    let folder = app.models.clone();
    // Reading config files and templates of many models takes a moment; the windows stay awake.
    app.run_blocking(move || Ok(folder.list())).await
}

#[tauri::command]
pub async fn default_model(app: State<'_, App>) -> Result<String> {
    app.chat.settings().default_model().await
}

#[tauri::command]
pub async fn set_default_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    app.chat.settings().set_default_model(&reference).await?;
    models_changed(&handle);
    Ok(())
}

#[tauri::command]
pub async fn capabilities(app: State<'_, App>, reference: Option<String>) -> Result<Capabilities> {
    app.endpoints().await?;
    app.chat.models().capabilities(reference.as_deref()).await
}

/// Frees the memory of a model; its next answer loads it again.
#[tauri::command]
pub async fn eject_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    app.chat.models().unload_idle(&reference).await?;
    models_changed(&handle);
    Ok(())
}

#[tauri::command]
pub async fn engine_status(app: State<'_, App>) -> Result<EngineStatus> {
    Ok(EngineStatus {
        loaded: app.engine.loaded(),
        memory: app.engine.memory().await?,
    })
}
