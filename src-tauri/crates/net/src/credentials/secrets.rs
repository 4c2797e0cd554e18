//! Named secrets in the keychain, read with a time limit.

use std::sync::Arc;
use std::time::Duration;

use super::keychain::Keychain;
use crate::error::{Error, Result};

/// The time limit of the keychain, including a user who unlocks it.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest secret, in bytes. Keys that are signed tokens (JWT) reach about 2,000.
const LONGEST: usize = 4096;

/// The secrets of this computer's user.
#[derive(Clone)]
pub(crate) struct Secrets {
    keychain: Arc<dyn Keychain>,
}

impl Secrets {
    pub(crate) fn new(keychain: Arc<dyn Keychain>) -> Self {
        Self { keychain }
    }

    /// The secret of this name, or `None`.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<String>> {
        let name = name.to_owned();
        self.ask(move |keychain| keychain.get(&name)).await
    }

    /// Keeps a secret in place of the one that was there.
    pub(crate) async fn set(&self, name: &str, secret: &str) -> Result<()> {
        let (name, secret) = (name.to_owned(), secret.to_owned());
        self.ask(move |keychain| keychain.set(&name, &secret)).await
    }

    /// Removes a secret.
    pub(crate) async fn forget(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.ask(move |keychain| keychain.forget(&name)).await
    }

    /// A keychain may ask the user to unlock it, so it is called on a separate thread, with a time limit.
    async fn ask<T: Send + 'static>(&self, ask: impl FnOnce(&dyn Keychain) -> Result<T> + Send + 'static) -> Result<T> {
        let keychain = Arc::clone(&self.keychain);
        let asked = tokio::task::spawn_blocking(move || ask(keychain.as_ref()));
        match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Error::Keychain {
                reason: "it failed while it was asked".into(),
            }),
            Err(_) => Err(Error::Keychain {
                reason: "it did not answer".into(),
            }),
        }
    }
}

/// A secret without the blanks and line ends that came with it; `None` if it could not stand in a header.
pub(crate) fn one_word(secret: &str) -> Option<String> {
    let secret = secret.trim();
    let one_word = !secret.is_empty() && secret.len() <= LONGEST && secret.bytes().all(|byte| byte.is_ascii_graphic());
    one_word.then(|| secret.to_owned())
}
