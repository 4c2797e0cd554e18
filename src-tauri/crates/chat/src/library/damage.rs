//! Damage of the history that is met while it is open, and damaged files that were set aside.

use std::path::Path;

use api::HistoryContents;
use history::Checked;
use protocol::{Error, ErrorCode, Result};

use crate::library::open::contents;
use crate::library::Library;

impl Library {
    /// Notes that a call failed because the history is damaged.
    pub fn note_damage(&self) {
        self.core.damaged.send_replace(true);
    }

    /// Waits until damage is met that costs more than the search index, which is made anew by itself.
    pub async fn damage(&self) {
        let mut damaged = self.core.damaged.subscribe();
        // The sender lives as long as this.
        while damaged.wait_for(|damaged| *damaged).await.is_ok() {
            match self.core.history.mend_index().await {
                Ok(Checked::Damaged) => return,
                Err(error) if error.is_damage() => return,
                Err(error) => tracing::warn!(%error, "the history could not be checked"),
                Ok(Checked::Sound | Checked::Mended) => {}
            }
            self.core.damaged.send_replace(false);
        }
    }

    /// Adds what can be read of a damaged file that was set aside at this time, in Unix milliseconds, and is not here.
    /// Returns how much that was.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, `Storage` if it cannot be read or the history cannot be written.
    pub async fn add_from_set_aside(&self, set_aside_at: i64) -> Result<HistoryContents> {
        let files = history::files_set_aside(self.core.history.path());
        let Some(file) = files.iter().find(|file| file.made_at == set_aside_at) else {
            let message = "this damaged file is not here any more; nothing was changed";
            return Err(Error::new(ErrorCode::NotFound, message));
        };
        self.add_from(&file.path).await
    }

    /// Adds what can be read of a damaged file and is not here. Returns how much that was.
    ///
    /// # Errors
    /// `Storage` if it cannot be read or the history cannot be written.
    pub async fn add_from(&self, file: &Path) -> Result<HistoryContents> {
        let added = self.core.change(self.core.history.add_from(file)).await?;
        Ok(contents(added))
    }
}
