//! The state that all requests share.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::{Engine, Error, ErrorCode, ImageDetail, ModelInfo, Request, Result, TokenCount};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::answer::allowed_documents::AllowedDocuments;
use crate::answer::responses_store::ResponsesStore;
use crate::config::Limits;
use crate::figures::clients::Clients;
use crate::figures::metrics::Metrics;
use crate::http::auth::Guard;
use crate::http::connections::Connections;
use crate::http::heap_trim::HeapTrim;
use crate::http::json_body::Bodies;
use crate::models::keep_alive::KeepAlive;
use crate::models::served::ServedModels;

/// The state that all requests share.
pub(crate) struct State {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) served_models: ServedModels,
    pub(crate) guard: Guard,
    pub(crate) connections: Arc<Connections>,
    pub(crate) clients: Clients,
    pub(crate) metrics: Metrics,
    pub(crate) responses: ResponsesStore,
    pub(crate) limits: Limits,
    pub(crate) bodies: Bodies,
    pub(crate) heap_trim: HeapTrim,
    /// A permit for each schema that may be checked now.
    pub(crate) schemas: Arc<Semaphore>,
    /// A permit for each prompt that may be counted now.
    pub(crate) counts: Arc<Semaphore>,
    /// The time for which models stay loaded that a request gives no time.
    pub(crate) keep_alive: KeepAlive,
    /// The default image detail.
    pub(crate) image_detail: Mutex<ImageDetail>,
    /// The documents that clients may search.
    pub(crate) documents: AllowedDocuments,
    pub(crate) address: SocketAddr,
    /// Ends everything.
    pub(crate) stop: CancellationToken,
}

impl State {
    /// Applies the default image detail. Requests ask for low detail or for none in particular.
    pub(crate) fn apply_image_detail(&self, request: &mut Request) {
        if request.image_detail == ImageDetail::default() {
            request.image_detail = *self.image_detail.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes the default image detail.
    pub(crate) fn set_image_detail(&self, detail: ImageDetail) {
        *self.image_detail.lock().unwrap_or_else(PoisonError::into_inner) = detail;
    }

    /// Counts the tokens of a request's prompt when those before it are done. A client that leaves loses its place.
    pub(crate) async fn count(&self, request: Cow<'_, Request>) -> Result<TokenCount> {
        let gone = || Error::new(ErrorCode::EngineGone, "the prompt could not be counted");
        let permit = self.counts.clone().acquire_owned().await.map_err(|_| gone())?;
        let count = self.engine.count(request.into_owned());
        // The engine counts to the end, so the permit is held until then, even if the client is gone.
        let counting = async move {
            let _permit = permit;
            count.await
        };
        tokio::spawn(counting).await.map_err(|_| gone())?
    }

    /// References of the models that are in memory.
    pub(crate) async fn loaded(&self) -> Vec<String> {
        let loaded = self.loaded_models().await;
        loaded.into_iter().map(|model| model.reference).collect()
    }

    /// The models that are in memory.
    pub(crate) async fn loaded_models(&self) -> Vec<ModelInfo> {
        let engine = self.engine.clone();
        let loaded = move || engine.local().map(|engine| engine.loaded()).unwrap_or_default();
        // The engine of another process is queried over a socket.
        tokio::task::spawn_blocking(loaded).await.unwrap_or_default()
    }
}
