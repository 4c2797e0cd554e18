//! Events for the windows.

use serde::Serialize;
use tauri::{AppHandle, Emitter};

/// Tells windows to list the chats again.
pub const CHATS_CHANGED: &str = "chats_changed";
/// Tells windows to list the models again.
pub const MODELS_CHANGED: &str = "models_changed";
/// Tells windows to ask again what the network may be used for.
pub const NETWORK_CHANGED: &str = "network_changed";
/// Tells windows what is set now.
pub const SETTINGS_CHANGED: &str = "settings_changed";
/// Tells windows what is known of newer versions of the app.
pub const APP_UPDATE_CHANGED: &str = "app_update_changed";
/// Tells windows to list servers of tools and consents again.
pub const TOOLS_CHANGED: &str = "tools_changed";
/// Tells windows to list collections of documents again.
pub const COLLECTIONS_CHANGED: &str = "collections_changed";
/// Tells the consent window to list the calls and the requests of servers that wait again.
pub const WAITING_CALLS_CHANGED: &str = "waiting_calls_changed";
/// Tells windows that calls that run are further than they were.
pub const RUNNING_CALLS_CHANGED: &str = "running_calls_changed";
/// Tells windows that other models are in memory.
pub const ENGINE_CHANGED: &str = "engine_changed";
/// Tells windows what was given back because memory got short.
pub const MEMORY_RELEASED: &str = "memory_released";
/// Tells the chat window to begin a chat with a model.
pub const CHAT_WITH: &str = "chat_with";

/// Asks a window for one of its pages.
pub const SHOW_PAGE: &str = "show_page";
/// Asks a window for a command.
pub const COMMAND: &str = "command";
/// Tells the chat window that something was brought to it.
pub const OPEN_REQUESTED: &str = "open_requested";
/// Asks the chat window to ask whether the app may end.
pub const QUIT_ASKED: &str = "quit_asked";
/// Tells quick entry that it is shown.
pub const QUICK_SHOWN: &str = "quick_shown";

/// Sends an event to every window; the log says what a window missed.
pub fn tell<S: Serialize + Clone>(app: &AppHandle, event: &str, payload: S, what: &str) {
    if let Err(error) = app.emit(event, payload) {
        tracing::warn!("a window missed {what}: {error}");
    }
}
