//! The keychain: where tokens and keys are stored so that no other program reads them by chance.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

const SERVICE: &str = "Ponder";

/// A place for secrets, by name.
pub trait Keychain: Send + Sync {
    /// The secret of this name; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer.
    fn get(&self, name: &str) -> Result<Option<String>>;
    /// Stores a secret in place of the one that was there.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer; nothing is stored then.
    fn set(&self, name: &str, secret: &str) -> Result<()>;
    /// Forgets a secret; one that is not there is forgotten already.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer.
    fn forget(&self, name: &str) -> Result<()>;
}

/// The system's: the Keychain of macOS, the Credential Manager of Windows, the Secret Service of Linux.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemKeychain;

impl SystemKeychain {
    fn entry(name: &str) -> Result<keyring::Entry> {
        keyring::Entry::new(SERVICE, name).map_err(refused)
    }
}

impl Keychain for SystemKeychain {
    fn get(&self, name: &str) -> Result<Option<String>> {
        match Self::entry(name)?.get_password() {
            Ok(secret) => Ok(Some(secret)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    fn set(&self, name: &str, secret: &str) -> Result<()> {
        Self::entry(name)?.set_password(secret).map_err(refused)
    }

    fn forget(&self, name: &str) -> Result<()> {
        match Self::entry(name)?.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(refused(error)),
        }
    }
}

/// The crate's own messages contain no secret, except those variants that carry bytes, which are not printed.
fn refused(error: keyring::Error) -> Error {
    let reason = match error {
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => {
            "what it keeps for Ponder is no text".into()
        }
        keyring::Error::NoDefaultStore => "there is none".into(),
        other => other.to_string(),
    };
    Error::Keychain { reason }
}

/// One in memory, for tests; it can be told to refuse.
#[derive(Default)]
pub struct MemoryKeychain {
    secrets: Mutex<HashMap<String, String>>,
    refuses: bool,
}

impl MemoryKeychain {
    /// One that never answers, as on a computer without a keychain.
    pub fn absent() -> Self {
        Self {
            refuses: true,
            ..Self::default()
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, String>) -> T) -> Result<T> {
        if self.refuses {
            return Err(Error::Keychain {
                reason: "there is none".into(),
            });
        }
        Ok(act(&mut self.secrets.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Keychain for MemoryKeychain {
    fn get(&self, name: &str) -> Result<Option<String>> {
        self.with(|secrets| secrets.get(name).cloned())
    }

    fn set(&self, name: &str, secret: &str) -> Result<()> {
        self.with(|secrets| {
            secrets.insert(name.to_owned(), secret.to_owned());
        })
    }

    fn forget(&self, name: &str) -> Result<()> {
        self.with(|secrets| {
            secrets.remove(name);
        })
    }
}
