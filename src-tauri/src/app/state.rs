//! The state that the commands share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{Endpoint, ModelShelf, RunningAnswer, Settings};
use chat::Chat;
use engine::{EngineOptions, MlxEngine};
use engine_socket::EngineSocket;
use hub::memory_fit::SystemMemoryGuard;
use hub::{Hub, ModelFolder};
use knowledge::Knowledge;
use net::Net;
use protocol::{EngineRouter, LocalEngine, Reason};
use remote::{EndpointShelf, RemoteEngine};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tools::host::Tools;
use tools::stdio::Guard;

use crate::app::app_update::AppUpdates;
use crate::app::file_jobs::FileJobs;
use crate::app::local_server::LocalServer;
use crate::app::temporary::TemporaryChat;
use crate::app::tool_chats::ToolChats;
use crate::system::failed;

/// The time that quitting waits for the engine.
const ENGINE_SHUTDOWN: Duration = Duration::from_secs(2);

/// The time that quitting waits for downloads to record their progress.
const DOWNLOADS_SUSPEND: Duration = Duration::from_secs(3);

/// The file of the chats in the data folder.
pub const HISTORY: &str = "history.sqlite";

/// The index of documents in the data folder.
const DOCUMENTS: &str = "documents.sqlite";

/// The copy that is opened read-only if they cannot be opened.
const READABLE_HISTORY: &str = "history-readable.sqlite";

/// The folder for images that were dragged out of a window, in the data folder.
const DRAGGED: &str = "dragged";

/// The folder of MLX's compiled kernels.
pub fn compiled_kernels(data_dir: &Path) -> PathBuf {
    data_dir.join("mlx")
}

/// The parts of the app, created once at start.
pub struct App {
    /// Chats and their answers.
    pub chat: Chat,
    /// The chat of which nothing is written.
    pub temporary: Arc<TemporaryChat>,
    /// The models on this computer.
    pub models: ModelFolder,
    /// The hub and its downloads.
    pub hub: Hub,
    /// The guard of memory, which knows the models that the user loads anyway.
    pub memory_guard: SystemMemoryGuard,
    /// The engine for models of this computer.
    pub engine: Arc<dyn LocalEngine>,
    /// The same engine, for work that only MLX does.
    pub mlx: MlxEngine,
    /// The engine for models of endpoints.
    pub remote: RemoteEngine,
    /// The server for other programs, with the models of this computer only.
    pub server: LocalServer,
    /// The tools that models may call.
    pub tools: Tools,
    /// Collections of documents that chats ask.
    pub knowledge: Knowledge,
    /// Newer versions of the app.
    pub updates: AppUpdates,
    /// Lets commands such as `ponder ask` use this engine; `None` if another process shares its own already.
    _sharing: Option<EngineSocket>,
    /// The data folder, which also contains the web views' data.
    pub data_dir: PathBuf,
    /// The running imports of GGUF files.
    pub gguf_imports: FileJobs,
    /// The models that are being quantized.
    pub quantizations: FileJobs,
    /// Cancels running checks when the app ends.
    pub stop: CancellationToken,
    /// Set once everything is stored and the app may end.
    ended: OnceCell<()>,
    /// The start of the process, to measure the time to the first paint.
    pub started: Instant,
}

