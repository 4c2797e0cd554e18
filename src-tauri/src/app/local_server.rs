//! The app's local server: it answers other programs with the app's own engine and models while it is switched on.

use std::sync::Arc;

use api::{KeySource, ModelShelf, ServerSettings, ServerStatus, Settings};
use net::Net;
use protocol::{DocumentSearch, Engine, Error, ErrorCode, Result};
use server::ServerSwitch;

/// The keychain's name of the key that clients must send.
const KEY: &str = "server";

/// The environment variable that overrides the keychain, as for `ponder serve`.
const VARIABLE: &str = "PONDER_API_KEY";

/// The server, and access to its key.
pub struct LocalServer {
    switch: ServerSwitch,
    net: Net,
}

impl LocalServer {
    /// A server that is off, for the models and the documents of this computer.
    pub fn new(
        engine: Arc<dyn Engine>,
        models: Arc<dyn ModelShelf>,
        documents: Arc<dyn DocumentSearch>,
        net: Net,
    ) -> Self {
        let switch = ServerSwitch::new(engine, models, Some(engine::trim_heap), documents);
        Self { switch, net }
    }

    /// Starts, stops or reconfigures it.
    pub async fn apply(&self, settings: &Settings) {
        self.switch.set_image_detail(settings.image_detail);
        self.switch.set(&settings.server, self.key(&settings.server)).await;
    }

    /// Stops it at the end of the app.
    pub async fn stop(&self) {
        self.switch.stop().await;
    }

    /// The status for the window.
    pub fn status(&self) -> ServerStatus {
        let mut status = self.switch.status(KeySource::None);
        status.key = match (of_environment(), status.settings.key_made_at) {
            (Some(_), _) => KeySource::Environment,
            (None, Some(_)) => KeySource::Keychain,
            (None, None) => KeySource::None,
        };
        status
    }

    /// The key that clients must send, if there is one. The keychain is asked only if a key was created.
    ///
    /// # Errors
    /// If the keychain does not answer.
    pub async fn key(&self, settings: &ServerSettings) -> Result<Option<String>> {
        match (of_environment(), settings.key_made_at) {
            (Some(key), _) => Ok(Some(key)),
            (None, None) => Ok(None),
            (None, Some(_)) => self.net.secret(KEY).await.map_err(of_keychain),
        }
    }

    /// True if the environment gives the key.
    pub fn has_key_of_environment(&self) -> bool {
        of_environment().is_some()
    }

    /// Creates a key that replaces the former one; it becomes valid once the settings record its date.
    ///
    /// # Errors
    /// If the keychain does not take it.
    pub async fn make_key(&self) -> Result<()> {
        let key = server::new_key()?;
        self.net.set_secret(KEY, &key).await.map_err(of_keychain)
    }

    /// Deletes the key.
    ///
    /// # Errors
    /// If the keychain does not answer.
    pub async fn forget_key(&self) -> Result<()> {
        self.net.forget_secret(KEY).await.map_err(of_keychain)
    }
}

fn of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|key| !key.trim().is_empty())
}

/// The error of a missing keychain names this server's variable, not the hub token's as net's own text does.
fn of_keychain(error: net::Error) -> Error {
    match error {
        net::Error::Keychain { reason } => {
            let message = format!(
                "this computer's keychain cannot be used ({reason}); a key can also be given in the environment variable {VARIABLE}, before \
                 Ponder is started"
            );
            Error::new(ErrorCode::Keychain, message)
                .with("variable", VARIABLE)
                .with("reason", reason)
        }
        other => other.into(),
    }
}
