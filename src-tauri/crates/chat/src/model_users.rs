//! What chat answers when a model is about to be removed.

use futures::future::BoxFuture;
use protocol::{ModelUsage, ModelUsers, Result};
use serde_json::Map;

use crate::Chat;

impl ModelUsers for Chat {
    fn usage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ModelUsage>> {
        Box::pin(async move {
            let settings = self.settings().await?;
            Ok(ModelUsage {
                loaded: self.is_loaded(reference),
                chats: self.answered_by(reference).await?,
                default: settings.default_model == reference,
                folder: settings.model_folders.iter().any(|folder| folder == reference),
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
            let settings = self.settings().await?;
            let mut change = Map::new();
            if settings.default_model == reference {
                change.insert("default_model".into(), replacement.into());
            }
            // A folder that was a model itself is called by its path.
            if settings.model_folders.iter().any(|folder| folder == reference) {
                let left: Vec<String> = settings.model_folders.into_iter().filter(|folder| folder != reference).collect();
                change.insert("model_folders".into(), left.into());
            }
            self.change_settings(&change).await.map(drop)
        })
    }

    fn put_back<'a>(&'a self, reference: &'a str, usage: &'a ModelUsage) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut change = Map::new();
            if usage.default {
                change.insert("default_model".into(), reference.into());
            }
            if usage.folder {
                let mut folders = self.settings().await?.model_folders;
                folders.push(reference.to_owned());
                change.insert("model_folders".into(), folders.into());
            }
            self.change_settings(&change).await.map(drop)
        })
    }
}

impl Chat {
    fn is_loaded(&self, reference: &str) -> bool {
        let loaded = self.0.engine.local().map(|engine| engine.loaded()).unwrap_or_default();
        loaded.iter().any(|loaded| loaded.reference == reference)
    }
}
