//! The table `notes`: lines about the user that models are told in the chats of a project or, without one, in chats
//! outside of projects.

use api::Note;

use crate::projects::list::check_project;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The most notes of a project: all of them stand before each conversation.
const MOST_NOTES: i64 = 100;
/// The most characters of a note.
const LONGEST: usize = 500;

impl History {
    /// The notes of a project or, without one, those for chats outside of projects; the oldest first.
    pub async fn notes(&self, project: Option<&str>) -> Result<Vec<Note>> {
        let sql = "SELECT id, text, chat_id, created_at FROM notes WHERE project_id IS ? ORDER BY created_at, id";
        let rows: Vec<(String, String, Option<String>, i64)> = rows!(&self.readers, sql; project).await?;
        let note = |(id, text, chat, created_at)| Note {
            id,
            text,
            chat,
            created_at,
        };
        Ok(rows.into_iter().map(note).collect())
    }

    /// Adds a note; `chat` is the one in which it was suggested. The same words are noted once.
    ///
    /// # Errors
    /// [`Error::Note`] without words, with too many, and for more notes than a project may have; [`Error::NotFound`] for
    /// the project.
    pub async fn add_note(&self, project: Option<&str>, text: &str, chat: Option<&str>) -> Result<Note> {
        let text = checked(text)?;
        let mut transaction = self.write().await?;
        if let Some(project) = project {
            check_project(&mut transaction, project).await?;
        }
        let known: Option<(String, Option<String>, i64)> = row!(
            &mut *transaction,
            "SELECT id, chat_id, created_at FROM notes WHERE project_id IS ? AND text = ?"; project, &text
        )
        .await?;
        if let Some((id, chat, created_at)) = known {
            return Ok(Note {
                id,
                text,
                chat,
                created_at,
            });
        }
        let count: i64 = the_value!(
            &mut *transaction,
            "SELECT count(*) FROM notes WHERE project_id IS ?"; project
        )
        .await?;
        if count >= MOST_NOTES {
            return Err(Error::Note(format!("there are {MOST_NOTES} already; delete one first")));
        }
        let note = Note {
            id: new_id(),
            text,
            chat: chat.map(str::to_owned),
            created_at: now(),
        };
        let sql = "INSERT INTO notes (id, created_at, text, project_id, chat_id) VALUES (?, ?, ?, ?, ?)";
        run!(&mut transaction, sql; &note.id, note.created_at, &note.text, project, chat).await?;
        transaction.commit().await?;
        Ok(note)
    }

    /// Gives a note another text.
    ///
    /// # Errors
    /// [`Error::Note`] without words and with too many; [`Error::NotFound`].
    pub async fn change_note(&self, note: &str, text: &str) -> Result<()> {
        update!(self, "note", "UPDATE notes SET text = ?2 WHERE id = ?1"; note, checked(text)?).await
    }

    /// Deletes a note.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn delete_note(&self, note: &str) -> Result<()> {
        update!(self, "note", "DELETE FROM notes WHERE id = ?1"; note).await
    }

    /// Has the chats of a project told its notes, or not.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn set_project_uses_notes(&self, project: &str, uses_notes: bool) -> Result<()> {
        let sql = "UPDATE projects SET uses_notes = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "folder", sql; project, uses_notes).await
    }
}

/// A note on one line.
fn checked(text: &str) -> Result<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() {
        0 => Err(Error::Note("it has no words".into())),
        count if count > LONGEST => Err(Error::Note(format!(
            "it has {count} characters, and a note has at most {LONGEST}"
        ))),
        _ => Ok(text),
    }
}
