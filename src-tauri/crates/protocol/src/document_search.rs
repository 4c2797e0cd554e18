//! The contract with a search of the user's documents by their collections, for programs that the user allowed to ask.

use futures::future::BoxFuture;

use crate::{PassageRequest, QuotedPassage, Result};

/// A collection of documents, as programs name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentCollection {
    /// Its id.
    pub id: String,
    /// Its name for the user.
    pub name: String,
    /// Files whose text can be searched.
    pub read: u64,
    /// Files that wait to be read.
    pub waiting: u64,
    /// Files that cannot be read.
    pub failed: u64,
    /// Bytes of the texts of the files that were read.
    pub text_bytes: u64,
}

/// Lists collections and searches them. It knows no permission: whoever asks names only allowed collections.
pub trait DocumentSearch: Send + Sync {
    /// All collections, the oldest first.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read.
    fn collections(&self) -> BoxFuture<'_, Result<Vec<DocumentCollection>>>;

    /// The passages that answer a question best, at most `most`. Their files are paths below the folder of the
    /// collection, or names without a folder: a program learns no path of this computer.
    ///
    /// # Errors
    /// `Storage` if the index cannot be read.
    fn search(&self, request: PassageRequest, most: usize) -> BoxFuture<'_, Result<Vec<QuotedPassage>>>;
}
