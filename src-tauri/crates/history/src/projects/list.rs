//! The table `projects`: projects of chats, with instructions and files of their own.

use api::Project;
use sqlx::{Sqlite, Transaction};

use crate::stamp::new_id;
use crate::{now, Error, History, Result};

struct ProjectRow {
    id: String,
    name: String,
    system_prompt: String,
    created_at: i64,
}

from_row!(ProjectRow: id, name, system_prompt, created_at);

impl From<ProjectRow> for Project {
    fn from(row: ProjectRow) -> Self {
        let ProjectRow {
            id,
            name,
            system_prompt,
            created_at,
        } = row;
        Project {
            id,
            name,
            system_prompt,
            files: Vec::new(),
            created_at,
        }
    }
}

impl History {
    /// All projects with their files, by their names.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        let rows: Vec<ProjectRow> = sqlx::query_as(
            "SELECT id, name, system_prompt, created_at FROM projects WHERE deleted_at IS NULL ORDER BY name COLLATE NOCASE, id",
        )
        .fetch_all(&self.readers)
        .await?;
        self.with_files(rows.into_iter().map(Project::from).collect()).await
    }

    /// The project of a chat with its files, if it lies in one.
    pub async fn project_of(&self, chat: &str) -> Result<Option<Project>> {
        let row: Option<ProjectRow> = sqlx::query_as(
            "SELECT f.id, f.name, f.system_prompt, f.created_at FROM chats c JOIN projects f ON f.id = c.project_id
              WHERE c.id = ? AND f.deleted_at IS NULL",
        )
        .bind(chat)
        .fetch_optional(&self.readers)
        .await?;
        Ok(self
            .with_files(row.map(Project::from).into_iter().collect())
            .await?
            .pop())
    }

    /// A new project without chats and files.
    pub async fn create_project(&self, name: &str) -> Result<Project> {
        let project = Project {
            id: new_id(),
            name: name.to_owned(),
            system_prompt: String::new(),
            files: Vec::new(),
            created_at: now(),
        };
        let mut transaction = self.write().await?;
        sqlx::query("INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?)")
            .bind(&project.id)
            .bind(&project.name)
            .bind(project.created_at)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(project)
    }

    /// Gives a project another name and other instructions.
    pub async fn change_project(&self, project: &str, name: &str, system_prompt: &str) -> Result<()> {
        self.update_project(
            sqlx::query("UPDATE projects SET name = ?2, system_prompt = ?3 WHERE id = ?1 AND deleted_at IS NULL")
                .bind(project)
                .bind(name)
                .bind(system_prompt),
        )
        .await
    }

    /// Deletes a project with its files; its chats stay, outside of it. [`History::restore_project`] takes that back as
    /// long as the trash is kept.
    pub async fn delete_project(&self, project: &str) -> Result<()> {
        self.update_project(
            sqlx::query("UPDATE projects SET deleted_at = coalesce(deleted_at, ?2) WHERE id = ?1")
                .bind(project)
                .bind(now()),
        )
        .await
    }

    /// Takes back that a project was deleted: those of its chats that were moved nowhere else lie in it again.
    pub async fn restore_project(&self, project: &str) -> Result<()> {
        self.update_project(sqlx::query("UPDATE projects SET deleted_at = NULL WHERE id = ?1").bind(project))
            .await
    }

    /// Puts a chat into a project, or into none.
    pub async fn move_chat(&self, chat: &str, project: Option<&str>) -> Result<()> {
        let mut transaction = self.write().await?;
        if let Some(project) = project {
            check_project(&mut transaction, project).await?;
        }
        let moved = sqlx::query("UPDATE chats SET project_id = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(project)
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() == 0 {
            return Err(Error::NotFound("chat"));
        }
        Ok(transaction.commit().await?)
    }

    async fn update_project(
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

/// Fails unless there is such a project that is not deleted.
pub(crate) async fn check_project(transaction: &mut Transaction<'static, Sqlite>, project: &str) -> Result<()> {
    let found: Option<i64> = sqlx::query_scalar("SELECT 1 FROM projects WHERE id = ? AND deleted_at IS NULL")
        .bind(project)
        .fetch_optional(&mut **transaction)
        .await?;
    found.map(drop).ok_or(Error::NotFound("folder"))
}
