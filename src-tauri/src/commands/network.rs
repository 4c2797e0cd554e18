//! The settings and the log of the outbound client.

use api::{NetSettings, OutboundRequest};
use command::command;
use protocol::Result;
use tauri::{AppHandle, State};

use super::{tell, NETWORK_CHANGED};
use crate::app::state::App;

/// The settings of the network: the offline switch, the hub and its token.
#[command(models, settings)]
pub async fn net_settings(app: State<'_, App>) -> Result<NetSettings> {
    Ok(app.hub.net().settings().await)
}

/// Switches the network off or on.
#[command(models, settings)]
pub async fn set_offline(handle: AppHandle, app: State<'_, App>, offline: bool) -> Result<NetSettings> {
    app.hub.net().set_offline(offline)?;
    if !offline {
        app.hub.downloads().resume_offline();
    }
    Ok(changed(&handle, &app).await)
}

/// Stores the hub's token in the keychain; an empty one is removed from it.
#[command(models, settings)]
pub async fn set_token(handle: AppHandle, app: State<'_, App>, token: String) -> Result<NetSettings> {
    if token.is_empty() {
        app.hub.net().forget_token().await?;
    } else {
        app.hub.net().set_token(&token).await?;
    }
    Ok(changed(&handle, &app).await)
}

/// The settings after a change that every window is told of.
async fn changed(handle: &AppHandle, app: &App) -> NetSettings {
    tell(handle, NETWORK_CHANGED, (), "a change of the network's settings");
    app.hub.net().settings().await
}

/// The requests that left this computer, newest first.
#[command(settings)]
pub async fn outbound_requests(app: State<'_, App>) -> Result<Vec<OutboundRequest>> {
    Ok(app.hub.net().requests().into_iter().rev().collect())
}
