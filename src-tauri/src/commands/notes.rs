//! Notes about the user, which models are told in the chats that use them.

use api::Note;
use command::command;
use protocol::Result;
use tauri::State;

use crate::app::state::App;

/// The notes of a project or, without one, those for chats outside of projects; the oldest first.
#[command(chat, settings)]
pub async fn notes(app: State<'_, App>, project: Option<String>) -> Result<Vec<Note>> {
    app.chat.notes().list(project.as_deref()).await
}

/// Adds a note that the user wrote.
#[command(chat, settings)]
pub async fn add_note(app: State<'_, App>, project: Option<String>, text: String) -> Result<Note> {
    app.chat.notes().add(project.as_deref(), &text).await
}

/// Gives a note another text.
#[command(chat, settings)]
pub async fn change_note(app: State<'_, App>, note: String, text: String) -> Result<()> {
    app.chat.notes().change(&note, &text).await
}

/// Deletes a note.
#[command(chat, settings)]
pub async fn delete_note(app: State<'_, App>, note: String) -> Result<()> {
    app.chat.notes().delete(&note).await
}

/// Has the chats of a project told its notes, or not.
#[command(chat)]
pub async fn use_project_notes(app: State<'_, App>, id: String, uses_notes: bool) -> Result<()> {
    app.chat.notes().use_in_project(&id, uses_notes).await
}
