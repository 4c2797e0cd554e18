//! The users of a model, listed before it is removed.

use futures::future::BoxFuture;
use protocol::Result;

/// The current users of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// True if the engine of this process has it loaded.
    pub loaded: bool,
    /// The titles of the chats that it answered last, newest first.
    pub chats: Vec<String>,
    /// True if new chats use it.
    pub default: bool,
    /// True if it is a folder that the user added.
    pub folder: bool,
}

/// The chats and the engine as users of models. The trait stands between hub and chat, so that neither knows the other.
pub trait ModelUsers: Send + Sync {
    /// The current users of the model of this reference.
    fn usage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ModelUsage>>;

    /// Unloads the model because its files are about to be removed.
    fn unload<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Called after the model was removed: new chats that would have used it use `replacement`, and its folder leaves
    /// the list of folders.
    fn removed<'a>(&'a self, reference: &'a str, replacement: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Called after a removed model was restored: it is used again as before.
    fn put_back<'a>(&'a self, reference: &'a str, usage: &'a ModelUsage) -> BoxFuture<'a, Result<()>>;
}
