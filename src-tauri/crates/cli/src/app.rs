//! The app, put together for one command.

use std::sync::Arc;

use anyhow::Result;
use chat::Chat;
use engine::MlxEngine;
use hub::{Hub, ModelFolder};
use net::{Net, Settings};
use protocol::{Engine, FolderSource};

/// What most commands need.
pub struct App {
    /// Chats and settings, the same as the window's.
    pub chat: Chat,
    /// The models on this computer.
    pub models: ModelFolder,
    /// What answers; nothing is loaded until it is asked.
    pub engine: MlxEngine,
}

impl App {
    /// Opens the same data as the window.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub async fn open() -> Result<Self> {
        let engine = engine()?;
        let models = ModelFolder::open();
        let shared: Arc<dyn Engine> = Arc::new(engine.clone());
        let chat = Chat::open(&hub::data_dir()?.join("history.sqlite"), shared, Arc::new(models.clone())).await?;
        Ok(Self { chat, models, engine })
    }

    /// The model of this reference, or the default model.
    ///
    /// # Errors
    /// When it is not on this computer.
    pub async fn model(&self, reference: Option<&str>) -> Result<FolderSource> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.chat.default_model().await?,
        };
        Ok(self.models.find(&reference).map_err(protocol::Error::from)?)
    }
}

/// The models here and on the hub, with the same settings as the window.
///
/// # Errors
/// When this computer names no place for its data.
pub fn hub() -> Result<Hub> {
    let data = hub::data_dir()?;
    Ok(Hub::open(Net::open(Settings::of_this_computer(&data)), ModelFolder::open(), &data))
}

/// The model of this reference, or the default model, for commands that keep nothing: the history, which knows the default,
/// is left alone where a model is named.
///
/// # Errors
/// When it is not on this computer, or the history cannot be opened.
pub async fn model(reference: Option<&str>) -> Result<FolderSource> {
    match reference {
        Some(reference) => Ok(ModelFolder::open().find(reference).map_err(protocol::Error::from)?),
        None => App::open().await?.model(None).await,
    }
}

/// The engine, with a memory guard so that it ends an answer before the system ends the program.
fn engine() -> Result<MlxEngine> {
    Ok(MlxEngine::with_memory_guard(Arc::new(hub::memory_fit::SystemMemoryGuard::new(
        &hub::data_dir()?,
    ))))
}

/// What answers, and [`model`].
///
/// # Errors
/// As [`model`].
pub async fn engine_and_model(reference: Option<&str>) -> Result<(MlxEngine, FolderSource)> {
    match reference {
        Some(_) => Ok((engine()?, model(reference).await?)),
        None => {
            let app = App::open().await?;
            let model = app.model(None).await?;
            Ok((app.engine, model))
        }
    }
}