impl App {
    /// Opens the history in `data_dir`, or its read-only copy, and starts the engine's thread; no model is loaded yet.
    /// `releases` is the list of newer versions, if the build takes updates.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub async fn open(data_dir: &Path, read_only: bool, releases: Option<String>) -> protocol::Result<Self> {
        let started = Instant::now();
        // The programs that received one have copied it.
        if let Err(error) = files::found(std::fs::remove_dir_all(data_dir.join(DRAGGED))) {
            tracing::warn!("dragged images stay on the disk: {error}");
        }
        let memory_guard = SystemMemoryGuard::new(data_dir);
        let mlx = MlxEngine::with_options(EngineOptions {
            memory_guard: Some(Arc::new(memory_guard.clone())),
            cache_dir: Some(compiled_kernels(data_dir)),
            metal_library: hub::metal_library(),
            ..EngineOptions::default()
        });
        let engine: Arc<dyn LocalEngine> = Arc::new(mlx.clone());
        let sharing = EngineSocket::listen(data_dir, engine.clone()).unwrap_or_else(|error| {
            tracing::warn!(%error, "other programs load the weights a second time");
            None
        });
        let models = ModelFolder::open();
        let net = Net::open(net::Settings::of_this_computer(data_dir));
        let hub = Hub::open(net.clone(), models.clone(), data_dir);
        let updates = AppUpdates::new(net.clone(), releases);
        // The settings, endpoints and model folders among them, are in the history, which is opened along with the
        // engine.
        let remote = RemoteEngine::new(net.clone(), Handle::current(), Vec::new());
        let router = EngineRouter::new(engine.clone(), Arc::new(remote.clone()));
        let shelf: Arc<dyn ModelShelf> = Arc::new(EndpointShelf::new(Arc::new(models.clone()), remote.clone()));
        let chat = match read_only {
            true => Chat::open_read_only(&data_dir.join(READABLE_HISTORY), Arc::new(router), shelf).await?,
            false => Chat::open(&data_dir.join(HISTORY), Arc::new(router), shelf).await?,
        };
        let guard = Guard::of_this_program().map_err(failed(Reason::PonderFault, "the tools could not be opened"))?;
        let temporary = Arc::<TemporaryChat>::default();
        let all = EngineRouter::new(engine.clone(), Arc::new(remote.clone()));
        let knowledge = Knowledge::new(&data_dir.join(DOCUMENTS), Arc::new(all), Arc::new(models.clone()));
        knowledge.set_chats(Arc::new(chat.library().clone()));
        chat.set_passage_source(Arc::new(knowledge.clone()));
        let documents = Arc::new(knowledge.clone());
        let server = LocalServer::new(Arc::new(mlx.clone()), Arc::new(models.clone()), documents, net.clone());
        let read = Arc::new(ToolChats {
            stored: chat.clone(),
            temporary: temporary.clone(),
            knowledge: knowledge.clone(),
            numbers: Mutex::default(),
        });
        let tools = Tools::open(data_dir, net, Arc::new(net::SystemKeychain), read, guard, true);
        chat.set_toolbox(Arc::new(tools.clone()));
        let app = Self {
            chat,
            temporary,
            models,
            hub,
            memory_guard,
            engine,
            mlx,
            remote,
            server,
            tools,
            knowledge,
            updates,
            _sharing: sharing,
            data_dir: data_dir.to_owned(),
            gguf_imports: FileJobs::default(),
            quantizations: FileJobs::default(),
            stop: CancellationToken::new(),
            ended: OnceCell::new(),
            started,
        };
        app.apply(&app.chat.settings().get().await?);
        Ok(app)
    }

    /// Passes each crate its settings.
    pub fn apply(&self, settings: &Settings) {
        self.models
            .set_own_folders(settings.model_folders.iter().map(PathBuf::from).collect());
        if self.remote.endpoints() != settings.endpoints {
            self.remote.set_endpoints(settings.endpoints.clone());
        }
        if self.knowledge.choose_model(settings.embedding_model.clone()) {
            self.embed_documents();
        }
    }

    /// Embeds the passages of documents in the background, if there is a model that has not embedded them.
    pub fn embed_documents(&self) {
        let knowledge = self.knowledge.clone();
        tauri::async_runtime::spawn(async move {
            if let Err(error) = knowledge.models_changed().await {
                tracing::warn!(%error, "passages could not be embedded by another model");
            }
        });
    }

    /// Stores the list of model folders after a change.
    ///
    /// # Errors
    /// If the history cannot be written; the folders are as they were then.
    pub async fn store_folders(&self) -> protocol::Result<()> {
        let folders = self.models.own_folders();
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let change = serde_json::Map::from_iter([("model_folders".to_owned(), folders.into())]);
        let stored = self.chat.settings().change(&change).await;
        if stored.is_err() {
            self.apply(&self.chat.settings().get().await?);
        }
        stored.map(drop)
    }

    /// The stored endpoints; another process may have changed them.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub async fn endpoints(&self) -> protocol::Result<Vec<Endpoint>> {
        let endpoints = self.chat.settings().endpoints().await?;
        if self.remote.endpoints() != endpoints {
            self.remote.set_endpoints(endpoints.clone());
        }
        Ok(endpoints)
    }

    /// Stores these endpoints and uses them from now on.
    ///
    /// # Errors
    /// When the history cannot be written; the endpoints are as they were then.
    pub async fn store_endpoints(&self, endpoints: Vec<Endpoint>) -> protocol::Result<()> {
        self.chat.settings().set_endpoints(&endpoints).await?;
        self.remote.set_endpoints(endpoints);
        Ok(())
    }

    /// The list that a chat or a message of this id is in.
    pub async fn chat_of(&self, id: &str) -> Chat {
        self.temporary.holding(id).await.unwrap_or_else(|| self.chat.clone())
    }

    /// The list that keeps this image or file.
    pub async fn chat_with(&self, attachment: &str) -> Chat {
        let temporary = self.temporary.with_attachment(attachment).await;
        temporary.unwrap_or_else(|| self.chat.clone())
    }

    /// The answers that are being written, of temporary and other chats.
    pub fn running(&self) -> Vec<RunningAnswer> {
        let mut running = self.chat.answers().running();
        running.extend(self.temporary.running());
        running
    }

    /// Memory that loading another model would free, in bytes.
    pub async fn engine_bytes(&self) -> u64 {
        let memory = self.engine.memory().await;
        memory.map_or(0, |memory| memory.active + memory.cache)
    }

    /// Records the actual memory peak of the loaded model, for later estimates.
    pub async fn record_peak(&self) {
        // With several models loaded the peak cannot be attributed.
        let models = self.engine.loaded();
        let ([loaded], Ok(memory)) = (&models[..], self.engine.memory().await) else {
            return;
        };
        let peaks = self.hub.memory();
        if let Err(error) = peaks.record_peak(&loaded.reference, Some(&loaded.revision), memory.peak) {
            tracing::warn!("what the model took is not kept: {error}");
        }
    }

    /// Writes an image that is dragged out of a window to a file for the receiving program. It is deleted at the next
    /// start.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_dragged(&self, attachment: &str, name: &str, bytes: &[u8]) -> protocol::Result<PathBuf> {
        let folder = self.data_dir.join(DRAGGED).join(attachment);
        let path = folder.join(name);
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(failed(
            Reason::FileNotSaved,
            "the image could not be written for other programs",
        ))?;
        Ok(path)
    }

    /// Runs a task that blocks on files, off the threads that serve the windows.
    ///
    /// # Errors
    /// Those of the task, or `Engine` if it panicked.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> protocol::Result<T> + Send + 'static,
    ) -> protocol::Result<T> {
        let done = tauri::async_runtime::spawn_blocking(work).await;
        done.map_err(failed(Reason::PonderFault, "reading the models broke down"))?
    }

    /// Stores the unsaved part of running answers and the progress of downloads, then waits until the engine is idle: a
    /// process that ends while MLX computes may crash on exit.
    pub async fn shut_down(&self) {
        self.ended.get_or_init(|| self.end()).await;
    }

    /// True once [`App::shut_down`] is done.
    pub fn has_shut_down(&self) -> bool {
        self.ended.initialized()
    }

    async fn end(&self) {
        self.stop.cancel();
        let (suspended, ()) = tokio::join!(
            timeout(DOWNLOADS_SUSPEND, self.hub.downloads().suspend()),
            self.server.stop()
        );
        // Files that are not deleted in time are deleted at the next start.
        let _ = timeout(DOWNLOADS_SUSPEND, self.hub.removals().free_all()).await;
        if suspended.is_err() {
            tracing::warn!("a download was still at work when the app ended; the next start reads it again");
        }
        self.temporary.close().await;
        self.knowledge.shut_down().await;
        self.chat.shut_down().await;
        self.tools.shut_down();
        if !matches!(timeout(ENGINE_SHUTDOWN, self.engine.unload_all()).await, Ok(Ok(()))) {
            tracing::warn!("the engine was still at work when the app ended");
        }
    }
}
