//! The tree of a chat as a person works on it, and what windows remember of a chat.

use api::{ChatSummary, ChatView, DeleteScope, ScrollPlace, StoredMessage};
use protocol::Result;

use crate::chats::Chats;
use crate::error::Error;
use crate::request::ahead::open_chat;

impl Chats {
    /// A message, whatever branch it is on.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn message(&self, message: &str) -> Result<StoredMessage> {
        Ok(self.core.history.message(message).await?)
    }

    /// Looks at the branch that goes through this message, down to its newest end.
    pub async fn show_branch(&self, message: &str) -> Result<ChatView> {
        let chat = self.core.change(self.core.history.show_branch(message)).await?;
        open_chat(&self.core, &chat).await
    }

    /// Stores an answer in a person's words beside one that has ended, and looks at it.
    ///
    /// # Errors
    /// `BadRequest` for words that say nothing, for every message that is no such answer, and for answers that call
    /// tools; `Busy` while an answer of the chat is being written.
    pub async fn edit_answer(&self, message: &str, text: &str) -> Result<ChatView> {
        if text.trim().is_empty() {
            return Err(Error::EmptyAnswer.into());
        }
        let edited = self
            .core
            .change(self.core.history.edit_answer(message, text.trim()))
            .await?;
        open_chat(&self.core, &edited.chat).await
    }

    /// Deletes a message and what belongs to it. Returns the chat in the trash that holds it now, which
    /// [`crate::Library::restore`] brings back to its place.
    ///
    /// # Errors
    /// `Busy` while an answer of the chat is being written, `NotFound` for the message.
    pub async fn delete_message(&self, message: &str, scope: DeleteScope) -> Result<String> {
        self.core.change(self.core.history.delete_message(message, scope)).await
    }

    /// Copies the branch that ends with this message into a new chat of this title.
    ///
    /// # Errors
    /// `Busy` if an answer in it is being written, `NotFound` for the message.
    pub async fn fork(&self, message: &str, title: &str) -> Result<ChatSummary> {
        self.core.change(self.core.history.fork_chat(message, title)).await
    }

    /// Notes that a window shows the chat, with all that was answered.
    pub async fn mark_read(&self, chat: &str) -> Result<()> {
        if self.core.history.mark_read(chat).await? {
            self.core.changed();
        }
        Ok(())
    }

    /// Remembers where the chat was scrolled to; `None`: its end.
    pub async fn set_scroll_place(&self, chat: &str, place: Option<&ScrollPlace>) -> Result<()> {
        Ok(self.core.history.set_scroll_place(chat, place).await?)
    }
}
