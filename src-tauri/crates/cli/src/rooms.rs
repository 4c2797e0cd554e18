//! The rooms, put together for one command.

use std::sync::Arc;

use anyhow::Result;
use chat::Chat;
use engine::MlxEngine;
use hub::ModelFolder;
use protocol::{Engine, ModelSource};

/// What most commands need.
pub struct Rooms {
    /// Chats and settings, the same as the window's.
    pub chat: Chat,
    /// The models on this computer.
    pub models: ModelFolder,
    /// What answers; nothing is loaded until it is asked.
    pub engine: MlxEngine,
}

impl Rooms {
    /// Opens the same data as the window.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub async fn open() -> Result<Self> {
        let engine = MlxEngine::start();
        let models = ModelFolder::open();
        let shared: Arc<dyn Engine> = Arc::new(engine.clone());
        let chat = Chat::open(&hub::data_dir()?.join("history.sqlite"), shared, Arc::new(models.clone())).await?;
        Ok(Self { chat, models, engine })
    }

    /// The model of this reference, or the default model.
    ///
    /// # Errors
    /// When it is not on this computer.
    pub async fn model(&self, reference: Option<&str>) -> Result<ModelSource> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.chat.default_model().await?,
        };
        Ok(self.models.find(&reference).map_err(protocol::Error::from)?)
    }
}
