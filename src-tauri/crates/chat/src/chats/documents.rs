//! The documents that a chat asks, for tools that search them.

use protocol::{ModelSource, QuotedPassage, Result};

use crate::chats::Chats;
use crate::request::build::RequestTemplate;
use crate::request::passages::{given, room};

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
}
