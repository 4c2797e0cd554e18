//! One turn of a conversation: from the stored branch through the engine to the stored answer, with everybody who
//! watches it. Knows an engine only as a trait, the history file only through `history`, and no window at all.
//!
//! Invariants: what an answer says is on disk within 250 ms; every answer ends, whatever fails, with one `Finished`; a
//! window that attaches from number n gets every event after n once; a slow window holds up nobody.

mod answers;
mod background;
mod chats;
mod compaction;
mod core;
mod cross_process;
mod error;
mod files;
mod library;
mod live;
mod models;
mod notes;
mod projects;
mod request;
mod settings;
mod temporary;

use std::path::Path;
use std::sync::Arc;

use api::{ModelShelf, RunningCall};
use history::{now, History};
use protocol::{Engine, PassageSource, Result, Toolbox};
use tokio::sync::watch;

pub use history::{stored_settings, LONGEST_IMPORT};

pub use crate::answers::Answers;
pub use crate::chats::{ChatDocuments, Chats};
pub use crate::compaction::Compaction;
pub use crate::files::previews::{ImageFile, ShownImage};
pub use crate::files::Files;
pub use crate::library::import_export::check_import_beginning;
pub use crate::library::open::{
    examine_history, history_is_damaged, readable_history, repair_history, set_history_aside,
};
pub use crate::library::Library;
pub use crate::models::Models;
pub use crate::notes::Notes;
pub use crate::projects::Projects;
pub use crate::settings::AppSettings;

use crate::core::Core;

/// How long an image without a message or a draft stays, in milliseconds: one is added before its message is sent.
const UNLINKED_LASTS: i64 = 24 * 3600 * 1000;

/// How long a damaged history is counted at the most, in milliseconds.
const EXAMINING_LASTS: i64 = 3600 * 1000;

/// All chats of one history file, with one engine. Clones share everything; it lives in a tokio runtime.
#[derive(Clone)]
pub struct Chat {
    core: Arc<Core>,
    chats: Chats,
    answers: Answers,
    compaction: Compaction,
    projects: Projects,
    notes: Notes,
    library: Library,
    files: Files,
    models: Models,
    settings: AppSettings,
}

impl Chat {
    /// Opens the history file. Answers whose process died are marked interrupted, and chats that lay in the trash for
    /// 30 days are deleted.
    pub async fn open(database: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        Self::with(History::open(database).await?, engine, shelf).await
    }

    /// Opens a history file for reading alone: nothing in it is changed, and nothing can be.
    pub async fn open_read_only(database: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        Self::with(History::open_read_only(database).await?, engine, shelf).await
    }

    async fn with(history: History, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        let chat = Self::of(Core::new(history, engine, shelf).await?);
        let core = &chat.core;
        if core.history.is_read_only() {
            return Ok(chat);
        }
        core.mark_interrupted().await?;
        core.history.purge_trash(now() - library::TRASH_LASTS).await?;
        history::remove_examined(core.history.path(), now() - EXAMINING_LASTS);
        // The chats of a damaged file that was set aside name images, too, and can still come back.
        if history::files_set_aside(core.history.path()).is_empty() {
            if let Err(error) = core.history.remove_unlinked_attachments(now() - UNLINKED_LASTS).await {
                tracing::warn!(%error, "images without a message could not be removed");
            }
        }
        core.tell_engine();
        background::spawn(core);
        Ok(chat)
    }

    fn of(core: Arc<Core>) -> Self {
        let files = Files::new(core.clone());
        Self {
            chats: Chats::new(core.clone()),
            answers: Answers::new(core.clone()),
            compaction: Compaction::new(core.clone()),
            projects: Projects::new(core.clone()),
            notes: Notes::new(core.clone()),
            library: Library::new(core.clone(), files.clone()),
            files,
            models: Models::new(core.clone()),
            settings: AppSettings::new(core.clone()),
            core,
        }
    }

    /// Gives the chats the tools that models may call. The first ones stay.
    pub fn set_toolbox(&self, toolbox: Arc<dyn Toolbox>) {
        let _ = self.core.toolbox.set(toolbox);
    }

    /// Gives the chats the documents that they ask. The first ones stay.
    pub fn set_passage_source(&self, passages: Arc<dyn PassageSource>) {
        let _ = self.core.passages.set(passages);
    }

    /// The list of chats, and one chat as windows show and change it.
    pub fn chats(&self) -> &Chats {
        &self.chats
    }

    /// Questions and their answers.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// The context of a chat's model, and what is done when it is full.
    pub fn compaction(&self) -> &Compaction {
        &self.compaction
    }

    /// Projects: folders of chats, with instructions and files of their own.
    pub fn projects(&self) -> &Projects {
        &self.projects
    }

    /// Notes about the user.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// All chats together: archive, trash, search, export and import, backups.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Images and text files of messages.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The models that chats use.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The settings of the app.
    pub fn settings(&self) -> &AppSettings {
        &self.settings
    }

    /// Tells whenever the list of chats may look different, or another process wrote to the history.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.core.changes.subscribe()
    }

    /// The calls of tools that this process runs, in these chats or in temporary ones, as far as their progress is known.
    pub fn running_calls(&self) -> watch::Receiver<Vec<RunningCall>> {
        self.core.running_calls.subscribe()
    }

    /// An empty list of chats in memory, with the same engine, models and settings. Nothing of a chat in it is written:
    /// no row, no draft, no image, no title. It is gone when the last clone is dropped.
    ///
    /// # Errors
    /// `Storage` if SQLite has no memory.
    pub async fn temporary(&self) -> Result<Self> {
        Ok(Self::of(self.core.in_memory().await?))
    }

    /// True if this is the id of a chat or a message here.
    pub async fn holds(&self, id: &str) -> Result<bool> {
        Ok(self.core.history.holds(id).await?)
    }

    /// True if a message or a draft here may show this image, or quote this file.
    pub async fn has_attachment(&self, attachment: &str) -> bool {
        self.core.history.attachment(attachment).await.is_ok()
    }

    /// Keeps the chats of a temporary list among these, with their ids. The temporary list is closed then: what is
    /// still asked of it is refused, and nothing of that is lost unseen.
    ///
    /// # Errors
    /// `Busy` while an answer is being written there, `Storage` if the file cannot be written or was opened for reading
    /// alone; nothing is kept then, and the temporary list is as it was.
    pub async fn keep(&self, temporary: &Self) -> Result<()> {
        temporary::keep(&self.core, &temporary.core).await
    }

    /// Ends a temporary list: its answers stop, its rows are gone, and so is what the engine remembers of them.
    pub async fn discard(self) {
        temporary::discard(&self.core).await;
    }

    /// Stops all running answers, waits up to two seconds until they are stored, and closes the file.
    pub async fn shut_down(&self) {
        self.core.closing.send_replace(true);
        self.core.stop_and_wait(|_| true).await;
        self.core.history.close().await;
    }
}
