//! The collections of documents that the user allowed programs to search. None is allowed until the user says so.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::{DocumentCollection, DocumentSearch, PassageRequest, QuotedPassage, Result};

/// The search of documents, limited to allowed collections. Clones share the permission.
#[derive(Clone, Default)]
pub struct AllowedDocuments {
    documents: Option<Arc<dyn DocumentSearch>>,
    /// The ids of allowed collections.
    allowed: Arc<Mutex<Vec<String>>>,
}

impl AllowedDocuments {
    /// A search in which these collections are allowed, by their ids.
    pub fn new(documents: Arc<dyn DocumentSearch>, allowed: Vec<String>) -> Self {
        Self {
            documents: Some(documents),
            allowed: Arc::new(Mutex::new(allowed)),
        }
    }

    /// Allows these collections and no others, from the next search on.
    pub(crate) fn allow(&self, collections: &[String]) {
        *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) = collections.to_vec();
    }

    /// The allowed collections that are there.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) async fn collections(&self) -> Result<Vec<DocumentCollection>> {
        let allowed = self.allowed();
        match &self.documents {
            Some(documents) if !allowed.is_empty() => {
                let mut collections = documents.collections().await?;
                collections.retain(|collection| allowed.contains(&collection.id));
                Ok(collections)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The passages that answer a question best, of those collections of the request that are still allowed.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) async fn search(&self, mut request: PassageRequest, most: usize) -> Result<Vec<QuotedPassage>> {
        let allowed = self.allowed();
        request.collections.retain(|id| allowed.contains(id));
        match &self.documents {
            Some(documents) if !request.collections.is_empty() => documents.search(request, most).await,
            _ => Ok(Vec::new()),
        }
    }

    fn allowed(&self) -> Vec<String> {
        // The list is replaced at once, so a poisoned one is still right.
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Debug for AllowedDocuments {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AllowedDocuments")
            .field("allowed", &self.allowed())
            .finish_non_exhaustive()
    }
}
