//! Chats as files: exported for people and programs, imported from them.

use api::{ExportFormat, ImportPreview, ImportReport};
use history::{exported_together, page, read_import, with_projects};
use protocol::Result;
use serde_json::Value;

use crate::core::blocking;
use crate::library::imported_images::measure_images;
use crate::library::Library;

/// The number of titles in a preview.
const PREVIEWED_TITLES: usize = 5;

/// Refuses what holds no chats by how it begins, before all of it is read: `beginning` is its first kilobyte or more,
/// or all of it.
///
/// # Errors
/// `BadRequest` with a sentence that says what is wrong with it.
pub fn check_import_beginning(beginning: &[u8]) -> Result<()> {
    Ok(history::check_import_beginning(beginning)?)
}

impl Library {
    /// These chats, or all outside the trash, as one file; as JSON with the projects that they lie in.
    ///
    /// # Errors
    /// `NotFound` if one of them does not exist.
    pub async fn export(&self, chats: Option<&[String]>, format: ExportFormat) -> Result<String> {
        let history = &self.core.history;
        let all: Vec<String> = match chats {
            Some(chats) => chats.to_vec(),
            None => history.chats().await?.into_iter().map(|chat| chat.id).collect(),
        };
        match format {
            ExportFormat::Markdown => {
                let mut texts = Vec::new();
                for chat in &all {
                    texts.push(self.export_markdown(chat).await?);
                }
                Ok(texts.join("\n\n---\n\n"))
            }
            ExportFormat::Json => {
                let mut values = Vec::new();
                for chat in &all {
                    values.push(self.export_json(chat).await?);
                }
                let projects = self.exported_projects(&values).await?;
                let export = match values.len() {
                    1 => values.remove(0),
                    _ => exported_together(values),
                };
                Ok(with_projects(export, projects).to_string())
            }
            ExportFormat::Html => {
                let mut articles = Vec::new();
                for chat in &all {
                    let title = history.chat_head(chat).await?.0.summary.title;
                    let images = self.files.exported_images(chat).await?;
                    articles.push((title, history.export_html(chat, &images).await?));
                }
                Ok(page(&articles))
            }
        }
    }

    /// The projects that these exported chats lie in, each once.
    async fn exported_projects(&self, chats: &[Value]) -> Result<Vec<Value>> {
        let history = &self.core.history;
        let mut exported = Vec::new();
        for project in history.projects().await? {
            if chats.iter().any(|chat| chat["chat"]["project"] == project.id.as_str()) {
                exported.push(history.export_project(&project).await?);
            }
        }
        Ok(exported)
    }

    /// The branch of a chat that is looked at, as Markdown, its images without the place and the camera that their
    /// files tell of.
    pub async fn export_markdown(&self, chat: &str) -> Result<String> {
        let images = self.files.exported_images(chat).await?;
        Ok(self.core.history.export_markdown(chat, &images).await?)
    }

    /// All of a chat, every branch, as JSON, its images without the place and the camera that their files tell of.
    pub async fn export_json(&self, chat: &str) -> Result<Value> {
        let images = self.files.exported_images(chat).await?;
        Ok(self.core.history.export_json(chat, &images).await?)
    }

    /// Stores the chats of a file that Ponder, ChatGPT, Claude or LM Studio wrote. Those that are here already stay as
    /// they are. Images that cannot be shown are left out.
    ///
    /// # Errors
    /// `BadRequest` with a sentence about a file that holds no chats; nothing is changed then.
    pub async fn import(&self, file: Vec<u8>) -> Result<ImportReport> {
        // A long file takes a while to read.
        let read = move || {
            let mut file = read_import(&file)?;
            file.chats.iter_mut().for_each(measure_images);
            Ok::<_, history::Error>(file)
        };
        let chats = blocking(read).await??;
        self.core.change(self.core.history.import(chats)).await
    }

    /// Previews a file of chats; nothing of it is stored.
    ///
    /// # Errors
    /// As [`Library::import`].
    pub async fn look_into_import(&self, file: Vec<u8>) -> Result<ImportPreview> {
        let chats = blocking(move || read_import(&file)).await??.chats;
        Ok(ImportPreview {
            chats: chats.len(),
            messages: chats.iter().map(|chat| chat.messages.len()).sum(),
            titles: chats
                .into_iter()
                .take(PREVIEWED_TITLES)
                .map(|chat| chat.title)
                .collect(),
        })
    }
}
