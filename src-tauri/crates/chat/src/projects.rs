//! Projects: folders of chats, with instructions and files of their own.

use std::sync::Arc;

use api::{ChatSettings, Project};
use protocol::{Content, Error as Failure, Result};

use crate::core::Core;
use crate::request::ahead::{open_chat, prefetch_files};
use crate::request::build::RequestTemplate;

/// Projects: folders of chats, with instructions and files of their own.
#[derive(Clone)]
pub struct Projects {
    core: Arc<Core>,
}

impl Projects {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// All projects, by their names.
    pub async fn list(&self) -> Result<Vec<Project>> {
        Ok(self.core.history.projects().await?)
    }

    /// A new project without chats.
    pub async fn create(&self, name: &str) -> Result<Project> {
        self.core.change(self.core.history.create_project(name)).await
    }

    /// Gives a project another name and other instructions, which hold from the next answer on.
    pub async fn change(&self, project: &str, name: &str, system_prompt: &str) -> Result<()> {
        self.core
            .change(self.core.history.change_project(project, name, system_prompt))
            .await
    }

    /// Puts a file that was added ([`crate::Files::add_file`]) into a project; from the next answer on every chat in it
    /// takes its text along. One whose text is in the project already gets this name and this part.
    ///
    /// # Errors
    /// `BadRequest` for what is no file, and for more files or more text than a project may hold, with a sentence;
    /// `NotFound` for the project or the text.
    pub async fn put_file(&self, project: &str, file: &Content) -> Result<()> {
        self.core
            .change(self.core.history.put_project_file(project, file))
            .await
    }

    /// Takes a file out of a project; [`Projects::put_file`] brings it back to its place.
    ///
    /// # Errors
    /// `NotFound` if it is not in the project.
    pub async fn remove_file(&self, project: &str, attachment: &str) -> Result<()> {
        self.core
            .change(self.core.history.remove_project_file(project, attachment))
            .await
    }

    /// Has the chats of a project ask these collections of documents, from the next question on.
    pub async fn set_collections(&self, project: &str, collections: &[String]) -> Result<()> {
        let set = self.core.history.set_project_collections(project, collections);
        self.core.change(set).await
    }

    /// Deletes a project; its chats stay, outside of it.
    pub async fn delete(&self, project: &str) -> Result<()> {
        self.core.change(self.core.history.delete_project(project)).await
    }

    /// Takes back that a project was deleted.
    pub async fn restore(&self, project: &str) -> Result<()> {
        self.core.change(self.core.history.restore_project(project)).await
    }

    /// Puts a chat into a project, or into none.
    pub async fn move_chat(&self, chat: &str, project: Option<&str>) -> Result<()> {
        self.core.change(self.core.history.move_chat(chat, project)).await?;
        // The project's instructions and files stand before all the rest.
        open_chat(&self.core, chat).await.map(drop)
    }

    /// Lets the engine read the files of a project, when it has nothing else to do, because a chat with these settings
    /// is about to begin there. A project without files changes nothing.
    ///
    /// # Errors
    /// `NotFound` for the project; `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn prefetch(&self, project: &str, settings: ChatSettings) -> Result<()> {
        let known = self.core.history.projects().await?;
        let project = known.into_iter().find(|known| known.id == project);
        let project = project.ok_or_else(|| Failure::from(history::Error::NotFound("folder")))?;
        let template = RequestTemplate::in_project(&self.core, Some(project), settings).await?;
        prefetch_files(&self.core, &template).await;
        Ok(())
    }
}
