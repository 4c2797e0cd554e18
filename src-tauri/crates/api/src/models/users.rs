//! Who uses a model, for the one who is about to remove it.

use futures::future::BoxFuture;
use protocol::Result;

/// What uses a model at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Whether the engine of this process holds it in memory.
    pub loaded: bool,
    /// The titles of the chats that were last answered by it, the newest first.
    pub chats: Vec<String>,
    /// Whether new chats begin with it.
    pub default: bool,
    /// Whether it is a folder that is looked into because a person added it.
    pub folder: bool,
}

/// The chats and the engine that use models. Lies between the hub and chat, so that neither knows the other.
pub trait ModelUsers: Send + Sync {
    /// What uses the model of this reference.
    fn usage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ModelUsage>>;

    /// Puts the model out of memory, because its files are about to go.
    fn unload<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Told after the model is gone: new chats that would have begun with it begin with `replacement`, and a folder that was the
    /// model is no longer looked into.
    fn removed<'a>(&'a self, reference: &'a str, replacement: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Told after the model came back: it is used again as it was.
    fn put_back<'a>(&'a self, reference: &'a str, usage: &'a ModelUsage) -> BoxFuture<'a, Result<()>>;
}
