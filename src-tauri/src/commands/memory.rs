//! How full a chat's context is, and what its model remembers.

use protocol::{ChatView, Content, ContextUse, MemoryCut, Result};
use tauri::State;

use crate::state::App;

#[tauri::command]
pub async fn context_use(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ContextUse> {
    app.chat.context_use(&id, &question).await
}

#[tauri::command]
pub async fn set_memory_cut(app: State<'_, App>, message: String, cut: Option<MemoryCut>) -> Result<ChatView> {
    app.chat.set_memory_cut(&message, cut.as_ref()).await
}

#[tauri::command]
pub async fn forget_oldest(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ChatView> {
    app.chat.forget_oldest(&id, &question).await
}

#[tauri::command]
pub async fn summarise_oldest(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ChatView> {
    app.chat.summarise_oldest(&id, &question).await
}

#[tauri::command]
pub async fn stop_summary(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.stop_summary(&id);
    Ok(())
}

#[tauri::command]
pub async fn carry_over(app: State<'_, App>, id: String, title: String) -> Result<ChatView> {
    app.chat.carry_over(&id, &title).await
}
