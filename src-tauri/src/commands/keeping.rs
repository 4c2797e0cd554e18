//! Finding chats, the archive, the trash and folders.

use api::{ChatSettings, Folder, HistoryHits, HistoryQuery, HistoryState, TrashedChat};
use protocol::{Content, Result};
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn search_history(app: State<'_, App>, query: HistoryQuery) -> Result<HistoryHits> {
    app.chat.library().search(&query).await
}

#[tauri::command]
pub async fn archive_chat(app: State<'_, App>, id: String, archived: bool) -> Result<()> {
    app.chat.library().archive(&id, archived).await
}

#[tauri::command]
pub async fn trash(app: State<'_, App>) -> Result<Vec<TrashedChat>> {
    app.chat.library().trash().await
}

#[tauri::command]
pub async fn purge_chat(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.library().purge(&id).await
}

#[tauri::command]
pub async fn folders(app: State<'_, App>) -> Result<Vec<Folder>> {
    app.chat.projects().list().await
}

#[tauri::command]
pub async fn create_folder(app: State<'_, App>, name: String) -> Result<Folder> {
    app.chat.projects().create(&name).await
}

#[tauri::command]
pub async fn change_folder(app: State<'_, App>, id: String, name: String, system_prompt: String) -> Result<()> {
    app.chat.projects().change(&id, &name, &system_prompt).await
}

/// Has the model read what a chat with these settings would begin with in this folder.
#[tauri::command]
pub async fn prefetch_folder(app: State<'_, App>, id: String, settings: ChatSettings) -> Result<()> {
    app.chat.projects().prefetch(&id, settings).await
}

#[tauri::command]
pub async fn put_folder_file(app: State<'_, App>, id: String, file: Content) -> Result<()> {
    app.chat.projects().put_file(&id, &file).await
}

#[tauri::command]
pub async fn remove_folder_file(app: State<'_, App>, id: String, attachment: String) -> Result<()> {
    app.chat.projects().remove_file(&id, &attachment).await
}

#[tauri::command]
pub async fn delete_folder(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.projects().delete(&id).await
}

#[tauri::command]
pub async fn restore_folder(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.projects().restore(&id).await
}

#[tauri::command]
pub async fn move_chat(app: State<'_, App>, id: String, folder: Option<String>) -> Result<()> {
    app.chat.projects().move_chat(&id, folder.as_deref()).await
}

#[tauri::command]
pub async fn history_state(app: State<'_, App>) -> Result<HistoryState> {
    Ok(app.chat.library().history_state())
}
