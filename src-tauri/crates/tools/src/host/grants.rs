//! The file of consents that hold in all chats: `tool-grants.json` in the data folder, each sealed by a key in the
//! keychain.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use files::Durability;
use net::Keychain;
use serde::{Deserialize, Serialize};

use crate::catalog::ToolRef;
use crate::consent::{Grant, SealKey, SealedGrant};
use crate::error::{Error, Result};

/// The name of the file.
const NAME: &str = "tool-grants.json";

/// The name of the key in the keychain.
const KEY: &str = "tool-grants";

/// Bytes of the file at most.
const LONGEST: u64 = 4 << 20;

/// A consent and what the person was shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    grant: SealedGrant,
    /// The description of the tool, to show what changed. Nothing rests on it.
    description: String,
}

/// The consents of the file whose seals are right.
#[derive(Debug, Clone, Default)]
pub struct StoredConsents {
    /// The consents.
    pub grants: Vec<Grant>,
    /// The descriptions that were shown for them.
    pub descriptions: HashMap<ToolRef, String>,
}

/// The file.
#[derive(Clone)]
pub struct GrantsFile {
    path: PathBuf,
    keychain: Arc<dyn Keychain>,
}

impl GrantsFile {
    /// The one in this data folder.
    pub fn new(data_dir: &Path, keychain: Arc<dyn Keychain>) -> Self {
        Self {
            path: data_dir.join(NAME),
            keychain,
        }
    }

    /// The consents with right seals; none if the keychain does not answer. It may block.
    pub fn load(&self) -> StoredConsents {
        let mut kept = StoredConsents::default();
        let small = std::fs::metadata(&self.path).is_ok_and(|file| file.len() <= LONGEST);
        let Some(bytes) = small.then(|| std::fs::read(&self.path).ok()).flatten() else {
            return kept;
        };
        let entries: Vec<Entry> = serde_json::from_slice(&bytes).unwrap_or_default();
        let Ok(Some(key)) = self.key() else { return kept };
        for entry in entries {
            match entry.grant.open(&key) {
                Some(grant) => {
                    kept.descriptions.insert(grant.tool.clone(), entry.description);
                    kept.grants.push(grant);
                }
                None => tracing::warn!("a consent in the file was not given here, and counts for nothing"),
            }
        }
        kept
    }

    /// Stores these consents and no others; under a new key if one was taken back, so that no older file brings it back.
    /// It may block.
    ///
    /// # Errors
    /// [`Error::Keychain`] and [`Error::File`].
    pub fn save(&self, kept: &StoredConsents, taken_back: bool) -> Result<()> {
        let key = match self.key()?.filter(|_| !taken_back) {
            Some(key) => key,
            None => self.new_key()?,
        };
        let entries: Vec<Entry> = kept
            .grants
            .iter()
            .map(|grant| Entry {
                grant: SealedGrant::seal(grant, &key),
                description: kept.descriptions.get(&grant.tool).cloned().unwrap_or_default(),
            })
            .collect();
        let bytes = serde_json::to_vec_pretty(&entries).map_err(|error| self.error(error))?;
        files::write_private(&self.path, &bytes, Durability::PowerLoss).map_err(|error| self.error(error))
    }

    /// True if the keychain answers. It may block.
    pub fn can_keep(&self) -> bool {
        self.key().is_ok()
    }

    fn key(&self) -> Result<Option<SealKey>> {
        let text = self.keychain.get(KEY).map_err(keychain)?;
        let bytes = text.and_then(|text| BASE64.decode(text).ok()?.try_into().ok());
        Ok(bytes.map(SealKey::new))
    }

    fn new_key(&self) -> Result<SealKey> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| Error::Keychain(error.to_string()))?;
        self.keychain.set(KEY, &BASE64.encode(bytes)).map_err(keychain)?;
        Ok(SealKey::new(bytes))
    }

    fn error(&self, reason: impl ToString) -> Error {
        Error::File {
            path: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

/// The failure of a keychain.
pub fn keychain(error: net::Error) -> Error {
    Error::Keychain(error.to_string())
}
