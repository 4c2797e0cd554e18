//! The times at which models last answered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::local::json_file;

/// Answers that follow each other within this time are one use, in milliseconds.
const APART: i64 = 60_000;

/// The times at which models last answered, by reference, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct LastUsed {
    /// Without a file nothing is stored.
    file: Option<PathBuf>,
    /// Held from reading the file to writing it.
    changing: Mutex<()>,
}

impl LastUsed {
    pub fn stored_in(file: PathBuf) -> Self {
        Self {
            file: Some(file),
            changing: Mutex::default(),
        }
    }

    pub fn times(&self) -> BTreeMap<String, i64> {
        self.file.as_deref().map(json_file::read).unwrap_or_default()
    }

    /// Records that a model answers now.
    pub fn record(&self, reference: &str) {
        let Some(file) = &self.file else { return };
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut times, now) = (self.times(), Timestamp::now().as_millisecond());
        let is_recent = |last: &i64| (0..APART).contains(&(now - last));
        if times.get(reference).is_some_and(is_recent) {
            return;
        }
        times.insert(reference.into(), now);
        if let Err(error) = json_file::write(file, &times) {
            tracing::warn!("the list will not say that {reference} was used: {error}");
        }
    }
}
