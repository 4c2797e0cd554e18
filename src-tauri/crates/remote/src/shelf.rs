//! Finds remote models by their references, beside those of this computer.

use std::sync::Arc;

use protocol::{ImageDetail, LocalModel, ModelShelf, ModelSource, Result};

use crate::{Error, RemoteEngine};

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
    /// Whether an endpoint has the model is not asked, because that is known when it answers.
    fn resolve(&self, reference: &str) -> Result<ModelSource> {
        match ModelSource::remote(reference) {
            Some(ModelSource::Remote { endpoint, name }) => {
                self.remote.endpoint(&endpoint).ok_or_else(|| Error::NoEndpoint(endpoint.clone()))?;
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

    /// What a remote model makes of a picture is not known.
    fn image_tokens(&self, model: &ModelSource, sizes: &[(u32, u32)], detail: ImageDetail) -> Option<Vec<u32>> {
        self.local.image_tokens(model, sizes, detail)
    }
}
