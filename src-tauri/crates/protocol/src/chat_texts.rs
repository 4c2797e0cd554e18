//! The contract with the source of the user's own chats, which are read as documents are.

use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::Result;

/// The id of the collection of the user's own chats.
pub const OWN_CHATS: &str = "chats";

/// A chat as a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatText {
    /// The id of the chat.
    pub id: String,
    /// Grows with every change of what the chat says.
    pub revision: u64,
    /// The time of its last message, in Unix milliseconds.
    pub updated_at: i64,
}

/// The stored chats of the user; temporary ones and those in the trash are not among them.
pub trait ChatTexts: Send + Sync {
    /// All of them.
    ///
    /// # Errors
    /// `Storage` if the history cannot be read.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ChatText>>>;

    /// The questions and answers of a chat as it is shown, as Markdown below its title.
    ///
    /// # Errors
    /// `NotFound` if it is gone; `Storage` if the history cannot be read.
    fn text(&self, chat: String) -> BoxFuture<'_, Result<String>>;

    /// Tells whenever one of them may have changed.
    fn changes(&self) -> watch::Receiver<()>;
}
