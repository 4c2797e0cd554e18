//! Collections as windows show them.

use api::{
    CollectionActivity, CollectionFile, CollectionFileState, CollectionSource, CollectionView, CollectionsView,
    EmbeddingProgress, LeftOut, RerankingView,
};

use protocol::OWN_CHATS;

use super::image_work::ImageWork;
use super::{Knowledge, Shared};
use crate::folder::Source;
use crate::index::{Collection, FileState, Index, StoredFile};
use crate::Result;

impl Knowledge {
    /// The collections as a window shows them.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn view(&self) -> Result<CollectionsView> {
        let embedder = self.embedder().await;
        let problem = self.shared.embedding_problem().clone();
        let reranking = RerankingView {
            model: self.reranker().await.map(|model| model.reference),
            problem: self.shared.reranking_problem.borrow().clone(),
        };
        let mut embeddings = EmbeddingProgress {
            model: embedder.as_ref().map(|embedder| embedder.reference().to_owned()),
            problem,
            ..EmbeddingProgress::default()
        };
        let Some(index) = self.existing().await? else {
            return Ok(CollectionsView {
                embeddings,
                reranking,
                ..CollectionsView::default()
            });
        };
        let models = index.vector_models().await?;
        let name = embedder.map(|embedder| embedder.name());
        let own = models.iter().find(|(model, ..)| Some(model) == name.as_ref());
        embeddings.done = own.map_or(0, |(_, _, count)| *count);
        embeddings.of = index.counts(None).await?.passages;
        let searched = self.searched(&index).await?;
        embeddings.searched = searched.map(|(embedder, ..)| embedder.reference().to_owned());
        let mut collections = Vec::new();
        for collection in index.collections().await? {
            collections.push(self.shared.view_of(&index, collection).await?);
        }
        Ok(CollectionsView {
            collections,
            embeddings,
            reranking,
        })
    }
}

impl Shared {
    async fn view_of(&self, index: &Index, collection: Collection) -> Result<CollectionView> {
        let counts = index.counts(Some(&collection.id)).await?;
        let activity = match (self.activity().get(&collection.id), collection.is_paused) {
            (_, true) => CollectionActivity::Paused,
            (Some(activity), false) => activity.clone(),
            (None, false) => CollectionActivity::Idle,
        };
        let unwatched = self.unwatched().get(&collection.id).cloned();
        let left_out = collection.left_out.into_iter();
        Ok(CollectionView {
            name: collection.name,
            source: match collection.id == OWN_CHATS {
                true => CollectionSource::Chats,
                false => source(&collection.source),
            },
            read: counts.read,
            waiting: counts.waiting,
            failed: counts.failed,
            skipped: counts.skipped,
            images: counts.images,
            image_reading: self.image_work().get(&collection.id).map(ImageWork::view),
            passages: counts.passages,
            text_bytes: counts.text_bytes,
            left_out: left_out.map(|(reason, count)| LeftOut { reason, count }).collect(),
            synced_at: collection.synced_at,
            activity,
            id: collection.id,
            unwatched,
        })
    }
}

/// A file of a collection.
pub(super) fn file(file: StoredFile) -> CollectionFile {
    CollectionFile {
        path: file.path.to_string_lossy().into_owned(),
        bytes: file.stamp.size,
        state: match file.state {
            FileState::Waiting => CollectionFileState::Waiting,
            FileState::Read { passages, .. } => CollectionFileState::Read { passages },
            FileState::Failed(error) => CollectionFileState::Failed { error },
            FileState::Skipped(reason) => CollectionFileState::LeftOut { reason },
        },
    }
}

fn source(source: &Source) -> CollectionSource {
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    match source {
        Source::Folder(path) => CollectionSource::Folder { path: text(path) },
        Source::Files(paths) => CollectionSource::Files {
            paths: paths.iter().map(text).collect(),
        },
    }
}
