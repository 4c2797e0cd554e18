//! Finds remote models by their references, next to those of this computer.

use std::sync::Arc;

use api::{LocalModel, ModelShelf};
use protocol::{ImageDetail, ModelSource, Result};

use crate::engine::RemoteEngine;
use crate::error::Error;

/// A shelf that knows the references of remote models, and asks another for all others.
pub struct EndpointShelf {
    local: Arc<dyn ModelShelf>,
    remote: RemoteEngine,
}

impl EndpointShelf {
    /// The models of this computer and those behind the engine's endpoints.
    pub fn new(local: Arc<dyn ModelShelf>, remote: RemoteEngine) -> Self {
        Self { local, remote }
    }
}

impl ModelShelf for EndpointShelf {
    /// The endpoint is not asked for the model; its answer will tell.
    fn resolve(&self, reference: &str) -> Result<ModelSource> {
        match ModelSource::remote(reference) {
            Some(ModelSource::Remote { endpoint, name }) => {
                self.remote
                    .endpoint(&endpoint)
                    .ok_or_else(|| Error::NoEndpoint(endpoint.clone()))?;
                Ok(ModelSource::Remote { endpoint, name })
            }
            _ => self.local.resolve(reference),
        }
    }

    fn used(&self, reference: &str) {
        if ModelSource::remote(reference).is_none() {
            self.local.used(reference);
        }
    }

    fn list(&self) -> Vec<LocalModel> {
        self.local.list()
    }

    /// The image tokens of remote models are unknown.
    fn image_tokens(&self, model: &ModelSource, sizes: &[(u32, u32)], detail: ImageDetail) -> Option<Vec<u32>> {
        self.local.image_tokens(model, sizes, detail)
    }
}
