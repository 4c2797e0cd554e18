//! The tree of a chat, and what a window remembers of it.

use protocol::{ChatSummary, ChatView, DeleteScope, Result, ScrollPlace};
use tauri::State;

use crate::state::App;

#[tauri::command]
pub async fn show_branch(app: State<'_, App>, message: String) -> Result<ChatView> {
    app.chat.show_branch(&message).await
}

#[tauri::command]
pub async fn edit_answer(app: State<'_, App>, message: String, text: String) -> Result<ChatView> {
    app.chat.edit_answer(&message, &text).await
}

#[tauri::command]
pub async fn delete_message(app: State<'_, App>, message: String, scope: DeleteScope) -> Result<String> {
    app.chat.delete_message(&message, scope).await
}

#[tauri::command]
pub async fn fork_chat(app: State<'_, App>, message: String, title: String) -> Result<ChatSummary> {
    app.chat.fork(&message, &title).await
}

#[tauri::command]
pub async fn mark_read(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.mark_read(&id).await
}

#[tauri::command]
pub async fn set_scroll_place(app: State<'_, App>, id: String, place: Option<ScrollPlace>) -> Result<()> {
    app.chat.set_scroll_place(&id, place.as_ref()).await
}
