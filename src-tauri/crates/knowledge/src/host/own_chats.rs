//! The user's own chats as a collection: listed and read from the history instead of from a folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::{ChatText, ChatTexts, OWN_CHATS};

use super::size::size;
use super::update::blocking;
use super::Knowledge;
use crate::folder::{FoundFile, Rules, Source, Stamp, Walk};
use crate::index::FileToRead;
use crate::passages::Form;
use crate::reading::{prepare_text, Outcome, Text};
use crate::{Error, Result, SkipReason};

/// The wait after a change of a chat: an answer changes it many times.
pub(super) const SETTLING: Duration = Duration::from_secs(3);

impl Knowledge {
    /// Gives the user's own chats, which are read only after [`Knowledge::add_own_chats`]. The first ones stay.
    pub fn set_chats(&self, chats: Arc<dyn ChatTexts>) {
        let _ = self.shared.chats.set(chats);
    }

    /// Makes a collection of the user's own chats; its id is [`OWN_CHATS`]. Adding it twice changes nothing.
    ///
    /// # Errors
    /// Those of writing the index.
    pub async fn add_own_chats(&self, name: &str) -> Result<()> {
        // Their place is their id; as a source they have no files.
        let source = Source::Files(Vec::new());
        let index = self.index().await?;
        index
            .add_collection_with_id(OWN_CHATS, name, &source, &Rules::default())
            .await?;
        self.changed();
        Ok(())
    }

    pub(super) fn chats(&self) -> Result<Arc<dyn ChatTexts>> {
        self.shared.chats.get().cloned().ok_or(Error::NotFound("history"))
    }

    /// The chats that count, as a walk finds files.
    pub(super) async fn walk_chats(&self) -> Result<Walk> {
        let listed = self
            .chats()?
            .list()
            .await
            .map_err(|error| Error::Unreadable(error.message))?;
        let mut files: Vec<FoundFile> = listed.into_iter().map(found).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Walk {
            files,
            ..Walk::default()
        })
    }

    pub(super) async fn read_chat(&self, wanted: FileToRead) -> (PathBuf, Result<Outcome>) {
        let FileToRead { file, known, .. } = wanted;
        let read = async {
            let id = file.path.to_string_lossy().into_owned();
            let text = match self.chats()?.text(id).await {
                Ok(text) => text,
                // Deleted since it was listed.
                Err(error) if error.code == protocol::ErrorCode::NotFound => {
                    return Ok(Outcome::Skipped(SkipReason::Gone));
                }
                Err(error) => return Err(Error::Unreadable(error.message)),
            };
            let stamp = file.stamp;
            let text = Text {
                text,
                form: Form::Markdown,
            };
            blocking(move || prepare_text(text, stamp, known, size())).await
        };
        let outcome = read.await;
        (file.path, outcome)
    }
}

/// A chat as a file: its revision stands for its size.
fn found(chat: ChatText) -> FoundFile {
    FoundFile {
        path: chat.id.into(),
        stamp: Stamp {
            size: chat.revision,
            modified: chat.updated_at.saturating_mul(1_000_000),
        },
    }
}
