//! Sign-ins in the keychain: who Ponder is to a server, and the tokens that a person got there.

use std::sync::Arc;

use net::Keychain;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;

/// The name by which a server of sign-ins knows Ponder.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// The address of this computer that it was registered with.
    pub(super) redirect: String,
    /// True if a person gave it.
    #[serde(default)]
    pub(super) pasted: bool,
    /// The server of sign-ins that knows it.
    pub(super) issuer: Option<String>,
}

/// A sign-in to a server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredSignIn {
    /// The address of the server. For another one nothing of this counts.
    pub(super) address: String,
    pub(super) client: Client,
    /// The tokens, as rmcp keeps them; none once they were taken back.
    pub(super) credentials: StoredCredentials,
}

impl StoredSignIn {
    /// The token for requests.
    pub(super) fn token(&self) -> Option<String> {
        self.field("access_token")?.as_str().map(str::to_owned)
    }

    /// True if the token ends within so many seconds, as far as is known.
    pub(super) fn ends_within(&self, seconds: u64, now: u64) -> bool {
        let lifetime = self.field("expires_in").and_then(|seconds| seconds.as_u64());
        match (lifetime, self.credentials.token_received_at) {
            (Some(lifetime), Some(received)) => {
                let margin = seconds.min(lifetime / 2);
                now.saturating_add(margin) >= received.saturating_add(lifetime)
            }
            _ => false,
        }
    }

    /// True if the token can be exchanged for a newer one.
    pub(super) fn is_renewable(&self) -> bool {
        self.field("refresh_token").is_some_and(|token| token.is_string())
    }

    fn field(&self, name: &str) -> Option<Value> {
        let tokens = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        tokens.get(name).filter(|value| !value.is_null()).cloned()
    }
}

/// The sign-in to one server, in the keychain.
#[derive(Clone)]
pub struct SignInStore {
    keychain: Arc<dyn Keychain>,
    name: String,
}

impl SignInStore {
    /// Of the server with this id.
    pub fn of(keychain: Arc<dyn Keychain>, server: &str) -> Self {
        Self {
            keychain,
            name: format!("tool-sign-in/{server}"),
        }
    }

    /// The sign-in to this address; none if nobody ever signed in there.
    pub(super) async fn load(&self, address: &str) -> Result<Option<StoredSignIn>, Error> {
        let name = self.name.clone();
        let text = self.with(move |keychain| keychain.get(&name)).await?;
        let kept: Option<StoredSignIn> = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(kept.filter(|kept| kept.address == address))
    }

    pub(super) async fn save(&self, kept: &StoredSignIn) -> Result<(), Error> {
        let text = serde_json::to_string(kept).map_err(|error| Error::Keychain(error.to_string()))?;
        let name = self.name.clone();
        self.with(move |keychain| keychain.set(&name, &text)).await
    }

    /// Forgets the tokens and who Ponder is to the server.
    ///
    /// # Errors
    /// [`Error::Keychain`].
    pub async fn forget(&self) -> Result<(), Error> {
        let name = self.name.clone();
        self.with(move |keychain| keychain.forget(&name)).await
    }

    /// A keychain may ask the person, so it has a thread of its own.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Keychain) -> net::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let keychain = self.keychain.clone();
        let done = tokio::task::spawn_blocking(move || work(&*keychain)).await;
        match done {
            Ok(done) => done.map_err(|error| Error::Keychain(error.to_string())),
            Err(_) => Err(Error::Keychain("it broke down".to_owned())),
        }
    }
}
