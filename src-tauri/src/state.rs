//! What the commands share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chat::Chat;
use engine::MlxEngine;
use hub::ModelFolder;
use protocol::Engine;
use tokio::time::timeout;

/// How long the end of the app waits for the engine.
const ENGINE_RESTS: Duration = Duration::from_secs(2);

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

    /// Stores the last words of running answers, then waits until the engine rests: a process that ends while MLX computes
    /// may crash at its very end.
    pub async fn shut_down(&self) {
        self.chat.shut_down().await;
        if !matches!(timeout(ENGINE_RESTS, self.engine.unload()).await, Ok(Ok(()))) {
            tracing::warn!("the engine was still at work when the app ended");
        }
    }
}
