//! What is set for the whole app, and what the chat window remembers.

use protocol::{ChatWindowState, Result, Settings};
use serde_json::{Map, Value};
use tauri::State;

use crate::state::App;

#[tauri::command]
pub async fn settings(app: State<'_, App>) -> Result<Settings> {
    app.chat.settings().await
}

/// Sets some of them by their keys; every window is told.
#[tauri::command]
pub async fn change_settings(app: State<'_, App>, change: Map<String, Value>) -> Result<Settings> {
    let settings = app.chat.change_settings(&change).await?;
    app.apply(&settings);
    Ok(settings)
}

#[tauri::command]
pub async fn chat_window_state(app: State<'_, App>) -> Result<ChatWindowState> {
    app.chat.chat_window().await
}

#[tauri::command]
pub async fn set_chat_window_state(app: State<'_, App>, state: ChatWindowState) -> Result<()> {
    app.chat.set_chat_window(&state).await
}
