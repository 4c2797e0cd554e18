//! The rooms, put together for one command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use api::{ModelShelf, Settings};
use chat::Chat;
use engine::{EngineOptions, MlxEngine};
use engine_socket::SharedEngine;
use hub::{Hub, ModelFolder};
use net::Net;
use protocol::{Engine, EngineRouter, Error, ErrorCode, FolderSource, LocalEngine, ModelSource};
use remote::{EndpointShelf, RemoteEngine};
use tokio::runtime::Handle;

/// The history file in the folder of data.
const HISTORY: &str = "history.sqlite";

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
        let remote = RemoteEngine::new(
            Net::open(net::Settings::of_this_computer(&data)),
            Handle::current(),
            Vec::new(),
        );
        let router = EngineRouter::new(Arc::new(shared_engine()?), Arc::new(remote.clone()));
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
        Ok(self.shelf.resolve(&reference)?)
    }

    /// [`App::model`], if it is on this computer.
    async fn folder(&self, reference: Option<&str>) -> Result<FolderSource> {
        let model = self.model(reference).await?;
        let folder = model.folder().cloned();
        Ok(folder.ok_or_else(|| {
            let message = format!(
                "{} is served by another program; this needs a model of this computer, which --model names",
                model.reference()
            );
            Error::new(ErrorCode::ModelNotFound, message)
        })?)
    }
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

/// The models here and on the hub, with the same settings as the window.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub async fn hub() -> Result<Hub> {
    hub_of(models().await)
}

/// The hub with these models.
///
/// # Errors
/// As [`hub`].
pub fn hub_of(models: ModelFolder) -> Result<Hub> {
    let data = hub::data_dir()?;
    Ok(Hub::open(
        Net::open(net::Settings::of_this_computer(&data)),
        models,
        &data,
    ))
}

/// The model on this computer of this reference, or the default model. A named one needs no history, so commands that
/// keep nothing work without.
///
/// # Errors
/// When it is not on this computer, or the history cannot be opened.
pub async fn model(reference: Option<&str>) -> Result<FolderSource> {
    match reference {
        Some(reference) => Ok(models().await.find(reference).map_err(protocol::Error::from)?),
        None => App::open().await?.folder(None).await,
    }
}

/// An engine of this process, with a memory guard so that it ends an answer before the system ends the program.
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
        ..EngineOptions::default()
    })
}

/// The engine of a running Ponder, if there is one; else one of this process, made at the first request.
///
/// # Errors
/// As [`engine`].
pub fn shared_engine() -> Result<SharedEngine> {
    let data_dir = hub::data_dir()?;
    let own = data_dir.clone();
    Ok(SharedEngine::new(
        &data_dir,
        Handle::current(),
        move || -> Arc<dyn LocalEngine> { Arc::new(engine_of(&own)) },
    ))
}

/// An engine and the model of this reference, or the default model. The history, which has the endpoints too, is left
/// alone if a model of this computer is named.
///
/// # Errors
/// When there is no such model, or the history cannot be opened.
pub async fn engine_and_model(reference: Option<&str>) -> Result<(Arc<dyn Engine>, ModelSource)> {
    match reference {
        Some(named) if ModelSource::remote(named).is_none() => {
            Ok((Arc::new(shared_engine()?), model(reference).await?.into()))
        }
        _ => {
            let app = App::open().await?;
            let model = app.model(reference).await?;
            Ok((Arc::new(app.router), model))
        }
    }
}
