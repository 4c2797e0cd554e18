//! Embeddings of passages, made in the background, and of questions.

use std::cmp::Reverse;

use api::{LocalModel, ModelShelf};
use protocol::{
    Argument, EmbeddingInput, EmbeddingRequest, Error as Failure, ErrorCode, FolderSource, ModelKind, Priority,
};

use tokio::sync::watch;

use super::prefixes::Prefixes;
use super::Knowledge;
use crate::index::{Index, StoredVector};
use crate::vectors;
use crate::Result;

/// Passages of one request: little enough that a question does not wait long behind them.
const AT_ONCE: u32 = 16;

/// Bytes of a passage that is cut because a model's context is shorter; below it, the model cannot be used.
const LEAST: usize = 64;

/// An embedding model of this computer.
pub(super) struct Embedder {
    model: FolderSource,
    prefixes: Prefixes,
}

impl Embedder {
    fn of(shelf: &dyn ModelShelf, reference: &str) -> Option<Self> {
        let model = shelf.resolve(reference).ok()?.folder()?.clone();
        Some(Self {
            prefixes: Prefixes::of(&model.path, &model.reference),
            model,
        })
    }

    /// The reference of the model.
    pub(super) fn reference(&self) -> &str {
        &self.model.reference
    }

    /// The name of its vectors in the index: other files of a model make other vectors.
    pub(super) fn name(&self) -> String {
        match &self.model.revision {
            Some(revision) => format!("{}@{revision}", self.model.reference),
            None => self.model.reference.clone(),
        }
    }
}

impl Knowledge {
    /// Embeds the passages that have no embedding yet, and forgets those of other models then. Nothing happens without
    /// an embedding model, and while another call does it. Returns how many were embedded.
    ///
    /// # Errors
    /// Those of reading and writing the index. An error of the model is told by [`Knowledge::view`].
    pub async fn embed(&self) -> Result<u64> {
        let Ok(_alone) = self.shared.embedding.try_lock() else {
            return Ok(0);
        };
        let mut embedded = 0;
        loop {
            let mut chosen = self.shared.chosen_model.subscribe();
            chosen.borrow_and_update();
            self.embed_until_another(&chosen, &mut embedded).await?;
            if !chosen.has_changed().unwrap_or_default() {
                return Ok(embedded);
            }
        }
    }

    /// Embeds what the chosen model has no embedding of, and ends early once the person chooses another one.
    async fn embed_until_another(&self, chosen: &watch::Receiver<Option<String>>, embedded: &mut u64) -> Result<()> {
        let (Some(index), Some(embedder)) = (self.existing().await?, self.embedder().await) else {
            return Ok(());
        };
        let (name, closing) = (embedder.name(), self.shared.closing.subscribe());
        let mut after = 0;
        loop {
            let passages = index.without_vectors(&name, after, AT_ONCE).await?;
            let Some((last, ..)) = passages.last() else { break };
            after = *last;
            if *closing.borrow() || chosen.has_changed().unwrap_or_default() {
                return Ok(());
            }
            let texts = passages.iter().map(|(_, headings, text)| embedded_text(headings, text));
            let input = |text: &str| EmbeddingInput::Text(format!("{}{text}", embedder.prefixes.passage));
            let made = self.vectors_of(&embedder.model, texts.collect(), input, Priority::Background);
            let vectors = match made.await {
                Ok(vectors) => vectors,
                Err(error) => {
                    self.set_embedding_problem(Some(error.message));
                    return Ok(());
                }
            };
            let dimensions = vectors.first().map_or(0, Vec::len);
            let stored: Vec<StoredVector> = passages
                .iter()
                .zip(&vectors)
                // A vector without a direction, as of a passage that a broken model makes nothing of, is found by words.
                .filter_map(|((passage, ..), vector)| {
                    let vector = vectors::encode(vector).ok()?;
                    Some(StoredVector {
                        passage: *passage,
                        vector,
                    })
                })
                .collect();
            index.store_vectors(&name, dimensions as u32, &stored).await?;
            *embedded += stored.len() as u64;
            self.changed();
        }
        self.set_embedding_problem(None);
        if index.vector_models().await?.iter().any(|(other, ..)| *other != name) {
            index.forget_other_vectors(&name).await?;
        }
        Ok(())
    }

