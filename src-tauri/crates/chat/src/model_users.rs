//! What chat answers when a model is about to be removed.

use futures::future::BoxFuture;
use protocol::{ModelUsage, ModelUsers, Result};

use crate::Chat;

impl ModelUsers for Chat {
    fn usage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ModelUsage>> {
        Box::pin(async move {
            Ok(ModelUsage {
                loaded: self.is_loaded(reference),
                chats: self.answered_by(reference).await?,
            })
        })
    }

    fn unload<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.0.engine.local() {
                Some(engine) => engine.unload(reference).await,
                None => Ok(()),
            }
        })
    }

    fn removed<'a>(&'a self, reference: &'a str, replacement: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if self.default_model().await? == reference {
                self.set_default_model(replacement).await?;
            }
            Ok(())
        })
    }
}

impl Chat {
    fn is_loaded(&self, reference: &str) -> bool {
        let loaded = self.0.engine.local().map(|engine| engine.loaded()).unwrap_or_default();
        loaded.iter().any(|loaded| loaded.reference == reference)
    }
}
