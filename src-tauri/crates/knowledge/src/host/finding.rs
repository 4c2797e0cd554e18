//! Passages for a question: by words and by meaning, or all of them if they fit.

use std::collections::{BTreeSet, HashSet};

use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{
    Content, Coverage, PassageRequest, PassageSource, QuotedPassage, ReadDocuments, ReadingCost, ReadingRequest,
    TellProgress, OWN_CHATS,
};

use super::part_notes::fitting;
use super::size::{quoted_tokens, AROUND};
use super::Knowledge;
use crate::index::{Index, StoredPassage};
use crate::{fuse, Result};

/// The passages of each half that fusion ranks.
const OF_EACH: usize = 50;

/// Passages for one question at most: more bury what matters, and take longer to read than to ask once more.
const MOST: usize = 8;

/// Passages before and after one that is read on from.
const AROUND_EACH: usize = 2;

/// Bytes to a token at least, by which it is told without reading that all passages fit.
const BYTES_A_TOKEN: u64 = 3;

/// Passages that a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// They, the best first.
    pub passages: Vec<StoredPassage>,
    /// True if they were searched by meaning as well as by words.
    pub by_meaning: bool,
}

impl Knowledge {
    /// The passages of these collections that answer a question best.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn search(&self, collections: &[&str], question: &str, most: usize) -> Result<Found> {
        let Some(index) = self.existing().await? else {
            return Ok(Found::default());
        };
        let of_each = OF_EACH.max(most);
        let by_words = index.search(collections, question, of_each as u32).await?;
        let by_words: Vec<(i64, f64)> = by_words.iter().map(|hit| (hit.passage.id, hit.score)).collect();
        let by_meaning = self.by_meaning(&index, collections, question, of_each).await?;
        let is_by_meaning = by_meaning.is_some();
        let fused = fuse(&by_words, &by_meaning.unwrap_or_default(), of_each);
        let ids: Vec<i64> = fused.into_iter().map(|(id, _)| id).collect();
        let mut passages = index.passages(&ids).await?;
        // Copies of a file say the same.
        let mut texts = HashSet::new();
        passages.retain(|passage| texts.insert(passage.text.clone()));
        self.rerank(question, &mut passages).await;
        passages.truncate(most);
        Ok(Found {
            passages,
            by_meaning: is_by_meaning,
        })
    }

    /// The nearest passages by the embedding of the question, with their cosines; `None` without embeddings.
    async fn by_meaning(
        &self,
        index: &Index,
        collections: &[&str],
        question: &str,
        most: usize,
    ) -> Result<Option<Vec<(i64, f32)>>> {
        let Some((embedder, model, dimensions)) = self.searched(index).await? else {
            return Ok(None);
        };
        let vector = match self.question_vector(&embedder, question).await {
            Ok(vector) => vector,
            Err(error) => {
                self.set_embedding_problem(Some(error.message));
                return Ok(None);
            }
        };
        let mut cache = self.shared.vector_cache.lock().await;
        let found = cache.nearest(index, (&model, dimensions), collections, (&vector, most));
        Ok(Some(found.await?))
    }

    /// How much of these collections a chat was given with these passages: those of files that have changed since do
    /// not count.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn coverage(&self, collections: &[&str], given: &[QuotedPassage]) -> Result<Coverage> {
        let mut coverage = Coverage::default();
        let Some(index) = self.existing().await? else {
            return Ok(coverage);
        };
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut files = HashSet::new();
        for collection in collections {
            let counts = index.counts(Some(collection)).await?;
            coverage.of_passages += small(counts.passages);
            coverage.of_files += small(counts.read);
            coverage.unread += small(counts.waiting + counts.failed + counts.skipped + counts.images);
            let own = || given.iter().filter(|passage| passage.collection == *collection);
            let hashes: BTreeSet<&str> = own().map(|passage| passage.file_hash.as_str()).collect();
            let hashes: Vec<&str> = hashes.into_iter().collect();
            let present: HashSet<String> = index.present_hashes(collection, &hashes).await?.into_iter().collect();
            let places: HashSet<_> = own()
                .filter(|passage| present.contains(&passage.file_hash))
                .map(|passage| (&passage.file, passage.first_line, passage.last_line, &passage.text))
                .collect();
            coverage.passages += small(places.len() as u64);
            files.extend(places.iter().map(|(file, ..)| (*collection, *file)));
        }
        coverage.files = small(files.len() as u64);
        Ok(coverage)
    }

    async fn passages_for(&self, request: PassageRequest) -> Result<Option<Content>> {
        let Some(index) = self.existing().await? else {
            return Ok(None);
        };
        let collections = self.known(&request.collections).await?;
        let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
        if collections.is_empty() {
            return Ok(None);
        }
        let before = self.coverage(&collections, &request.given).await?;
        if before.of_passages > 0 && before.is_whole() {
            return Ok(None);
        }
        let most = request.most_tokens as usize;
        let found = match self.all_that_fit(&index, &collections, most).await? {
            Some(all) => all,
            None => self.best(&collections, &request).await?,
        };
        self.content(&collections, &request, found).await.map(Some)
    }

    /// The passages that answer the question of a request best, as [`Content::Passages`], also if all would fit.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn find(&self, request: &PassageRequest) -> Result<Content> {
        let collections = self.known(&request.collections).await?;
        let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
        let found = self.best(&collections, request).await?;
        self.content(&collections, request, found).await
    }

    /// The passages before and after one in its file, as [`Content::Passages`]. The question of the request counts for
    /// nothing.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn around(&self, of: &QuotedPassage, request: &PassageRequest) -> Result<Content> {
        let collections = self.known(&request.collections).await?;
        let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        if let Some(index) = self
            .existing()
            .await?
            .filter(|_| collections.contains(&of.collection.as_str()))
        {
            let of_file = index.passages_of_state(&of.collection, &of.file_hash).await?;
            let own: Vec<StoredPassage> = of_file
                .into_iter()
                .filter(|passage| passage.path.to_string_lossy() == of.file)
                .collect();
            if let Some(at) = own
                .iter()
                .position(|one| one.lines.0 == of.first_line && one.text == of.text)
            {
                let first = at.saturating_sub(AROUND_EACH);
                found = own.into_iter().skip(first).take(at - first + 1 + AROUND_EACH).collect();
            }
        }
        self.content(&collections, request, found).await
    }

    /// Those of these collections that are there.
    pub(super) async fn known(&self, wanted: &[String]) -> Result<Vec<String>> {
        let known: HashSet<String> = self.collections().await?.into_iter().map(|known| known.id).collect();
        Ok(wanted.iter().filter(|id| known.contains(*id)).cloned().collect())
    }

    async fn best(&self, collections: &[&str], request: &PassageRequest) -> Result<Vec<StoredPassage>> {
        let most = MOST + request.given.len();
        Ok(self.search(collections, &request.question, most).await?.passages)
    }

    /// The passages that are new and fit, with their numbers, and how much was read with them.
    async fn content(
        &self,
        collections: &[&str],
        request: &PassageRequest,
        found: Vec<StoredPassage>,
    ) -> Result<Content> {
        let mut passages = Vec::new();
        let (mut taken, mut number) = (0, request.first_number);
        for passage in found {
            let quoted = quoted(passage, number);
            let is_own = quoted.collection == OWN_CHATS && request.chat.as_ref() == Some(&quoted.file);
            if is_own || request.given.iter().any(|given| given.is_same(&quoted)) {
                continue;
            }
            taken += quoted_tokens(&quoted.text);
            if taken > request.most_tokens as usize {
                break;
            }
            number += 1;
            passages.push(quoted);
        }
        let all: Vec<QuotedPassage> = request.given.iter().chain(&passages).cloned().collect();
        let coverage = self.coverage(collections, &all).await?;
        Ok(Content::Passages { passages, coverage })
    }

    /// All passages of these collections, if they fit into this many tokens.
    async fn all_that_fit(
        &self,
        index: &Index,
        collections: &[&str],
        most: usize,
    ) -> Result<Option<Vec<StoredPassage>>> {
        // A question seldom needs all that was ever talked about.
        if collections.contains(&OWN_CHATS) {
            return Ok(None);
        }
        let (mut bytes, mut count) = (0, 0);
        for collection in collections {
            let counts = index.counts(Some(collection)).await?;
            bytes += counts.text_bytes;
            count += counts.passages;
        }
        if bytes / BYTES_A_TOKEN + count * AROUND as u64 > most as u64 {
            return Ok(None);
        }
        let all = index
            .all_passages(collections, 0, u32::try_from(count).unwrap_or(u32::MAX))
            .await?;
        let size: usize = all.iter().map(|passage| quoted_tokens(&passage.text)).sum();
        Ok((size <= most).then_some(all))
    }
}

/// A passage as a model is given it.
pub fn quoted(passage: StoredPassage, number: u32) -> QuotedPassage {
    QuotedPassage {
        number,
        file: passage.path.to_string_lossy().into_owned(),
        collection: passage.collection,
        file_hash: passage.file_hash,
        headings: passage.headings,
        page: passage.page,
        first_line: passage.lines.0,
        last_line: passage.lines.1,
        text: passage.text,
    }
}

impl PassageSource for Knowledge {
    fn passages(&self, request: PassageRequest) -> BoxFuture<'_, protocol::Result<Option<Content>>> {
        async move { Ok(self.passages_for(request).await?) }.boxed()
    }

    fn reading_cost(&self, collections: Vec<String>, most_tokens: u32) -> BoxFuture<'_, protocol::Result<ReadingCost>> {
        async move {
            let known = self.known(&collections).await?;
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Ok(Self::reading_cost(self, &known, most_tokens).await?)
        }
        .boxed()
    }

    fn read_all(&self, request: ReadingRequest, tell: TellProgress) -> BoxFuture<'_, protocol::Result<ReadDocuments>> {
        async move { Ok(fitting(self.read_through(&request, &tell).await?, request.most_tokens)) }.boxed()
    }
}
