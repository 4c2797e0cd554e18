//! Routes each request to the engine of its model.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{
    Capabilities, EmbeddingRequest, Embeddings, Engine, JobHandle, LocalEngine, ModelSource, Request, Result,
    TokenCount,
};

/// Two engines as one: models in folders go to this computer's engine, models behind endpoints to the other.
#[derive(Clone)]
pub struct EngineRouter {
    local: Arc<dyn LocalEngine>,
    remote: Arc<dyn Engine>,
}

impl EngineRouter {
    /// A router for these two.
    pub fn new(local: Arc<dyn LocalEngine>, remote: Arc<dyn Engine>) -> Self {
        Self { local, remote }
    }

    fn engine(&self, model: &ModelSource) -> &dyn Engine {
        match model {
            ModelSource::Folder(_) => self.local.as_ref(),
            ModelSource::Remote { .. } => self.remote.as_ref(),
        }
    }
}

impl Engine for EngineRouter {
    fn generate(&self, request: Request) -> JobHandle {
        self.engine(&request.model).generate(request)
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        self.engine(model).capabilities(model)
    }

    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>> {
        self.engine(&request.model).count(request)
    }

    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        self.engine(&request.model).embed(request)
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        Some(self.local.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeEngine;
    use crate::{FolderSource, Message, Role};

    #[test]
    fn a_request_goes_to_the_engine_that_has_its_model() {
        let (local, remote) = (FakeEngine::new(), FakeEngine::new());
        let router = EngineRouter::new(Arc::new(local.clone()), Arc::new(remote.clone()));
        let folder = ModelSource::Folder(FolderSource {
            reference: "pebble".into(),
            path: "/models/pebble".into(),
            revision: None,
            adapter: None,
        });
        let served = ModelSource::Remote {
            endpoint: "lab".into(),
            name: "pebble".into(),
        };
        let asked = |model: &ModelSource| Request::new(model.clone(), vec![Message::text(Role::User, "question")]);

        drop(router.generate(asked(&folder)));
        assert_eq!(local.take_job().map(|job| job.request.model), Some(folder.clone()));
        assert!(remote.take_job().is_none());
        drop(router.generate(asked(&served)));
        assert_eq!(remote.take_job().map(|job| job.request.model), Some(served.clone()));
        assert!(local.take_job().is_none());
        assert!(router.capabilities(&folder).prefetch && !router.capabilities(&served).prefetch);
        assert!(router.capabilities(&served).leaves_computer);
    }
}
