//! The rooms, put together for one command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use api::{ModelShelf, Settings};
use chat::Chat;
use engine::{EngineOptions, MlxEngine};
use engine_socket::SharedEngine;
use hub::{Hub, ModelFolder};
use knowledge::Knowledge;
use net::Net;
use protocol::{ComputeDevice, Engine, EngineRouter, Error, ErrorCode, FolderSource, LocalEngine, ModelSource};
use remote::{EndpointShelf, RemoteEngine};
use tokio::runtime::Handle;

use crate::output;

/// The index of documents in the folder of data.
const DOCUMENTS: &str = "documents.sqlite";

/// The history file in the folder of data.
const HISTORY: &str = "history.sqlite";

/// The device that the command's arguments name.
static DEVICE: OnceLock<ComputeDevice> = OnceLock::new();

/// Lets engines of this process compute on this device, whatever the settings say, and uses no other engine. Called
/// before there is one.
pub(crate) fn compute_on(device: ComputeDevice) {
    // A command names it once.
    let _ = DEVICE.set(device);
}

/// The history file.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub fn history_file() -> Result<PathBuf> {
    Ok(hub::data_dir()?.join(HISTORY))
}

/// Chats, models and engines, with the same data as the window.
pub struct App {
    /// Chats and settings.
    pub chat: Chat,
    /// The models on this computer.
    pub models: ModelFolder,
    /// The models on this computer and behind endpoints.
    pub shelf: Arc<dyn ModelShelf>,
    /// The engine of models behind endpoints.
    pub remote: RemoteEngine,
    /// The engine of any model.
    pub router: EngineRouter,
}

impl App {
    /// Opens the history and the engines.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub async fn open() -> Result<Self> {
        let data = hub::data_dir()?;
        let models = ModelFolder::open();
        // The settings, endpoints and folders among them, are in the history, which is opened with the engine.
        let net = Net::open(net::Settings::of_this_computer(&data));
        let remote = RemoteEngine::new(net, Handle::current(), Vec::new());
        let router = EngineRouter::new(Arc::new(shared_engine().await?), Arc::new(remote.clone()));
        let shelf: Arc<dyn ModelShelf> = Arc::new(EndpointShelf::new(Arc::new(models.clone()), remote.clone()));
        let chat = Chat::open(&data.join(HISTORY), Arc::new(router.clone()), shelf.clone()).await?;
        let settings = chat.settings().get().await?;
        take_folders(&models, &settings);
        remote.set_endpoints(settings.endpoints);
        Ok(Self {
            chat,
            models,
            shelf,
            remote,
            router,
        })
    }

    /// The model of this reference, or the default model.
    ///
    /// # Errors
    /// When it is neither on this computer nor behind an endpoint.
    pub async fn model(&self, reference: Option<&str>) -> Result<ModelSource> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.chat.settings().default_model().await?,
        };
        Ok(resolve(self.shelf.as_ref(), &reference)?)
    }
}

/// The model of this reference, or the one that clients of the server call so.
fn resolve(shelf: &dyn ModelShelf, reference: &str) -> protocol::Result<ModelSource> {
    match shelf.resolve(reference) {
        Err(error) if error.code == ErrorCode::ModelNotFound => match server::reference_of(shelf, reference) {
            Some(reference) => shelf.resolve(&reference),
            None => Err(error),
        },
        found => found,
    }
}

/// The reference of a model on this computer that may be called as clients of the server call it.
pub fn reference_of(models: &ModelFolder, reference: &str) -> String {
    let known = resolve(models, reference).map(|model| model.reference());
    known.unwrap_or_else(|_| reference.to_owned())
}

/// The models on this computer, in the folders that are set, for commands that leave the history alone.
pub async fn models() -> ModelFolder {
    let models = ModelFolder::open();
    take_folders(&models, &settings().await);
    models
}

/// The settings, for commands that leave the history alone.
pub async fn settings() -> Settings {
    match hub::data_dir() {
        Ok(data) => chat::stored_settings(&data.join(HISTORY)).await,
        Err(_) => Settings::default(),
    }
}

fn take_folders(models: &ModelFolder, settings: &Settings) {
    models.set_own_folders(settings.model_folders.iter().map(PathBuf::from).collect());
}

/// The models here and on Hugging Face, with the same settings as the window.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub async fn hub() -> Result<Hub> {
    hub_of(models().await)
}

