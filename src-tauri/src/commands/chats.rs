//! Chats: listing, opening, changing.

use api::{ChatList, ChatSettings, ChatSummary, ChatView, StoredMessage};
use protocol::{Content, Result};
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn chats(app: State<'_, App>) -> Result<Vec<ChatSummary>> {
    app.chat.chats().list().await
}

/// The list of chats, or what of it has changed since the edition that a window has.
#[tauri::command]
pub async fn chats_since(app: State<'_, App>, edition: Option<u64>) -> Result<ChatList> {
    app.chat.chats().list_since(edition).await
}

#[tauri::command]
pub async fn chat(app: State<'_, App>, id: String) -> Result<ChatView> {
    app.chat.chats().open(&id).await
}

/// Messages right before this one on its branch: a long chat is given as its newest ones first.
#[tauri::command]
pub async fn earlier_messages(app: State<'_, App>, message: String) -> Result<Vec<StoredMessage>> {
    app.chat.chats().earlier_messages(&message).await
}

#[tauri::command]
pub async fn create_chat(app: State<'_, App>, settings: Option<ChatSettings>) -> Result<ChatView> {
    app.chat.chats().create(settings.unwrap_or_default()).await
}

#[tauri::command]
pub async fn rename_chat(app: State<'_, App>, id: String, title: String) -> Result<()> {
    app.chat.chats().rename(&id, &title).await
}

#[tauri::command]
pub async fn pin_chat(app: State<'_, App>, id: String, pinned: bool) -> Result<()> {
    app.chat.chats().pin(&id, pinned).await
}

#[tauri::command]
pub async fn delete_chat(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.library().delete(&id).await
}

#[tauri::command]
pub async fn restore_chat(app: State<'_, App>, id: String) -> Result<ChatSummary> {
    app.chat.library().restore(&id).await
}

#[tauri::command]
pub async fn set_chat_settings(app: State<'_, App>, id: String, settings: ChatSettings) -> Result<()> {
    app.chat.chats().set_settings(&id, &settings).await
}

/// Refuses what no chat may be set to, by the name of the field; for chats that are not made yet.
#[tauri::command]
pub async fn check_chat_settings(settings: ChatSettings) -> Result<()> {
    settings.check()
}

#[tauri::command]
pub async fn set_draft(app: State<'_, App>, id: String, draft: Vec<Content>) -> Result<()> {
    app.chat.chats().set_draft(&id, &draft).await
}
