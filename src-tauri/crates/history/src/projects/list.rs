//! The table `folders`: projects of chats, with instructions and files of their own.

use api::Folder;
use sqlx::{Sqlite, Transaction};

use crate::stamp::new_id;
use crate::{now, Error, History, Result};

struct FolderRow {
    id: String,
    name: String,
    system_prompt: String,
    created_at: i64,
}

from_row!(FolderRow: id, name, system_prompt, created_at);

impl From<FolderRow> for Folder {
    fn from(row: FolderRow) -> Self {
        let FolderRow {
            id,
            name,
            system_prompt,
            created_at,
        } = row;
        Folder {
            id,
            name,
            system_prompt,
            files: Vec::new(),
            created_at,
        }
    }
}

impl History {
    /// All folders with their files, by their names.
    pub async fn projects(&self) -> Result<Vec<Folder>> {
        let rows: Vec<FolderRow> = sqlx::query_as(
            "SELECT id, name, system_prompt, created_at FROM folders WHERE deleted_at IS NULL ORDER BY name COLLATE NOCASE, id",
        )
        .fetch_all(&self.readers)
        .await?;
        self.with_files(rows.into_iter().map(Folder::from).collect()).await
    }

    /// The folder of a chat with its files, if it lies in one.
    pub async fn project_of(&self, chat: &str) -> Result<Option<Folder>> {
        let row: Option<FolderRow> = sqlx::query_as(
            "SELECT f.id, f.name, f.system_prompt, f.created_at FROM chats c JOIN folders f ON f.id = c.folder_id
              WHERE c.id = ? AND f.deleted_at IS NULL",
        )
        .bind(chat)
        .fetch_optional(&self.readers)
        .await?;
        Ok(self
            .with_files(row.map(Folder::from).into_iter().collect())
            .await?
            .pop())
    }

    /// A new folder without chats and files.
    pub async fn create_project(&self, name: &str) -> Result<Folder> {
        let folder = Folder {
            id: new_id(),
            name: name.to_owned(),
            system_prompt: String::new(),
            files: Vec::new(),
            created_at: now(),
        };
        let mut transaction = self.write().await?;
        sqlx::query("INSERT INTO folders (id, name, created_at) VALUES (?, ?, ?)")
            .bind(&folder.id)
            .bind(&folder.name)
            .bind(folder.created_at)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(folder)
    }

    /// Gives a folder another name and other instructions.
    pub async fn change_project(&self, folder: &str, name: &str, system_prompt: &str) -> Result<()> {
        self.update_folder(
            sqlx::query("UPDATE folders SET name = ?2, system_prompt = ?3 WHERE id = ?1 AND deleted_at IS NULL")
                .bind(folder)
                .bind(name)
                .bind(system_prompt),
        )
        .await
    }

    /// Deletes a folder with its files; its chats stay, outside of it. [`History::restore_project`] takes that back as
    /// long as the trash is kept.
    pub async fn delete_project(&self, folder: &str) -> Result<()> {
        self.update_folder(
            sqlx::query("UPDATE folders SET deleted_at = coalesce(deleted_at, ?2) WHERE id = ?1")
                .bind(folder)
                .bind(now()),
        )
        .await
    }

    /// Takes back that a folder was deleted: those of its chats that were moved nowhere else lie in it again.
    pub async fn restore_project(&self, folder: &str) -> Result<()> {
        self.update_folder(sqlx::query("UPDATE folders SET deleted_at = NULL WHERE id = ?1").bind(folder))
            .await
    }

    /// Puts a chat into a folder, or into none.
    pub async fn move_chat(&self, chat: &str, folder: Option<&str>) -> Result<()> {
        let mut transaction = self.write().await?;
        if let Some(folder) = folder {
            check_project(&mut transaction, folder).await?;
        }
        let moved = sqlx::query("UPDATE chats SET folder_id = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(folder)
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() == 0 {
            return Err(Error::NotFound("chat"));
        }
        Ok(transaction.commit().await?)
    }

    async fn update_folder(
        &self,
        update: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<()> {
        let mut transaction = self.write().await?;
        if update.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Err(Error::NotFound("folder"));
        }
        Ok(transaction.commit().await?)
    }
}

/// Fails unless there is such a folder that is not deleted.
pub(crate) async fn check_project(transaction: &mut Transaction<'static, Sqlite>, folder: &str) -> Result<()> {
    let found: Option<i64> = sqlx::query_scalar("SELECT 1 FROM folders WHERE id = ? AND deleted_at IS NULL")
        .bind(folder)
        .fetch_optional(&mut **transaction)
        .await?;
    found.map(drop).ok_or(Error::NotFound("folder"))
}