/// The collections of documents, with the models that embed them.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub async fn knowledge() -> Result<Knowledge> {
    knowledge_in(&hub::data_dir()?).await
}

/// Collections whose index lies in this folder.
///
/// # Errors
/// As [`knowledge`].
pub async fn knowledge_in(folder: &Path) -> Result<Knowledge> {
    let knowledge = Knowledge::new(
        &folder.join(DOCUMENTS),
        Arc::new(shared_engine().await?),
        Arc::new(models().await),
    );
    knowledge.choose_model(settings().await.embedding_model);
    Ok(knowledge)
}

/// The rooms of models, with these.
///
/// # Errors
/// As [`hub`].
pub fn hub_of(models: ModelFolder) -> Result<Hub> {
    let data = hub::data_dir()?;
    let net = Net::open(net::Settings::of_this_computer(&data));
    Ok(Hub::open(net, models, &data))
}

/// The model on this computer of this reference, or the default model. A named one needs no history, so commands that
/// keep nothing work without.
///
/// # Errors
/// When it is not on this computer, or the history cannot be opened.
pub async fn model(reference: Option<&str>) -> Result<FolderSource> {
    match reference {
        Some(reference) => folder(&models().await, reference),
        None => {
            let app = App::open().await?;
            folder(app.shelf.as_ref(), &app.chat.settings().default_model().await?)
        }
    }
}

fn folder(shelf: &dyn ModelShelf, reference: &str) -> Result<FolderSource> {
    let model = resolve(shelf, reference)?;
    let folder = model.folder().cloned();
    Ok(folder.ok_or_else(|| {
        let message = format!(
            "{} is behind an endpoint, and this command needs a model on this computer. Choose one with --model",
            model.reference()
        );
        Error::new(ErrorCode::ModelNotFound, message)
    })?)
}

/// An engine of this process, with a memory guard so that it ends a response before the system ends the program.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub fn engine() -> Result<MlxEngine> {
    Ok(engine_of(&hub::data_dir()?))
}

fn engine_of(data_dir: &Path) -> MlxEngine {
    MlxEngine::with_options(EngineOptions {
        memory_guard: Some(Arc::new(hub::memory_fit::SystemMemoryGuard::new(data_dir))),
        cache_dir: Some(data_dir.join("mlx")),
        metal_library: hub::metal_library(),
        device: DEVICE.get().copied(),
        ..EngineOptions::default()
    })
}

/// The engine of a running Ponder, if there is one and the arguments name no device; else one of this process, made at
/// the first request, which computes on the device that is set.
///
/// # Errors
/// As [`engine`].
pub async fn shared_engine() -> Result<SharedEngine> {
    let data_dir = hub::data_dir()?;
    let own = data_dir.clone();
    let make = move || -> Arc<dyn LocalEngine> { Arc::new(engine_of(&own)) };
    let engine = SharedEngine::new(&data_dir, Handle::current(), make);
    engine.set_device(settings().await.engine.device);
    Ok(match DEVICE.get() {
        Some(_) => engine.alone(),
        None => engine,
    })
}

/// An engine and the model of this reference, or the default model. The history, which has the endpoints too, is left
/// alone if a model of this computer is named, and is not needed: a folder of data that cannot be written, or a damaged
/// history, are reported, and the settings that can be read count.
///
/// # Errors
/// When there is no such model.
pub async fn engine_and_model(reference: Option<&str>) -> Result<(Arc<dyn Engine>, ModelSource)> {
    if let Some(named) = reference.filter(|named| ModelSource::remote(named).is_none()) {
        return Ok((Arc::new(shared_engine().await?), model(Some(named)).await?.into()));
    }
    match App::open().await {
        Ok(app) => {
            let model = app.model(reference).await?;
            Ok((Arc::new(app.router), model))
        }
        Err(error) => {
            output::warn(&format!("{}. Continuing without it", output::sentence(&error)));
            let settings = settings().await;
            let named = reference.unwrap_or(&settings.default_model).to_owned();
            let models = models().await;
            let net = Net::open(net::Settings::of_this_computer(&hub::data_dir()?));
            let remote = RemoteEngine::new(net, Handle::current(), settings.endpoints);
            let shelf = EndpointShelf::new(Arc::new(models), remote.clone());
            let model = resolve(&shelf, &named)?;
            Ok((
                Arc::new(EngineRouter::new(Arc::new(shared_engine().await?), Arc::new(remote))),
                model,
            ))
        }
    }
}
