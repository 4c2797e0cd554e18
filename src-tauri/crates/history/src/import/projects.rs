//! Projects of a file: those that our own exports name.

use std::collections::BTreeMap;

use protocol::{Content, ImageBytes};
use serde::Deserialize;

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

impl History {
    /// Makes a project of a file with its files; one that is here already, or was deleted here, stays as it is.
    pub(super) async fn import_project(&self, project: ImportedProject) -> Result<()> {
        let mut files = Vec::with_capacity(project.files.len());
        for mut file in project.files {
            let Content::File { attachment, .. } = &mut file else {
                continue;
            };
            let Some(text) = project.attachments.get(attachment.as_str()) else {
                continue;
            };
            *attachment = self
                .add_text(String::from_utf8_lossy(&text.base64).into_owned())
                .await?;
            files.push(file);
        }
        let name = match one_line(&project.name, LONGEST_NAME) {
            name if name.is_empty() => UNNAMED.to_owned(),
            name => name,
        };
        let mut transaction = self.write().await?;
        let sql = "INSERT OR IGNORE INTO projects (id, name, system_prompt, created_at) VALUES (?, ?, ?, ?)";
        let created_at = believed(project.created_at);
        if run!(&mut transaction, sql; &project.id, name, &project.system_prompt, created_at).await? == 0 {
            return Ok(());
        }
        for file in &files {
            match put(&mut transaction, &project.id, file).await {
                Err(Error::ProjectFile(reason)) => tracing::warn!(reason, "a file of an imported project was left out"),
                put => put?,
            }
        }
        Ok(transaction.commit().await?)
    }
}
