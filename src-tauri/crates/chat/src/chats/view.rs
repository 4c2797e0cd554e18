//! One chat as it is read: all of it, or by a window, which sees the end of a long one first.

use api::{ChatView, StoredMessage};
use protocol::Result;

use crate::chats::Chats;
use crate::request::ahead;

/// The earlier messages that are read at once: a window takes them without a visible pause.
const EARLIER: u32 = 500;

impl Chats {
    /// A chat with the branch that is looked at.
    pub async fn get(&self, chat: &str) -> Result<ChatView> {
        Ok(self.core.history.chat(chat).await?)
    }

    /// A chat that will be continued, of a long one the newest messages; [`Chats::earlier_messages`] reads the others.
    /// The loaded model, if it is the chat's, prefetches it meanwhile.
    pub async fn open(&self, chat: &str) -> Result<ChatView> {
        ahead::open_chat(&self.core, chat).await
    }

    /// Some of the messages right before this one on its branch, oldest first; none before the first.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn earlier_messages(&self, message: &str) -> Result<Vec<StoredMessage>> {
        Ok(self.core.history.messages_before(message, EARLIER).await?)
    }
}
