//! What models really took on this computer, kept in the data folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::local::json_file;
use crate::Error;

/// The file that keeps it.
const FILE: &str = "measured.json";

/// The most that each model took. What is lost of it is measured again the next time the model answers.
#[derive(Debug, Clone)]
pub struct Measured {
    path: PathBuf,
}

impl Measured {
    /// What is kept in the app's data folder.
    pub fn in_folder(data_dir: &Path) -> Self {
        Self {
            path: data_dir.join(FILE),
        }
    }

    /// The most that a model of this reference and revision took, in bytes.
    pub fn of(&self, reference: &str, revision: Option<&str>) -> Option<u64> {
        self.read().get(&key(reference, revision)).copied()
    }

    /// Keeps what a model took, if that is more than what is known.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be written.
    pub fn remember(&self, reference: &str, revision: Option<&str>, bytes: u64) -> Result<(), Error> {
        let (mut all, key) = (self.read(), key(reference, revision));
        if all.get(&key).is_some_and(|known| *known >= bytes) {
            return Ok(());
        }
        all.insert(key, bytes);
        json_file::write(&self.path, &all)
    }

    /// Everything that is known; nothing if the file is missing or broken.
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
