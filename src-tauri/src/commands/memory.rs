//! How full a chat's context is, and what its model remembers.

use api::{ChatView, ContextUse, MemoryCut};
use protocol::{Content, Result};
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn context_use(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ContextUse> {
    app.chat.compaction().context_use(&id, &question).await
}

#[tauri::command]
pub async fn set_memory_cut(app: State<'_, App>, message: String, cut: Option<MemoryCut>) -> Result<ChatView> {
    app.chat.compaction().set_mark(&message, cut.as_ref()).await
}

#[tauri::command]
pub async fn forget_oldest(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ChatView> {
    app.chat.compaction().drop_oldest_turns(&id, &question).await
}

#[tauri::command]
pub async fn summarise_oldest(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ChatView> {
    app.chat.compaction().summarize_oldest_turns(&id, &question).await
}

#[tauri::command]
pub async fn stop_summary(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.compaction().stop_summary(&id);
    Ok(())
}

#[tauri::command]
pub async fn carry_over(app: State<'_, App>, id: String, title: String) -> Result<ChatView> {
    app.chat.compaction().fork_with_summary(&id, &title).await
}
