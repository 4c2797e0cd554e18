//! The contract with the source of passages: the user's documents.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Content, Coverage, ModelSource, QuotedPassage, Result, TellProgress};

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

/// A wish to have all documents read for a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadingRequest {
    /// The collections, by their ids.
    pub collections: Vec<String>,
    /// The question in the user's words, or the model's.
    pub question: String,
    /// The model that reads.
    pub model: ModelSource,
    /// The tokens of a part, and those that the notes and their passages may take together, about.
    pub most_tokens: u32,
    /// The number of the first passage.
    pub first_number: u32,
}

/// The cost of reading all documents, known before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ReadingCost {
    /// Passages.
    pub passages: u32,
    /// Parts, for each of which the model is asked once.
    pub parts: u32,
    /// Tokens of all parts, about.
    #[ts(type = "number")]
    pub tokens: u64,
    /// Tokens of the notes on all parts at most.
    #[ts(type = "number")]
    pub note_tokens: u64,
    /// Seconds that it takes, about; none if the model was not measured on this computer.
    pub seconds: Option<u32>,
}

/// All documents, read for a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadDocuments {
    /// Notes of everything that they say about it.
    pub notes: String,
    /// The passages that the notes cite.
    pub passages: Vec<QuotedPassage>,
    /// All of it.
    pub coverage: Coverage,
    /// The parts that were read.
    pub parts: u32,
}

/// Finds passages in the user's documents.
pub trait PassageSource: Send + Sync {
    /// All passages, if they fit, or those that answer the question best, as [`Content::Passages`]. `None` if there is
    /// nothing to say: none of the collections is there, or everything was given before.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read.
    fn passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Option<Content>>>;

    /// The cost of reading all of these collections in parts of this many tokens, without its time.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read.
    fn reading_cost(&self, collections: Vec<String>, most_tokens: u32) -> BoxFuture<'_, Result<ReadingCost>>;

    /// Reads all documents for a question, part by part, in the background. `tell` hears of each part; dropping the
    /// future ends it.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read; those of the model.
    fn read_all(&self, request: ReadingRequest, tell: TellProgress) -> BoxFuture<'_, Result<ReadDocuments>>;
}
