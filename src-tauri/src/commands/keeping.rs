//! Finding chats, the archive, the trash and folders.

use protocol::{ChatSettings, Content, Folder, HistoryHits, HistoryQuery, HistoryState, Result, TrashedChat};
use tauri::State;

use crate::state::App;

#[tauri::command]
pub async fn search_history(app: State<'_, App>, query: HistoryQuery) -> Result<HistoryHits> {
    app.chat.search(&query).await
}

#[tauri::command]
pub async fn archive_chat(app: State<'_, App>, id: String, archived: bool) -> Result<()> {
    app.chat.archive(&id, archived).await
}

#[tauri::command]
pub async fn trash(app: State<'_, App>) -> Result<Vec<TrashedChat>> {
    app.chat.trash().await
}

#[tauri::command]
pub async fn purge_chat(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.purge(&id).await
}

#[tauri::command]
pub async fn folders(app: State<'_, App>) -> Result<Vec<Folder>> {
    app.chat.folders().await
}

#[tauri::command]
pub async fn create_folder(app: State<'_, App>, name: String) -> Result<Folder> {
    app.chat.create_folder(&name).await
}

#[tauri::command]
pub async fn change_folder(app: State<'_, App>, id: String, name: String, system_prompt: String) -> Result<()> {
    app.chat.change_folder(&id, &name, &system_prompt).await
}

/// Has the model read what a chat with these settings would begin with in this folder.
#[tauri::command]
pub async fn prefetch_folder(app: State<'_, App>, id: String, settings: ChatSettings) -> Result<()> {
    app.chat.prefetch_folder(&id, settings).await
}

#[tauri::command]
pub async fn put_folder_file(app: State<'_, App>, id: String, file: Content) -> Result<()> {
    app.chat.put_folder_file(&id, &file).await
}

#[tauri::command]
pub async fn remove_folder_file(app: State<'_, App>, id: String, attachment: String) -> Result<()> {
    app.chat.remove_folder_file(&id, &attachment).await
}

#[tauri::command]
pub async fn delete_folder(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.delete_folder(&id).await
}

#[tauri::command]
pub async fn restore_folder(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.restore_folder(&id).await
}

#[tauri::command]
pub async fn move_chat(app: State<'_, App>, id: String, folder: Option<String>) -> Result<()> {
    app.chat.move_to_folder(&id, folder.as_deref()).await
}

#[tauri::command]
pub async fn history_state(app: State<'_, App>) -> Result<HistoryState> {
    Ok(app.chat.history_state())
}
