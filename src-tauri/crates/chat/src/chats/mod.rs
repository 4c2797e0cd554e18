//! The list of chats, and one chat as windows show and change it.

mod branches;
mod documents;
mod snapshots;
mod view;

use std::sync::Arc;

use api::{ChatList, ChatSettings, ChatSummary, ChatView, ToolsChange};
use protocol::{Content, Result};
use tokio::sync::Mutex;

pub use self::documents::ChatDocuments;

use crate::chats::snapshots::ListSnapshots;
use crate::core::Core;
use crate::files::images::attachments;
use crate::request::ahead::open_chat;
use crate::request::tools::{tools_change, use_new_tools};

/// The list of chats, and one chat as windows show and change it.
#[derive(Clone)]
pub struct Chats {
    core: Arc<Core>,
    /// The lists of chats that windows have.
    snapshots: Arc<Mutex<ListSnapshots>>,
}

impl Chats {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            snapshots: Arc::default(),
        }
    }

    /// The chats outside the trash: pinned first, then newest first.
    pub async fn list(&self) -> Result<Vec<ChatSummary>> {
        Ok(self.core.history.chats().await?)
    }

    /// The chats outside the trash, or what of them has changed since this snapshot of the list, if it is still known
    /// here.
    pub async fn list_since(&self, snapshot: Option<u64>) -> Result<ChatList> {
        // Held while the list is read, so that no snapshot is followed by an older state.
        let mut snapshots = self.snapshots.lock().await;
        let chats = self.list().await?;
        Ok(snapshots.list(chats, snapshot))
    }

    /// The settings of a new chat. Its model is the one that was used last, if that is wanted and it is still there.
    pub async fn new_settings(&self) -> Result<ChatSettings> {
        let settings = self.core.settings_history.settings().await?;
        let new = settings.new_chat();
        if !settings.new_chats_use_last_model {
            return Ok(new);
        }
        let model = match self.core.settings_history.last_model().await? {
            // A chat without messages follows the default model.
            Some(last) if last == settings.default_model => None,
            Some(last) => self.core.resolve(&last).await.is_ok().then_some(last),
            None => None,
        };
        Ok(ChatSettings { model, ..new })
    }

    /// A new, empty chat.
    ///
    /// # Errors
    /// `BadRequest` for a setting that no request may have.
    pub async fn create(&self, settings: ChatSettings) -> Result<ChatView> {
        settings.check()?;
        self.core.change(self.core.history.create_chat(&settings)).await
    }

    /// Gives a chat another title.
    pub async fn rename(&self, chat: &str, title: &str) -> Result<()> {
        self.core.change(self.core.history.rename_chat(chat, title)).await
    }

    /// Keeps a chat at the top, or not.
    pub async fn pin(&self, chat: &str, pinned: bool) -> Result<()> {
        self.core.change(self.core.history.pin_chat(chat, pinned)).await
    }

    /// Stores the settings of a chat, which hold from its next turn on.
    ///
    /// # Errors
    /// `BadRequest` for a setting that no request may have, by the argument `field`; nothing is changed then.
    pub async fn set_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        settings.check()?;
        self.core.history.set_chat_settings(chat, settings).await?;
        // Instructions and the Thinking switch stand before all the rest.
        open_chat(&self.core, chat).await?;
        Ok(())
    }

    /// How the tools that a chat names now differ from those that its model is told of; `None` if they do not. Nothing is
    /// started for it.
    ///
    /// # Errors
    /// Those of the history file.
    pub async fn tools_change(&self, chat: &str) -> Result<Option<ToolsChange>> {
        tools_change(&self.core, chat).await
    }

    /// Has the model of a chat told of the tools that the chat names now, as they are now; its next prompt is read anew.
    ///
    /// # Errors
    /// `BadRequest` if none of them can be used; the chat goes on with those that it has.
    pub async fn use_new_tools(&self, chat: &str) -> Result<()> {
        use_new_tools(&self.core, chat).await?;
        open_chat(&self.core, chat).await?;
        Ok(())
    }

    /// Stores the unsent question. A new image in it is encoded ahead, if the engine prefetches.
    pub async fn set_draft(&self, chat: &str, draft: &[Content]) -> Result<()> {
        let before = self.core.history.chat_head(chat).await?.0.draft;
        self.core.history.set_draft(chat, draft).await?;
        // The list marks chats with a draft. It is long, so nobody reads it again for each letter.
        if before.is_empty() != draft.is_empty() {
            self.core.changed();
        }
        if !attachments(draft).is_subset(&attachments(&before)) {
            open_chat(&self.core, chat).await?;
        }
        Ok(())
    }
}
