//! Projects of a file: those that our own exports name.

use std::collections::BTreeMap;

use protocol::{Content, ImageBytes};
use serde::Deserialize;
use sqlx::SqliteConnection;

use super::limits::{believed, one_line};
use crate::projects::files::put;
use crate::{Error, History, Result};

/// The longest name, in characters; the window has the same limit.
const LONGEST_NAME: usize = 100;

/// The name of a project without one.
const UNNAMED: &str = "Untitled folder";

/// A project of a file, as [`History::export_project`] writes it.
#[derive(Debug, Deserialize)]
pub struct ImportedProject {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its instructions.
    #[serde(default)]
    pub system_prompt: String,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Its files, in order.
    #[serde(default)]
    pub files: Vec<Content>,
    /// Their texts by the names that they have for them.
    #[serde(default)]
    pub attachments: BTreeMap<String, ImportedAttachment>,
}

/// An image, or the text of a file.
#[derive(Debug, Deserialize)]
pub struct ImportedAttachment {
    pub(super) media_type: String,
    pub(super) base64: ImageBytes,
}

impl ImportedProject {
    /// Keeps the texts of its files and lets the files name them as they are kept; a file without a text is left out.
    pub(super) async fn keep_texts(&mut self, history: &History) -> Result<()> {
        for mut file in std::mem::take(&mut self.files) {
            let Content::File { attachment, .. } = &mut file else {
                continue;
            };
            let Some(text) = self.attachments.get(attachment.as_str()) else {
                continue;
            };
            let text = String::from_utf8_lossy(&text.base64).into_owned();
            *attachment = history.add_text(text).await?;
            self.files.push(file);
        }
        Ok(())
    }

    /// Stores it with its files; one that is here already, or was deleted here, stays as it is.
    pub(super) async fn store(&self, db: &mut SqliteConnection) -> Result<()> {
        let name = match one_line(&self.name, LONGEST_NAME) {
            name if name.is_empty() => UNNAMED.to_owned(),
            name => name,
        };
        let sql = "INSERT OR IGNORE INTO projects (id, name, system_prompt, created_at) VALUES (?, ?, ?, ?)";
        let created_at = believed(self.created_at);
        if run!(&mut *db, sql; &self.id, name, &self.system_prompt, created_at).await? == 0 {
            return Ok(());
        }
        for file in &self.files {
            match put(&mut *db, &self.id, file).await {
                Err(Error::ProjectFile(reason)) => tracing::warn!(reason, "a file of an imported project was left out"),
                put => put?,
            }
        }
        Ok(())
    }
}
