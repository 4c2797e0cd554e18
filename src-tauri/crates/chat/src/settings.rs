//! The settings of the app: read, changed, and told to everybody in this process who follows them.

use std::sync::Arc;

use api::{ChatWindowState, Endpoint, Settings};
use protocol::{ModelSource, Result};
use serde_json::{json, Map, Value};
use tokio::sync::watch;

use crate::core::Core;

/// The settings of the app.
#[derive(Clone)]
pub struct AppSettings {
    core: Arc<Core>,
}

impl AppSettings {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The settings of the app.
    pub async fn get(&self) -> Result<Settings> {
        Ok(self.core.settings_history.settings().await?)
    }

    /// The settings, and whenever they have changed, by this process or another.
    pub fn follow(&self) -> watch::Receiver<Settings> {
        self.core.settings.subscribe()
    }

    /// Changes some settings, by their keys in [`Settings`], and returns all of them as they are then.
    ///
    /// # Errors
    /// `BadRequest` if a key or a value means nothing, `ModelNotFound` if the default model is not there. Nothing is
    /// changed then.
    pub async fn change(&self, change: &Map<String, Value>) -> Result<Settings> {
        let _in_order = self.core.settings_in_order.lock().await;
        let before = self.get().await?;
        let after = before.with(change)?;
        if after.default_model != before.default_model {
            self.core.resolve(&after.default_model).await?;
        }
        self.core
            .settings_history
            .store_settings(&after.changed_since(&before))
            .await?;
        self.core.tell_settings(after.clone());
        Ok(after)
    }

    /// The reference of the model that answers in chats that chose none.
    pub async fn default_model(&self) -> Result<String> {
        self.core.default_model().await
    }

    /// Chooses the default model, which new chats use from now on; fails if the model folder does not have it.
    pub async fn set_default_model(&self, reference: &str) -> Result<()> {
        self.core.resolve(reference).await?;
        let change = Map::from_iter([
            ("default_model".to_owned(), Value::from(reference)),
            ("new_chats_use_last_model".to_owned(), Value::from(false)),
        ]);
        self.change(&change).await.map(drop)
    }

    /// The endpoints that were added.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        Ok(self.get().await?.endpoints)
    }

    /// Stores this list of endpoints. Hosts hand it to the remote engine. If the default model is behind an endpoint
    /// that is not in it, new chats begin with the built-in model again.
    pub async fn set_endpoints(&self, endpoints: &[Endpoint]) -> Result<()> {
        let mut change = Map::from_iter([("endpoints".to_owned(), json!(endpoints))]);
        if let Some(ModelSource::Remote { endpoint, .. }) = ModelSource::remote(&self.default_model().await?) {
            if endpoints.iter().all(|known| known.name != endpoint) {
                change.insert("default_model".to_owned(), json!(Settings::default().default_model));
            }
        }
        self.change(&change).await.map(drop)
    }

    /// The stored state of the chat window.
    pub async fn chat_window(&self) -> Result<ChatWindowState> {
        Ok(self.core.history.chat_window().await?)
    }

    /// Stores what the chat window is to remember.
    pub async fn set_chat_window(&self, state: &ChatWindowState) -> Result<()> {
        Ok(self.core.history.set_chat_window(state).await?)
    }
}
