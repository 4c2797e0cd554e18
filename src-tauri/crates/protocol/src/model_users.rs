//! Who uses a model, for the one who is about to remove it.

use futures::future::BoxFuture;

use crate::Result;

/// What uses a model at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Whether the engine of this process holds it in memory.
    pub loaded: bool,
    /// How many chats were last answered by it.
    pub chats: u32,
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
}
