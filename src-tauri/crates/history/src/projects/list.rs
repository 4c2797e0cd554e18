//! The table `projects`: projects of chats, with instructions and files of their own.

use api::Project;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::json::to_json;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The project of a row, without its files.
pub(super) fn project(row: &SqliteRow) -> sqlx::Result<Project> {
    Ok(Project {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        system_prompt: row.try_get("system_prompt")?,
        files: Vec::new(),
        // Damage may leave what is no list.
        collections: serde_json::from_slice(row.try_get("collections")?).unwrap_or_default(),
        uses_notes: row.try_get("uses_notes")?,
        created_at: row.try_get("created_at")?,
    })
}

impl History {
    /// All projects with their files, by their names.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        let sql = "SELECT id, name, system_prompt, created_at, CAST(collections AS BLOB) AS collections, uses_notes
                     FROM projects WHERE deleted_at IS NULL ORDER BY name COLLATE NOCASE, id";
        self.with_files(raw_rows!(&self.readers, sql).await?).await
    }

    /// The project of a chat with its files, if it lies in one.
    pub async fn project_of(&self, chat: &str) -> Result<Option<Project>> {
        let sql = "SELECT f.id, f.name, f.system_prompt, f.created_at, CAST(f.collections AS BLOB) AS collections,
                          f.uses_notes
                     FROM chats c JOIN projects f ON f.id = c.project_id
                    WHERE c.id = ? AND f.deleted_at IS NULL";
        Ok(self.with_files(raw_rows!(&self.readers, sql; chat).await?).await?.pop())
    }

    /// A new project without chats and files.
    pub async fn create_project(&self, name: &str) -> Result<Project> {
        let project = Project {
            id: new_id(),
            name: name.to_owned(),
            system_prompt: String::new(),
            files: Vec::new(),
            collections: Vec::new(),
            uses_notes: false,
            created_at: now(),
        };
        let mut transaction = self.write().await?;
        let sql = "INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?)";
        run!(&mut transaction, sql; &project.id, name, project.created_at).await?;
        transaction.commit().await?;
        Ok(project)
    }

    /// Gives a project another name and other instructions.
    pub async fn change_project(&self, project: &str, name: &str, system_prompt: &str) -> Result<()> {
        let sql = "UPDATE projects SET name = ?2, system_prompt = ?3 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "folder", sql; project, name, system_prompt).await
    }

    /// Has the chats of a project ask these collections of documents.
    pub async fn set_project_collections(&self, project: &str, collections: &[String]) -> Result<()> {
        let sql = "UPDATE projects SET collections = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "folder", sql; project, to_json(&collections)).await
    }

    /// Deletes a project with its files; its chats stay, outside of it. [`History::restore_project`] takes that back as
    /// long as the trash is kept.
    pub async fn delete_project(&self, project: &str) -> Result<()> {
        let sql = "UPDATE projects SET deleted_at = coalesce(deleted_at, ?2) WHERE id = ?1";
        update!(self, "folder", sql; project, now()).await
    }

    /// Takes back that a project was deleted: those of its chats that were moved nowhere else lie in it again.
    pub async fn restore_project(&self, project: &str) -> Result<()> {
        update!(self, "folder", "UPDATE projects SET deleted_at = NULL WHERE id = ?1"; project).await
    }

    /// Puts a chat into a project, or into none.
    pub async fn move_chat(&self, chat: &str, project: Option<&str>) -> Result<()> {
        let mut transaction = self.write().await?;
        if let Some(project) = project {
            check_project(&mut transaction, project).await?;
        }
        let sql = "UPDATE chats SET project_id = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        change!(&mut transaction, "chat", sql; chat, project).await?;
        Ok(transaction.commit().await?)
    }
}

/// Fails unless there is such a project that is not deleted.
pub(crate) async fn check_project(db: &mut SqliteConnection, project: &str) -> Result<()> {
    let sql = "SELECT 1 FROM projects WHERE id = ? AND deleted_at IS NULL";
    let found: Option<i64> = value!(db, sql; project).await?;
    found.map(drop).ok_or(Error::NotFound("folder"))
}
