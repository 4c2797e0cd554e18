//! Newer versions of the app.

use api::AppUpdate;
use command::command;
use protocol::Result;
use tauri::{AppHandle, State};

use crate::app::state::App;

/// The newest version of the app that is known. Opens no connection.
#[command(settings)]
pub async fn app_update(app: State<'_, App>) -> Result<AppUpdate> {
    Ok(app.updates.state())
}

/// Checks for a newer version of the app.
#[command(settings)]
pub async fn ask_for_app_update(handle: AppHandle, app: State<'_, App>) -> Result<AppUpdate> {
    app.updates.ask(&handle).await
}

/// Downloads the version that was found, verifies it and replaces this one. Nothing changes before that.
#[command(settings)]
pub async fn install_app_update(app: State<'_, App>) -> Result<AppUpdate> {
    app.updates.install().await
}

/// Stops the download of a new version.
#[command(settings)]
pub async fn stop_app_update(app: State<'_, App>) -> Result<()> {
    app.updates.stop();
    Ok(())
}

/// Quits the app in the usual way and starts the installed version.
#[command(settings)]
pub async fn restart(handle: AppHandle) -> Result<()> {
    handle.request_restart();
    Ok(())
}
