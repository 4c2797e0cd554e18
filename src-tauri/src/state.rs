//! What the commands share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use chat::Chat;
use engine::MlxEngine;
use hub::ModelFolder;
use protocol::Engine;

/// The rooms, put together once at start.
pub struct App {
    /// Chats and their answers.
    pub chat: Chat,
    /// The models on this computer.
    pub models: ModelFolder,
    /// What answers.
    pub engine: Arc<dyn Engine>,
    /// The folder of all data, the web views' own included.
    pub data_dir: PathBuf,
    /// When the process began, for the time to the first paint.
    pub started: Instant,
}

impl App {
    /// Opens the history in `data_dir` and starts the engine's thread; no model is loaded yet.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub async fn open(data_dir: &Path) -> protocol::Result<Self> {
        let started = Instant::now();
        let engine: Arc<dyn Engine> = Arc::new(MlxEngine::start());
        let models = ModelFolder::open();
        let chat = Chat::open(&data_dir.join("history.sqlite"), engine.clone(), Arc::new(models.clone())).await?;
        Ok(Self {
            chat,
            models,
            engine,
            data_dir: data_dir.to_owned(),
            started,
        })
    }
}
