//! The settings of the app: read, changed, and told to everybody in this process who follows them.

use protocol::{ChatWindowState, Endpoint, ModelSource, Result, Settings};
use serde_json::{json, Map, Value};
use tokio::sync::watch;

use crate::{Chat, Inner};

impl Chat {
    /// What is set for the whole app.
    pub async fn settings(&self) -> Result<Settings> {
        Ok(self.0.history.settings().await?)
    }

    /// The settings, and whenever they have changed, by this process or another.
    pub fn follow_settings(&self) -> watch::Receiver<Settings> {
        self.0.settings.subscribe()
    }

    /// Sets some of them, by their keys in [`Settings`]; the others stay as they are. What is set then.
    ///
    /// # Errors
    /// `BadRequest` if a key or a value means nothing, `ModelNotFound` if the default model is not there. Nothing is changed then.
    pub async fn change_settings(&self, change: &Map<String, Value>) -> Result<Settings> {
        let before = self.settings().await?;
        let after = before.with(change)?;
        if after.default_model != before.default_model {
            self.resolve(&after.default_model).await?;
        }
        self.0.history.store_settings(&after.changed_since(&before)).await?;
        self.0.tell_settings(after.clone());
        Ok(after)
    }

    /// The reference of the model that answers in chats that chose none.
    pub async fn default_model(&self) -> Result<String> {
        Ok(self.settings().await?.default_model)
    }

    /// Chooses the default model; fails if the model folder does not have it.
    pub async fn set_default_model(&self, reference: &str) -> Result<()> {
        self.resolve(reference).await?;
        let change = Map::from_iter([("default_model".to_owned(), Value::from(reference))]);
        self.change_settings(&change).await.map(drop)
    }

    /// The endpoints that were added.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        Ok(self.settings().await?.endpoints)
    }

    /// Stores this list of endpoints. Hosts hand it to the remote engine. If the default model is behind an endpoint that is not in it,
    /// new chats begin with the built-in model again.
    pub async fn set_endpoints(&self, endpoints: &[Endpoint]) -> Result<()> {
        let mut change = Map::from_iter([("endpoints".to_owned(), json!(endpoints))]);
        if let Some(ModelSource::Remote { endpoint, .. }) = ModelSource::remote(&self.default_model().await?) {
            if endpoints.iter().all(|known| known.name != endpoint) {
                change.insert("default_model".to_owned(), json!(Settings::default().default_model));
            }
        }
        self.change_settings(&change).await.map(drop)
    }

    /// What the chat window remembers.
    pub async fn chat_window(&self) -> Result<ChatWindowState> {
        Ok(self.0.history.chat_window().await?)
    }

    /// Stores what the chat window is to remember.
    pub async fn set_chat_window(&self, state: &ChatWindowState) -> Result<()> {
        Ok(self.0.history.set_chat_window(state).await?)
    }
}

impl Inner {
    /// Reads the settings again, which another process may have changed.
    pub(crate) async fn reload_settings(&self) {
        match self.history.settings().await {
            Ok(settings) => self.tell_settings(settings),
            Err(error) => tracing::warn!(%error, "the settings could not be read again"),
        }
    }

    fn tell_settings(&self, settings: Settings) {
        self.settings.send_if_modified(|known| {
            let changed = *known != settings;
            *known = settings;
            changed
        });
    }
}
