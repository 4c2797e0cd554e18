//! Notes about the user, which models are told in the chats that use them.

use std::sync::Arc;

use api::{Note, Project};
use protocol::{Error, ErrorCode, Result};

use crate::core::Core;

/// Notes about the user: lines that they wrote or confirmed, of a project or for chats outside of projects.
#[derive(Clone)]
pub struct Notes {
    core: Arc<Core>,
}

impl Notes {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The notes of a project or, without one, those for chats outside of projects; the oldest first.
    pub async fn list(&self, project: Option<&str>) -> Result<Vec<Note>> {
        Ok(self.core.history.notes(project).await?)
    }

    /// Adds a note that the user wrote. The same words are noted once.
    ///
    /// # Errors
    /// `BadRequest` with a sentence for a text that is no note, and for one note too many; `NotFound` for the project.
    pub async fn add(&self, project: Option<&str>, text: &str) -> Result<Note> {
        self.core.change(self.core.history.add_note(project, text, None)).await
    }

    /// Adds a note that a model suggested in a chat, after the user confirmed it.
    ///
    /// # Errors
    /// As [`Notes::add`]; `BadRequest` if the chat uses no notes.
    pub async fn add_suggested(&self, chat: &str, text: &str) -> Result<Note> {
        let project = self.core.history.project_of(chat).await?;
        if !uses_notes(&self.core, project.as_ref()) {
            return Err(Error::new(ErrorCode::BadRequest, "this chat uses no notes"));
        }
        let project = project.as_ref().map(|project| project.id.as_str());
        let added = self.core.history.add_note(project, text, Some(chat));
        self.core.change(added).await
    }

    /// Gives a note another text.
    ///
    /// # Errors
    /// `BadRequest` for a text that is no note; `NotFound`.
    pub async fn change(&self, note: &str, text: &str) -> Result<()> {
        self.core.change(self.core.history.change_note(note, text)).await
    }

    /// Deletes a note.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete(&self, note: &str) -> Result<()> {
        self.core.change(self.core.history.delete_note(note)).await
    }

    /// Has the chats of a project told its notes, or not. For chats outside of projects it is a setting of the app.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn use_in_project(&self, project: &str, uses_notes: bool) -> Result<()> {
        let set = self.core.history.set_project_uses_notes(project, uses_notes);
        self.core.change(set).await
    }
}

/// True if the chats of a project or, without one, those outside of projects are told notes. Temporary chats are not.
pub(crate) fn uses_notes(core: &Core, project: Option<&Project>) -> bool {
    let chosen = project.map_or_else(|| core.settings.borrow().uses_notes, |project| project.uses_notes);
    chosen && !core.is_temporary()
}