    /// The model whose vectors are searched, with its name in the index and its dimensions: the one that has most of
    /// them. While another one takes its place, that is the earlier one, if it is still on this computer.
    pub(super) async fn searched(&self, index: &Index) -> Result<Option<(Embedder, String, u32)>> {
        let mut chosen = self.embedder().await;
        let own = chosen.as_ref().map(Embedder::name);
        let mut models = index.vector_models().await?;
        models.sort_by_key(|(model, _, count)| (Reverse(*count), Some(model) != own.as_ref()));
        for (model, dimensions, _) in models {
            let embedder = match own.as_ref() == Some(&model) {
                true => chosen.take(),
                false => self.embedder_named(&model).await,
            };
            if let Some(embedder) = embedder {
                return Ok(Some((embedder, model, dimensions)));
            }
        }
        Ok(None)
    }

    /// The model of these vectors, if it is still on this computer and has the same files.
    async fn embedder_named(&self, name: &str) -> Option<Embedder> {
        let reference = name
            .rsplit_once('@')
            .map_or(name, |(reference, _)| reference)
            .to_owned();
        let shelf = self.shared.shelf.clone();
        let found = tokio::task::spawn_blocking(move || Embedder::of(&*shelf, &reference));
        found.await.ok().flatten().filter(|embedder| embedder.name() == name)
    }

    /// The embedding model: the chosen one or, without a choice, the smallest of this computer.
    pub(super) async fn embedder(&self) -> Option<Embedder> {
        let (shelf, chosen) = (self.shared.shelf.clone(), self.shared.chosen_model.borrow().clone());
        let found = tokio::task::spawn_blocking(move || {
            let reference = match chosen {
                Some(chosen) => chosen,
                None => smallest(shelf.list(), ModelKind::Embedding)?,
            };
            Embedder::of(&*shelf, &reference)
        });
        found.await.ok().flatten()
    }

    /// The vector of a question.
    pub(super) async fn question_vector(&self, embedder: &Embedder, question: &str) -> protocol::Result<Vec<f32>> {
        let text = format!("{}{question}", embedder.prefixes.question);
        let input = vec![EmbeddingInput::Text(text)];
        let mut vectors = self.vectors(&embedder.model, input, Priority::Chat).await?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// The vectors of passages. One that is longer than the model's context is cut until it fits. `input`: what the
    /// model is given of a text.
    pub(super) async fn vectors_of(
        &self,
        model: &FolderSource,
        mut texts: Vec<String>,
        input: impl Fn(&str) -> EmbeddingInput,
        priority: Priority,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        loop {
            let inputs = texts.iter().map(|text| input(text)).collect();
            match self.vectors(model, inputs, priority).await {
                Err(error) if error.code == ErrorCode::ContextFull => {
                    let long = number(&error, "input").and_then(|input| texts.get_mut(input));
                    match long.filter(|text| text.len() > LEAST) {
                        Some(text) => text.truncate(text.floor_char_boundary(text.len() * 3 / 4)),
                        None => return Err(error),
                    }
                }
                made => return made,
            }
        }
    }

    async fn vectors(
        &self,
        model: &FolderSource,
        inputs: Vec<EmbeddingInput>,
        priority: Priority,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        let wanted = inputs.len();
        let request = EmbeddingRequest {
            model: model.clone().into(),
            inputs,
            dimensions: None,
            priority,
            keep_alive: None,
        };
        let made = self.shared.engine.embed(request).await?.vectors;
        match made.len() == wanted {
            true => Ok(made),
            false => Err(Failure::new(
                ErrorCode::Engine,
                "the model made another number of vectors than there are passages",
            )),
        }
    }

    pub(super) fn set_embedding_problem(&self, problem: Option<String>) {
        let mut known = self.shared.embedding_problem();
        if *known != problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "passages could not be embedded");
            }
            *known = problem;
            drop(known);
            self.changed();
        }
    }
}

/// The text of a passage as it is embedded: what it stands under says what it is about.
pub(super) fn embedded_text(headings: &str, text: &str) -> String {
    match headings.is_empty() {
        true => text.to_owned(),
        false => format!("{headings}\n{text}"),
    }
}

/// An argument of an error that is a number.
fn number(error: &Failure, name: &str) -> Option<usize> {
    match error.arguments.get(name)? {
        Argument::Number(number) => usize::try_from(*number).ok(),
        Argument::Text(text) => text.parse().ok(),
    }
}

/// The reference of the smallest model of a kind that can be used.
pub(super) fn smallest(models: Vec<LocalModel>, kind: ModelKind) -> Option<String> {
    let usable = models
        .into_iter()
        .filter(|model| model.kind == kind && model.problem.is_none());
    usable.min_by_key(|model| model.bytes).map(|model| model.reference)
}
