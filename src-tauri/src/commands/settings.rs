//! The settings of the whole app, and the state that the chat window keeps.

use api::{ChatWindowState, Settings};
use command::command;
use protocol::{Error, ErrorCode, Result};
use serde_json::{Map, Value};
use tauri::State;

use crate::app::state::App;

/// The settings of the whole app.
#[command(chat, models, settings, quick, consent)]
pub async fn settings(app: State<'_, App>) -> Result<Settings> {
    app.chat.settings().get().await
}

/// Settings with commands of their own, which check their values: they decide where keys are sent, which folders are
/// read and who may ask the server.
const OWN_COMMANDS: [&str; 3] = ["endpoints", "model_folders", "server"];

/// Changes some settings by their keys and tells every window. Returns all of them.
#[command(chat, models, settings, quick, consent, types(change = "Partial<Settings>"))]
pub async fn change_settings(app: State<'_, App>, change: Map<String, Value>) -> Result<Settings> {
    if let Some(key) = OWN_COMMANDS.iter().find(|key| change.contains_key(**key)) {
        let message = format!("{key} cannot be set like this; there are commands for it");
        return Err(Error::new(ErrorCode::BadRequest, message));
    }
    let settings = app.chat.settings().change(&change).await?;
    app.apply(&settings);
    Ok(settings)
}

/// The state that the chat window keeps from one start to the next.
#[command(chat)]
pub async fn chat_window_state(app: State<'_, App>) -> Result<ChatWindowState> {
    app.chat.settings().chat_window().await
}

/// Stores the state that the chat window keeps.
#[command(chat)]
pub async fn set_chat_window_state(app: State<'_, App>, state: ChatWindowState) -> Result<()> {
    app.chat.settings().set_chat_window(&state).await
}
