//! The order of found passages by a reranker: a model that reads each of them together with the question. It is better
//! than the distance of two vectors, and reads every passage anew for every question, so that only the best are ranked.

use protocol::{EmbeddingInput, FolderSource, ModelKind, Priority};

use super::embedding::{embedded_text, smallest};
use super::Knowledge;
use crate::index::StoredPassage;

/// Passages that are ranked: a computer without a GPU reads about ten a second.
const MOST_RANKED: usize = 24;

impl Knowledge {
    /// The smallest reranker of this computer, which is used as soon as there is one.
    pub(super) async fn reranker(&self) -> Option<FolderSource> {
        let shelf = self.shared.shelf.clone();
        let found = tokio::task::spawn_blocking(move || {
            let reference = smallest(shelf.list(), ModelKind::Reranker)?;
            shelf.resolve(&reference).ok()?.folder().cloned()
        });
        found.await.ok().flatten()
    }

    /// Puts the passages that answer the question best first, if there is a reranker. They stay as they are without
    /// one, and if it fails, which [`Knowledge::view`] tells.
    pub(super) async fn rerank(&self, question: &str, passages: &mut [StoredPassage]) {
        let best = passages.len().min(MOST_RANKED);
        let Some(model) = self.reranker().await.filter(|_| best > 1) else {
            return;
        };
        let pair = |text: &str| EmbeddingInput::Pair {
            question: question.to_owned(),
            text: text.to_owned(),
        };
        let texts = passages[..best]
            .iter()
            .map(|passage| embedded_text(&passage.headings, &passage.text))
            .collect();
        match self.vectors_of(&model, texts, pair, Priority::Chat).await {
            Ok(scores) => {
                self.set_reranking_problem(None);
                // A score that is no number says nothing of its passage, which comes last then.
                let score = |at: &usize| scores[*at].first().copied().filter(|score| score.is_finite());
                let mut order: Vec<usize> = (0..best).collect();
                order.sort_by(|one, other| {
                    let [one, other] = [one, other].map(|at| score(at).unwrap_or(f32::MIN));
                    other.total_cmp(&one)
                });
                let ranked: Vec<StoredPassage> = order.into_iter().map(|at| passages[at].clone()).collect();
                passages[..best].clone_from_slice(&ranked);
            }
            Err(error) => self.set_reranking_problem(Some(error.message)),
        }
    }

    fn set_reranking_problem(&self, problem: Option<String>) {
        let is_new = self.shared.reranking_problem.send_if_modified(|known| {
            let changed = *known != problem;
            *known = problem;
            changed
        });
        if is_new {
            self.changed();
        }
    }
}
