//! The temporary chat: at most one, in memory, until it is kept or closed.

use std::sync::{Mutex, PoisonError};

use api::{ChatSettings, ChatView, RunningAnswer};
use chat::Chat;
use protocol::Result;

use crate::app::state::App;

/// The list with the temporary chat, while there is one.
#[derive(Default)]
pub struct TemporaryChat(Mutex<Option<Open>>);

#[derive(Clone)]
struct Open {
    list: Chat,
    id: String,
}

impl TemporaryChat {
    fn open(&self) -> Option<Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, open: Option<Open>) -> Option<Open> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), open)
    }
}

impl App {
    /// Begins a temporary chat with these settings; the one before it is gone.
    ///
    /// # Errors
    /// `BadRequest` for a setting that no chat may have.
    pub async fn begin_temporary_chat(&self, settings: ChatSettings) -> Result<ChatView> {
        let list = self.chat.temporary().await?;
        let view = list.chats().create(settings).await?;
        let id = view.summary.id.clone();
        self.close(self.temporary.replace(Some(Open { list, id }))).await;
        Ok(view)
    }

    /// The temporary chat, if there is one: a window that was loaded anew shows it again.
    ///
    /// # Errors
    /// Those of reading it.
    pub async fn temporary_chat(&self) -> Result<Option<ChatView>> {
        match self.temporary.open() {
            Some(Open { list, id }) => list.chats().open(&id).await.map(Some),
            None => Ok(None),
        }
    }

    /// Makes the temporary chat a normal one, with the same ids; there is no temporary one afterwards.
    ///
    /// # Errors
    /// `Busy` while its answer is being written, `Storage` if the history cannot be written; it stays temporary then.
    pub async fn keep_temporary_chat(&self) -> Result<()> {
        let Some(Open { list, .. }) = self.temporary.open() else {
            return Ok(());
        };
        self.chat.keep(&list).await?;
        self.close(self.temporary.replace(None)).await;
        Ok(())
    }

    /// Ends the temporary chat, of which nothing is left.
    pub async fn close_temporary_chat(&self) {
        self.close(self.temporary.replace(None)).await;
    }

    async fn close(&self, open: Option<Open>) {
        if let Some(Open { list, .. }) = open {
            list.discard().await;
        }
    }

    /// The list that a chat or a message of this id is in.
    pub async fn chat_of(&self, id: &str) -> Chat {
        match self.temporary.open() {
            Some(Open { list, .. }) if list.holds(id).await.unwrap_or_default() => list,
            _ => self.chat.clone(),
        }
    }

    /// The list that keeps this image or file.
    pub async fn chat_with(&self, attachment: &str) -> Chat {
        match self.temporary.open() {
            Some(Open { list, .. }) if list.has_attachment(attachment).await => list,
            _ => self.chat.clone(),
        }
    }

    /// The answers that are being written, of temporary and other chats.
    pub fn running(&self) -> Vec<RunningAnswer> {
        let mut running = self.chat.answers().running();
        if let Some(Open { list, .. }) = self.temporary.open() {
            running.extend(list.answers().running());
        }
        running
    }
}
