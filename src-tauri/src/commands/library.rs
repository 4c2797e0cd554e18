//! Search in the history, the archive, the trash and projects.

use api::{ChatSettings, HistoryHits, HistoryQuery, HistoryState, Project, TrashedChat};
use command::command;
use protocol::{Content, Result};
use tauri::State;

use crate::app::state::App;

/// The matches of a search in titles, questions, answers and names of attachments, in all chats outside the trash.
#[command(chat)]
pub async fn search_history(app: State<'_, App>, query: HistoryQuery) -> Result<HistoryHits> {
    app.chat.library().search(&query).await
}

/// Archives a chat, or takes it out of the archive.
#[command(chat)]
pub async fn archive_chat(app: State<'_, App>, id: String, archived: bool) -> Result<()> {
    app.chat.library().archive(&id, archived).await
}

/// The chats in the trash, latest first.
#[command(chat)]
pub async fn trash(app: State<'_, App>) -> Result<Vec<TrashedChat>> {
    app.chat.library().trash().await
}

/// Deletes a chat of the trash for good.
#[command(chat)]
pub async fn purge_chat(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.library().purge(&id).await
}

/// All projects, by name.
#[command(chat)]
pub async fn projects(app: State<'_, App>) -> Result<Vec<Project>> {
    app.chat.projects().list().await
}

/// Creates a project.
#[command(chat)]
pub async fn create_project(app: State<'_, App>, name: String) -> Result<Project> {
    app.chat.projects().create(&name).await
}

/// Changes the name and the instructions of a project.
#[command(chat)]
pub async fn change_project(app: State<'_, App>, id: String, name: String, system_prompt: String) -> Result<()> {
    app.chat.projects().change(&id, &name, &system_prompt).await
}

/// Has the model read a project's files, if it is loaded and idle, because a chat with these settings is about to
/// start there.
#[command(chat)]
pub async fn prefetch_project(app: State<'_, App>, id: String, settings: ChatSettings) -> Result<()> {
    app.chat.projects().prefetch(&id, settings).await
}

/// Adds a stored file to the end of a project. An identical one that is there, or was removed, gets this name and
/// excerpt instead.
#[command(chat)]
pub async fn put_project_file(app: State<'_, App>, id: String, file: Content) -> Result<()> {
    app.chat.projects().put_file(&id, &file).await
}

/// Removes a file from a project; `putProjectFile` restores it.
#[command(chat)]
pub async fn remove_project_file(app: State<'_, App>, id: String, attachment: String) -> Result<()> {
    app.chat.projects().remove_file(&id, &attachment).await
}

/// Deletes a project; its chats remain, outside of it.
#[command(chat)]
pub async fn delete_project(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.projects().delete(&id).await
}

/// Restores a deleted project.
#[command(chat)]
pub async fn restore_project(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.projects().restore(&id).await
}

/// Moves a chat into a project, or out of all of them.
#[command(chat, quick)]
pub async fn move_chat(app: State<'_, App>, id: String, project: Option<String>) -> Result<()> {
    app.chat.projects().move_chat(&id, project.as_deref()).await
}

/// The way the history was opened: repaired, read-only or as it is.
#[command(chat)]
pub async fn history_state(app: State<'_, App>) -> Result<HistoryState> {
    Ok(app.chat.library().history_state())
}
