//! Projects: folders of chats, with instructions and files of their own.

use std::sync::Arc;

use api::{ChatSettings, Folder};
use protocol::{Content, Error as Failure, Result};

use crate::core::Core;
use crate::request::ahead::{open_chat, prefetch_files};
use crate::request::build::RequestTemplate;

/// Folders of chats, with instructions and files of their own.
#[derive(Clone)]
pub struct Projects {
    core: Arc<Core>,
}

impl Projects {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// All folders, by their names.
    pub async fn list(&self) -> Result<Vec<Folder>> {
        Ok(self.core.history.projects().await?)
    }

    /// A new folder without chats.
    pub async fn create(&self, name: &str) -> Result<Folder> {
        let folder = self.core.history.create_project(name).await?;
        self.core.changed();
        Ok(folder)
    }

    /// Gives a folder another name and other instructions, which hold from the next answer on.
    pub async fn change(&self, folder: &str, name: &str, system_prompt: &str) -> Result<()> {
        self.core.history.change_project(folder, name, system_prompt).await?;
        self.core.changed();
        Ok(())
    }

    /// Puts a file that was added ([`crate::Files::add_file`]) into a folder; from the next answer on every chat in it
    /// takes its text along. One whose text is in the folder already gets this name and this part.
    ///
    /// # Errors
    /// `BadRequest` for what is no file, and for more files or more text than a folder may hold, with a sentence;
    /// `NotFound` for the folder or the text.
    pub async fn put_file(&self, folder: &str, file: &Content) -> Result<()> {
        self.core.history.put_project_file(folder, file).await?;
        self.core.changed();
        Ok(())
    }

    /// Takes a file out of a folder; [`Projects::put_file`] brings it back to its place.
    ///
    /// # Errors
    /// `NotFound` if it is not in the folder.
    pub async fn remove_file(&self, folder: &str, attachment: &str) -> Result<()> {
        self.core.history.remove_project_file(folder, attachment).await?;
        self.core.changed();
        Ok(())
    }

    /// Deletes a folder; its chats stay, outside of it.
    pub async fn delete(&self, folder: &str) -> Result<()> {
        self.core.history.delete_project(folder).await?;
        self.core.changed();
        Ok(())
    }

    /// Takes back that a folder was deleted.
    pub async fn restore(&self, folder: &str) -> Result<()> {
        self.core.history.restore_project(folder).await?;
        self.core.changed();
        Ok(())
    }

    /// Puts a chat into a folder, or into none.
    pub async fn move_chat(&self, chat: &str, folder: Option<&str>) -> Result<()> {
        self.core.history.move_chat(chat, folder).await?;
        self.core.changed();
        // The folder's instructions and files stand before all the rest.
        open_chat(&self.core, chat).await.map(drop)
    }

    /// Lets the engine read the files of a folder, when it has nothing else to do, because a chat with these settings
    /// is about to begin there. A folder without files changes nothing.
    ///
    /// # Errors
    /// `NotFound` for the folder; `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn prefetch(&self, folder: &str, settings: ChatSettings) -> Result<()> {
        let folder = self
            .core
            .history
            .projects()
            .await?
            .into_iter()
            .find(|known| known.id == folder);
        let folder = folder.ok_or_else(|| Failure::from(history::Error::NotFound("folder")))?;
        let template = RequestTemplate::in_project(&self.core, Some(folder), settings).await?;
        prefetch_files(&self.core, &template).await;
        Ok(())
    }
}
