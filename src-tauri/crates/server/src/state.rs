//! What all requests share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::{Engine, ImageDetail, Request};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::clients::Clients;
use crate::exchange::Clock;
use crate::guard::Guard;
use crate::json_body::BodyLimits;
use crate::metrics::Metrics;
use crate::responses_store::ResponsesStore;
use crate::unloading::Unloading;

/// What all requests share.
pub(crate) struct State {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalogue: Catalogue,
    pub(crate) guard: Guard,
    pub(crate) clients: Clients,
    pub(crate) metrics: Metrics,
    pub(crate) responses: ResponsesStore,
    pub(crate) clock: Clock,
    /// Answers that may be made or waited for.
    pub(crate) most_answers: usize,
    pub(crate) body: BodyLimits,
    /// A permit for each schema that may be checked now.
    pub(crate) schemas: Arc<Semaphore>,
    /// How long that may take.
    pub(crate) schema_time: Duration,
    pub(crate) unloading: Unloading,
    /// How closely pictures are looked at if a request does not say.
    pub(crate) image_detail: Mutex<ImageDetail>,
    pub(crate) address: SocketAddr,
    /// Ends everything.
    pub(crate) stop: CancellationToken,
}

impl State {
    /// Gives a request the detail of pictures that is set. Requests ask for a quick look or for none in particular.
    pub(crate) fn apply_image_detail(&self, request: &mut Request) {
        if request.image_detail == ImageDetail::default() {
            request.image_detail = *self.image_detail.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes how closely pictures are looked at if a request does not say.
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
        // An engine of another process is asked over a socket.
        tokio::task::spawn_blocking(loaded).await.unwrap_or_default()
    }
}
