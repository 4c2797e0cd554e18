//! What is set for the whole app, and what the chat window remembers.

use api::{ChatWindowState, Settings};
use protocol::{Error, ErrorCode, Result};
use serde_json::{Map, Value};
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn settings(app: State<'_, App>) -> Result<Settings> {
    app.chat.settings().get().await
}

/// Settings with commands of their own, which check what they are set to: where keys are sent, which folders are read, and who may ask.
const OWN_COMMANDS: [&str; 3] = ["endpoints", "model_folders", "server"];

/// Sets some of them by their keys; every window is told.
#[tauri::command]
pub async fn change_settings(app: State<'_, App>, change: Map<String, Value>) -> Result<Settings> {
    if let Some(key) = OWN_COMMANDS.iter().find(|key| change.contains_key(**key)) {
        let message = format!("{key} cannot be set like this; there are commands for it");
        return Err(Error::new(ErrorCode::BadRequest, message));
    }
    let settings = app.chat.settings().change(&change).await?;
    app.apply(&settings);
    Ok(settings)
}

#[tauri::command]
pub async fn chat_window_state(app: State<'_, App>) -> Result<ChatWindowState> {
    app.chat.settings().chat_window().await
}

#[tauri::command]
pub async fn set_chat_window_state(app: State<'_, App>, state: ChatWindowState) -> Result<()> {
    app.chat.settings().set_chat_window(&state).await
}
