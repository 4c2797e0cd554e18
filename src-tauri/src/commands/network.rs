//! What the outbound client may do, and what it did.

use api::{NetSettings, OutboundRequest};
use protocol::Result;
use tauri::{AppHandle, Emitter, State};

use super::NETWORK_CHANGED;
use crate::app::state::App;

#[tauri::command]
pub async fn net_settings(app: State<'_, App>) -> Result<NetSettings> {
    Ok(app.hub.net().settings().await)
}

#[tauri::command]
pub async fn set_offline(handle: AppHandle, app: State<'_, App>, offline: bool) -> Result<NetSettings> {
    app.hub.net().set_offline(offline)?;
    if !offline {
        app.hub.downloads().resume_offline();
    }
    Ok(changed(&handle, &app).await)
}

/// Keeps a token in the system's keychain; an empty one is taken out of it.
#[tauri::command]
pub async fn set_token(handle: AppHandle, app: State<'_, App>, token: String) -> Result<NetSettings> {
    if token.is_empty() {
        app.hub.net().forget_token().await?;
    } else {
        app.hub.net().set_token(&token).await?;
    }
    Ok(changed(&handle, &app).await)
}

/// What is set now, after the windows were told that it is something else.
async fn changed(handle: &AppHandle, app: &App) -> NetSettings {
    if let Err(error) = handle.emit(NETWORK_CHANGED, ()) {
        tracing::warn!("a window missed a change of the network's settings: {error}");
    }
    app.hub.net().settings().await
}

/// What left this computer, newest first.
#[tauri::command]
pub async fn outbound_requests(app: State<'_, App>) -> Result<Vec<OutboundRequest>> {
    Ok(app.hub.net().requests().into_iter().rev().collect())
}
