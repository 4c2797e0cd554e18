//! The tree of a chat, and what a window remembers of it.

use api::{ChatSummary, ChatView, DeleteScope, ScrollPlace};
use protocol::Result;
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn show_branch(app: State<'_, App>, message: String) -> Result<ChatView> {
    app.chat.chats().show_branch(&message).await
}

#[tauri::command]
pub async fn edit_answer(app: State<'_, App>, message: String, text: String) -> Result<ChatView> {
    app.chat.chats().edit_answer(&message, &text).await
}

#[tauri::command]
pub async fn delete_message(app: State<'_, App>, message: String, scope: DeleteScope) -> Result<String> {
    app.chat.chats().delete_message(&message, scope).await
}

#[tauri::command]
pub async fn fork_chat(app: State<'_, App>, message: String, title: String) -> Result<ChatSummary> {
    app.chat.chats().fork(&message, &title).await
}

#[tauri::command]
pub async fn mark_read(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.chats().mark_read(&id).await
}

#[tauri::command]
pub async fn set_scroll_place(app: State<'_, App>, id: String, place: Option<ScrollPlace>) -> Result<()> {
    app.chat.chats().set_scroll_place(&id, place.as_ref()).await
}
