//! The contract with the source of passages: the user's documents.

use futures::future::BoxFuture;

use crate::{Content, QuotedPassage, Result};

/// A wish for passages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageRequest {
    /// The collections, by their ids.
    pub collections: Vec<String>,
    /// The chat that asks: of the user's own chats, this one says nothing new.
    pub chat: Option<String>,
    /// The question in the user's words.
    pub question: String,
    /// The tokens that all new passages may take together, about.
    pub most_tokens: u32,
    /// The passages that the model still sees of earlier questions; none of them comes again.
    pub given: Vec<QuotedPassage>,
    /// The number of the first new passage.
    pub first_number: u32,
}

/// Finds passages in the user's documents.
pub trait PassageSource: Send + Sync {
    /// All passages, if they fit, or those that answer the question best, as [`Content::Passages`]. `None` if there is
    /// nothing to say: none of the collections is there, or everything was given before.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read.
    fn passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Option<Content>>>;
}
