//! The tree of a chat as a person works on it, and what windows remember of a chat.

use protocol::{ChatSummary, ChatView, DeleteScope, Result, ScrollPlace, StoredMessage};

use crate::error::Error;
use crate::Chat;

impl Chat {
    /// A message, whatever branch it is on.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn message(&self, message: &str) -> Result<StoredMessage> {
        Ok(self.0.history.message(message).await?)
    }

    /// Looks at the branch that goes through this message, down to its newest end.
    pub async fn show_branch(&self, message: &str) -> Result<ChatView> {
        let chat = self.0.history.show_branch(message).await?;
        self.0.changed();
        self.open_chat(&chat).await
    }

    /// Stores an answer in a person's words beside one that has ended, and looks at it.
    ///
    /// # Errors
    /// `BadRequest` for words that say nothing, for every message that is no such answer, and for answers that call tools; `Busy` while an
    /// answer of the chat is being written.
    pub async fn edit_answer(&self, message: &str, text: &str) -> Result<ChatView> {
        if text.trim().is_empty() {
            return Err(Error::EmptyAnswer.into());
        }
        let edited = self.0.history.edit_answer(message, text.trim()).await?;
        self.0.changed();
        self.open_chat(&edited.chat).await
    }

    /// Deletes a message and what belongs to it. Returns the chat in the trash that holds it now, which [`Chat::restore`] brings back to its place.
    ///
    /// # Errors
    /// `Busy` while an answer of the chat is being written, `NotFound` for the message.
    pub async fn delete_message(&self, message: &str, scope: DeleteScope) -> Result<String> {
        let trash = self.0.history.delete_message(message, scope).await?;
        self.0.changed();
        Ok(trash)
    }

    /// Copies the branch that ends with this message into a new chat of this title.
    ///
    /// # Errors
    /// `Busy` if an answer in it is being written, `NotFound` for the message.
    pub async fn fork(&self, message: &str, title: &str) -> Result<ChatSummary> {
        let made = self.0.history.fork_chat(message, title).await?;
        self.0.changed();
        Ok(made)
    }

    /// Notes that a window shows the chat, with all that was answered.
    pub async fn mark_read(&self, chat: &str) -> Result<()> {
        if self.0.history.mark_read(chat).await? {
            self.0.changed();
        }
        Ok(())
    }

    /// Remembers where the chat was scrolled to; `None`: its end.
    pub async fn set_scroll_place(&self, chat: &str, place: Option<&ScrollPlace>) -> Result<()> {
        Ok(self.0.history.set_scroll_place(chat, place).await?)
    }
}
