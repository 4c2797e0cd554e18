//! The hub's responses on disk, for when it cannot be reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use files::{write_private, Durability};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cache::entries;
use crate::error::Error;

/// Limit of the entries of one kind.
const MOST: usize = 400;
/// Entries between two removals of old ones.
const TIDY_EVERY: u32 = 50;

/// The kinds of responses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CacheKind {
    /// Pages of searches.
    Search,
    /// Descriptions of models.
    Model,
    /// Cards.
    Card,
}

/// A folder of responses. Losing it costs only time, so its faults are no errors.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    folder: PathBuf,
    kept: AtomicU32,
}

#[derive(Serialize, Deserialize)]
struct Entry<T> {
    /// The time of the response, in milliseconds since 1970.
    at: i64,
    key: String,
    value: T,
}

impl ResponseCache {
    /// The cache of this hub; another endpoint is another hub.
    pub(crate) fn open(data_dir: &Path, endpoint: &str) -> Self {
        Self {
            folder: data_dir.join("hub").join(name(endpoint)),
            kept: AtomicU32::new(0),
        }
    }

    /// The entry under this key and its time.
    pub(crate) fn get<T: DeserializeOwned>(&self, kind: CacheKind, key: &str) -> Option<(T, i64)> {
        read(&self.path(kind, key))
            .filter(|entry| entry.key == key)
            .map(|entry| (entry.value, entry.at))
    }

    /// The fetched value, or, if the hub cannot be reached, the entry under this key with its time.
    pub(crate) fn or_cached<T: DeserializeOwned>(
        &self,
        fetched: Result<T, Error>,
        kind: CacheKind,
        key: &str,
    ) -> Result<(T, Option<i64>), Error> {
        match fetched {
            Ok(value) => Ok((value, None)),
            Err(error) if error.is_unreachable() => match self.get(kind, key) {
                Some((value, at)) => Ok((value, Some(at))),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// All entries of a kind.
    pub(crate) fn all<T: DeserializeOwned>(&self, kind: CacheKind) -> Vec<(T, i64)> {
        entries(&self.of(kind))
            .filter_map(|entry| read::<T>(&entry.path()))
            .map(|entry| (entry.value, entry.at))
            .collect()
    }

    /// Stores an entry with the present time.
    pub(crate) fn put<T: Serialize>(&self, kind: CacheKind, key: &str, value: &T) {
        let path = self.path(kind, key);
        let entry = Entry {
            at: Timestamp::now().as_millisecond(),
            key: key.to_owned(),
            value,
        };
        if let Err(error) = write(&path, &entry) {
            tracing::warn!(%error, path = %path.display(), "what the hub said is not remembered");
        }
        if self.kept.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDY_EVERY) {
            tidy(&self.of(kind));
        }
    }

    fn of(&self, kind: CacheKind) -> PathBuf {
        self.folder.join(match kind {
            CacheKind::Search => "searches",
            CacheKind::Model => "models",
            CacheKind::Card => "cards",
        })
    }

    fn path(&self, kind: CacheKind, key: &str) -> PathBuf {
        self.of(kind).join(format!("{}.json", name(key)))
    }
}

/// A file name for any key. The key itself is compared after reading.
fn name(key: &str) -> String {
    format!("{:.24x}", Sha256::digest(key.as_bytes()))
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<Entry<T>> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write<T: Serialize>(path: &Path, entry: &Entry<&T>) -> std::io::Result<()> {
    // Another process may read or write the same entry.
    write_private(path, &serde_json::to_vec(entry)?, Durability::ProcessCrash)
}

/// Removes the oldest entries above the limit.
fn tidy(folder: &Path) {
    let mut found: Vec<_> = entries(folder)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    for (_, path) in found.into_iter().skip(MOST) {
        let _ = fs::remove_file(path);
    }
}
