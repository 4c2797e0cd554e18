//! Newer versions of the app.

use api::AppUpdate;
use protocol::Result;
use tauri::{AppHandle, State};

use crate::app::state::App;

#[tauri::command]
pub async fn app_update(app: State<'_, App>) -> Result<AppUpdate> {
    Ok(app.updates.state())
}

#[tauri::command]
pub async fn ask_for_app_update(handle: AppHandle, app: State<'_, App>) -> Result<AppUpdate> {
    app.updates.ask(&handle).await
}

#[tauri::command]
pub async fn install_app_update(app: State<'_, App>) -> Result<AppUpdate> {
    app.updates.install().await
}

#[tauri::command]
pub async fn stop_app_update(app: State<'_, App>) -> Result<()> {
    app.updates.stop();
    Ok(())
}

/// Ends the app, as its end always is, and starts what was installed.
#[tauri::command]
pub async fn restart(handle: AppHandle) -> Result<()> {
    handle.request_restart();
    Ok(())
}
