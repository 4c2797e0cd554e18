//! The documents that a chat asks, for tools that search them.

use api::ChatSettings;
use protocol::{Error as Failure, ErrorCode, ModelSource, QuotedPassage, ReadingCost, Result};

use crate::chats::Chats;
use crate::request::build::RequestTemplate;
use crate::request::passages::{given, room};
use crate::request::reading::reading_cost;

/// The documents of a chat, and what its model was given of them.
#[derive(Debug, Clone)]
pub struct ChatDocuments {
    /// The collections of its project and its own, by their ids.
    pub collections: Vec<String>,
    /// The passages that it was given, as the branch is shown.
    pub given: Vec<QuotedPassage>,
    /// The tokens that further passages may take, about.
    pub most_tokens: u32,
    /// Its model.
    pub model: ModelSource,
}

impl Chats {
    /// The documents that a chat asks.
    ///
    /// # Errors
    /// `NotFound` if there is no such chat; `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn documents(&self, chat: &str) -> Result<ChatDocuments> {
        let view = self.core.history.chat(chat).await?;
        let project = self.core.history.project_of(chat).await?;
        let template = RequestTemplate::in_project(&self.core, project, view.settings).await?;
        Ok(ChatDocuments {
            most_tokens: room(&self.core, &template, &view.messages).await,
            given: given(&view.messages),
            collections: template.settings.collections,
            model: template.model,
        })
    }

    /// The cost of reading all documents of a chat for its next question.
    ///
    /// # Errors
    /// As [`Chats::documents`]; `NotFound` if it has no documents, `Storage` if they cannot be read.
    pub async fn reading_cost(&self, chat: &str) -> Result<ReadingCost> {
        let view = self.core.history.chat(chat).await?;
        let project = self.core.history.project_of(chat).await?;
        let template = RequestTemplate::in_project(&self.core, project, view.settings).await?;
        reading_cost(&self.core, &template, &view.messages).await
    }

    /// [`Chats::reading_cost`] of a chat that is not created yet, with these settings and in this project.
    ///
    /// # Errors
    /// As [`Chats::reading_cost`]; `NotFound` if there is no such project.
    pub async fn reading_cost_of_new(&self, project: Option<&str>, settings: ChatSettings) -> Result<ReadingCost> {
        let project = match project {
            Some(id) => {
                let known = self.core.history.projects().await?;
                let project = known.into_iter().find(|project| project.id == id);
                let missing = || Failure::new(ErrorCode::NotFound, "there is no such folder of chats");
                Some(project.ok_or_else(missing)?)
            }
            None => None,
        };
        let template = RequestTemplate::in_project(&self.core, project, settings).await?;
        reading_cost(&self.core, &template, &[]).await
    }
}
