//! The measured peak memory of models on this computer, in the data folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::local::json_file;

const FILE: &str = "measured.json";

/// The peak memory of each model, in bytes. A lost value is measured again when the model next answers.
#[derive(Debug, Clone)]
pub struct Measured {
    path: PathBuf,
}

impl Measured {
    /// The values in the app's data folder.
    pub fn in_folder(data_dir: &Path) -> Self {
        Self {
            path: data_dir.join(FILE),
        }
    }

    /// The peak of a model of this reference and revision, in bytes.
    pub fn of(&self, reference: &str, revision: Option<&str>) -> Option<u64> {
        self.read().get(&key(reference, revision)).copied()
    }

    /// Stores the peak of a model if it exceeds the known one.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be written.
    pub fn record(&self, reference: &str, revision: Option<&str>, bytes: u64) -> Result<(), Error> {
        let (mut all, key) = (self.read(), key(reference, revision));
        if all.get(&key).is_some_and(|known| *known >= bytes) {
            return Ok(());
        }
        all.insert(key, bytes);
        json_file::write(&self.path, &all)
    }

    /// All values; none if the file is missing or broken.
    fn read(&self) -> BTreeMap<String, u64> {
        json_file::read(&self.path)
    }
}

fn key(reference: &str, revision: Option<&str>) -> String {
    match revision {
        Some(revision) => format!("{reference}@{revision}"),
        None => reference.to_owned(),
    }
}
