//! The table `project_files`: files whose texts every chat in a project takes along. A text is in a project once; what
//! is removed lies in the trash as long as a project does, and comes back to its place.

use std::collections::HashMap;

use api::Project;
use protocol::Content;
use sqlx::sqlite::SqliteRow;
use sqlx::SqliteConnection;

use crate::json::to_json;
use crate::projects::list::{check_project, project};
use crate::{now, Error, History, Result};

/// The most files of a project.
const MOST_FILES: i64 = 100;
/// The most bytes of text of all files of a project, as a single file may have: more than the context of any model
/// holds, and all of it is read for each question.
const MOST_TEXT: i64 = 10_000_000;

impl History {
    /// Puts a file into a project, at the end. One whose text is in it already, or was removed from it, gets this name
    /// and this part in the place that it has.
    ///
    /// # Errors
    /// [`Error::ProjectFile`] for what is no file, and if the project would hold more than one may; [`Error::NotFound`]
    /// for the project, and for a text that is not kept.
    pub async fn put_project_file(&self, project: &str, file: &Content) -> Result<()> {
        let mut transaction = self.write().await?;
        check_project(&mut transaction, project).await?;
        put(&mut transaction, project, file).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes a file out of a project; [`History::put_project_file`] brings it back as long as the trash is kept.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the project, and for a file that is not in it.
    pub async fn remove_project_file(&self, project: &str, attachment: &str) -> Result<()> {
        let mut transaction = self.write().await?;
        check_project(&mut transaction, project).await?;
        let sql = "UPDATE project_files SET removed_at = ?3
                    WHERE project_id = ?1 AND sha256 = ?2 AND removed_at IS NULL";
        change!(&mut transaction, "file", sql; project, attachment, now()).await?;
        Ok(transaction.commit().await?)
    }

    /// The projects of these rows with their files. A file that cannot be read is left out.
    pub(super) async fn with_files(&self, rows: Vec<SqliteRow>) -> Result<Vec<Project>> {
        let mut projects: Vec<Project> = rows.iter().map(project).collect::<sqlx::Result<_>>()?;
        let ids: Vec<&str> = projects.iter().map(|project| project.id.as_str()).collect();
        // As bytes, because damage may leave what is no text.
        let rows: Vec<(String, Vec<u8>)> = rows!(
            &self.readers,
            "SELECT project_id, CAST(content AS BLOB) FROM project_files
              WHERE project_id IN (SELECT value FROM json_each(?)) AND removed_at IS NULL
              ORDER BY project_id, position, sha256";
            to_json(&ids)
        )
        .await?;
        let mut files: HashMap<String, Vec<Content>> = HashMap::new();
        for (project, content) in rows {
            match serde_json::from_slice(&content) {
                Ok(file) => files.entry(project).or_default().push(file),
                Err(error) => tracing::warn!(%error, "a file of a project cannot be read"),
            }
        }
        for project in &mut projects {
            project.files = files.remove(&project.id).unwrap_or_default();
        }
        Ok(projects)
    }
}

/// Puts a file into a project that is there.
pub(crate) async fn put(db: &mut SqliteConnection, project: &str, file: &Content) -> Result<()> {
    let Content::File { attachment, .. } = file else {
        return Err(Error::ProjectFile("only documents can be in a folder".into()));
    };
    let bytes: Option<i64> = value!(&mut *db, "SELECT bytes FROM attachments WHERE sha256 = ?"; attachment).await?;
    let bytes = bytes.ok_or(Error::NotFound("file"))?;
    let others: Option<(i64, i64)> = row!(
        &mut *db,
        "SELECT count(*), coalesce(sum(a.bytes), 0) FROM project_files f LEFT JOIN attachments a ON a.sha256 = f.sha256
          WHERE f.project_id = ? AND f.sha256 <> ? AND f.removed_at IS NULL";
        project, attachment
    )
    .await?;
    let (others, taken) = others.unwrap_or_default();
    if others >= MOST_FILES {
        return Err(Error::ProjectFile(format!(
            "it has {MOST_FILES} files, and no more can be in a folder. Remove one first"
        )));
    }
    if taken + bytes > MOST_TEXT {
        let all = (taken + bytes) as f64 / 1e6;
        return Err(Error::ProjectFile(format!(
            "with it the files of the folder would have {all:.1} MB of text, and no model reads more than {} MB. Remove one first",
            MOST_TEXT / 1_000_000
        )));
    }
    run!(
        db,
        "INSERT INTO project_files (project_id, sha256, position, content)
         VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM project_files WHERE project_id = ?1), ?3)
         ON CONFLICT (project_id, sha256) DO UPDATE SET content = excluded.content, removed_at = NULL";
        project, attachment, to_json(file)
    )
    .await?;
    Ok(())
}
