//! Folders of a file: those that our own exports name.

use std::collections::BTreeMap;

use protocol::{Content, ImageBytes};

use super::limits::{believed, one_line};
use crate::projects::files::put;
use crate::{Error, History, Result};

/// The longest name, in characters; the window has the same limit.
const LONGEST_NAME: usize = 100;

/// The name of a folder without one.
const UNNAMED: &str = "Untitled folder";

/// A folder of a file.
#[derive(Debug)]
pub struct ImportedFolder {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its instructions.
    pub system_prompt: String,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Its files, in order.
    pub files: Vec<Content>,
    /// Their texts by the names that they have for them.
    pub texts: BTreeMap<String, ImageBytes>,
}

impl History {
    /// Makes a folder of a file with its files; one that is here already, or was deleted here, stays as it is.
    pub(super) async fn import_folder(&self, folder: ImportedFolder) -> Result<()> {
        let mut files = Vec::with_capacity(folder.files.len());
        for mut file in folder.files {
            let Content::File { attachment, .. } = &mut file else {
                continue;
            };
            let Some(text) = folder.texts.get(attachment.as_str()) else {
                continue;
            };
            *attachment = self.add_text(String::from_utf8_lossy(text).into_owned()).await?;
            files.push(file);
        }
        let name = match one_line(&folder.name, LONGEST_NAME) {
            name if name.is_empty() => UNNAMED.to_owned(),
            name => name,
        };
        let mut transaction = self.write().await?;
        let made =
            sqlx::query("INSERT OR IGNORE INTO folders (id, name, system_prompt, created_at) VALUES (?, ?, ?, ?)")
                .bind(&folder.id)
                .bind(name)
                .bind(&folder.system_prompt)
                .bind(believed(folder.created_at))
                .execute(&mut *transaction)
                .await?;
        if made.rows_affected() == 0 {
            return Ok(());
        }
        for file in &files {
            match put(&mut transaction, &folder.id, file).await {
                Err(Error::FolderFile(reason)) => tracing::warn!(reason, "a file of an imported folder was left out"),
                put => put?,
            }
        }
        Ok(transaction.commit().await?)
    }
}
