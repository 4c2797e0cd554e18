//! The uses of a model by chats and settings, asked before it is removed.

use api::{ModelUsage, ModelUsers};
use futures::future::BoxFuture;
use protocol::Result;
use serde_json::Map;

use crate::models::Models;
use crate::settings::AppSettings;

impl ModelUsers for Models {
    fn usage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ModelUsage>> {
        Box::pin(async move {
            let settings = self.core.settings_history.settings().await?;
            Ok(ModelUsage {
                loaded: self.core.loaded(reference).is_some(),
                chats: self.core.history.chats_answered_by(reference).await?,
                default: settings.default_model == reference,
                folder: settings.model_folders.iter().any(|folder| folder == reference),
            })
        })
    }

    fn unload<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.core.engine.local() {
                Some(engine) => engine.unload(reference).await,
                None => Ok(()),
            }
        })
    }

    fn removed<'a>(&'a self, reference: &'a str, replacement: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let settings = self.core.settings_history.settings().await?;
            let mut change = Map::new();
            if settings.default_model == reference {
                change.insert("default_model".into(), replacement.into());
            }
            // A folder that was a model itself is called by its path.
            let mut folders = settings.model_folders;
            if folders.iter().any(|folder| folder == reference) {
                folders.retain(|folder| folder != reference);
                change.insert("model_folders".into(), folders.into());
            }
            self.settings().change(&change).await.map(drop)
        })
    }

    fn put_back<'a>(&'a self, reference: &'a str, usage: &'a ModelUsage) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut change = Map::new();
            if usage.default {
                change.insert("default_model".into(), reference.into());
            }
            if usage.folder {
                let mut folders = self.core.settings_history.settings().await?.model_folders;
                folders.push(reference.to_owned());
                change.insert("model_folders".into(), folders.into());
            }
            self.settings().change(&change).await.map(drop)
        })
    }
}

impl Models {
    fn settings(&self) -> AppSettings {
        AppSettings::new(self.core.clone())
    }
}
