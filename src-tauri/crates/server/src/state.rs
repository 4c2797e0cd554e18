//! The state that all requests share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::{Engine, ImageDetail, Request};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::answer::responses_store::ResponsesStore;
use crate::config::Limits;
use crate::figures::clients::Clients;
use crate::figures::metrics::Metrics;
use crate::http::auth::Guard;
use crate::http::connections::Connections;
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
    /// A permit for each schema that may be checked now.
    pub(crate) schemas: Arc<Semaphore>,
    /// The time for which models stay loaded that a request gives no time.
    pub(crate) keep_alive: KeepAlive,
    /// The default image detail.
    pub(crate) image_detail: Mutex<ImageDetail>,
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

    /// References of the models that are in memory.
    pub(crate) async fn loaded(&self) -> Vec<String> {
        let engine = self.engine.clone();
        let loaded = move || {
            let loaded = engine.local().map(|engine| engine.loaded()).unwrap_or_default();
            loaded.into_iter().map(|model| model.reference).collect()
        };
        // The engine of another process is queried over a socket.
        tokio::task::spawn_blocking(loaded).await.unwrap_or_default()
    }
}
