//! The temporary chat: at most one, in memory, until it is kept or closed.

use std::sync::{Mutex, PoisonError};

use api::{ChatSettings, ChatView, RunningAnswer};
use chat::Chat;
use protocol::Result;

/// The list with the temporary chat, while there is one.
#[derive(Default)]
pub struct TemporaryChat {
    open: Mutex<Option<Open>>,
    /// Held while one is begun, kept or closed, so that a chat that is being kept is not closed, nor kept once more.
    in_order: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Open {
    list: Chat,
    id: String,
}

impl TemporaryChat {
    /// Begins a temporary chat with these settings, with the models of `chats`; the one before it is gone.
    ///
    /// # Errors
    /// `BadRequest` for a setting that no chat may have.
    pub async fn begin(&self, chats: &Chat, settings: ChatSettings) -> Result<ChatView> {
        let _in_order = self.in_order.lock().await;
        let list = chats.temporary().await?;
        let view = list.chats().create(settings).await?;
        let id = view.summary.id.clone();
        self.replace(Some(Open { list, id })).await;
        Ok(view)
    }

    /// The temporary chat, if there is one: a window that was loaded anew shows it again.
    ///
    /// # Errors
    /// Those of reading it.
    pub async fn view(&self) -> Result<Option<ChatView>> {
        match self.open() {
            Some(Open { list, id }) => list.chats().open(&id).await.map(Some),
            None => Ok(None),
        }
    }

    /// Makes the temporary chat one of `chats`, with the same ids; there is no temporary one afterwards.
    ///
    /// # Errors
    /// `Busy` while its answer is being written, `Storage` if the history cannot be written; it stays temporary then.
    pub async fn keep(&self, chats: &Chat) -> Result<()> {
        let _in_order = self.in_order.lock().await;
        let Some(Open { list, .. }) = self.open() else {
            return Ok(());
        };
        chats.keep(&list).await?;
        self.replace(None).await;
        Ok(())
    }

    /// Ends the temporary chat, of which nothing is left.
    pub async fn close(&self) {
        let _in_order = self.in_order.lock().await;
        self.replace(None).await;
    }

    /// The list of the temporary chat, if a chat or a message of this id is in it.
    pub async fn holding(&self, id: &str) -> Option<Chat> {
        let Open { list, .. } = self.open()?;
        list.holds(id).await.unwrap_or_default().then_some(list)
    }

    /// The list of the temporary chat, if it keeps this image or file.
    pub async fn with_attachment(&self, attachment: &str) -> Option<Chat> {
        let Open { list, .. } = self.open()?;
        list.has_attachment(attachment).await.then_some(list)
    }

    /// The answers of the temporary chat that are being written.
    pub fn running(&self) -> Vec<RunningAnswer> {
        self.open()
            .map(|open| open.list.answers().running())
            .unwrap_or_default()
    }

    fn open(&self) -> Option<Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn replace(&self, open: Option<Open>) {
        let before = std::mem::replace(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner), open);
        if let Some(Open { list, .. }) = before {
            list.discard().await;
        }
    }
}
