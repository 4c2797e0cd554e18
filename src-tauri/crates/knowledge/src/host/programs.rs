//! The search of collections for programs.

use std::path::Path;

use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{DocumentCollection, DocumentSearch, PassageRequest, QuotedPassage};

use super::finding::quoted;
use super::size::quoted_tokens;
use super::Knowledge;
use crate::Result;

impl DocumentSearch for Knowledge {
    fn collections(&self) -> BoxFuture<'_, protocol::Result<Vec<DocumentCollection>>> {
        async move { Ok(self.listed().await?) }.boxed()
    }

    fn search(&self, request: PassageRequest, most: usize) -> BoxFuture<'_, protocol::Result<Vec<QuotedPassage>>> {
        async move { Ok(self.passages_of(&request, most).await?) }.boxed()
    }
}

impl Knowledge {
    async fn listed(&self) -> Result<Vec<DocumentCollection>> {
        let Some(index) = self.existing().await? else {
            return Ok(Vec::new());
        };
        let mut listed = Vec::new();
        for collection in index.collections().await? {
            let counts = index.counts(Some(&collection.id)).await?;
            listed.push(DocumentCollection {
                id: collection.id,
                name: collection.name,
                read: counts.read,
                waiting: counts.waiting,
                failed: counts.failed,
                text_bytes: counts.text_bytes,
            });
        }
        Ok(listed)
    }

    /// The best passages that were not given and fit.
    async fn passages_of(&self, request: &PassageRequest, most: usize) -> Result<Vec<QuotedPassage>> {
        let collections: Vec<&str> = request.collections.iter().map(String::as_str).collect();
        let found = self
            .search(&collections, &request.question, most + request.given.len())
            .await?;
        let (mut passages, mut taken) = (Vec::new(), 0);
        for passage in found.passages {
            let mut quoted = quoted(passage, request.first_number.saturating_add(passages.len() as u32));
            quoted.file = shown(&quoted.file);
            if request.given.iter().any(|given| given.is_same(&quoted)) {
                continue;
            }
            taken += quoted_tokens(&quoted.text);
            if passages.len() == most || taken > request.most_tokens as usize {
                break;
            }
            passages.push(quoted);
        }
        Ok(passages)
    }
}

/// The path of a file for a program: single files of a collection are known by their absolute paths, which tell of the
/// user's folders.
fn shown(file: &str) -> String {
    let path = Path::new(file);
    match path.file_name() {
        Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
        _ => file.to_owned(),
    }
}
