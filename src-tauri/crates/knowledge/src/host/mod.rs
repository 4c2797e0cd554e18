//! The collections of a computer as its windows, its command line and its chats use them: read in the background, kept
//! up to date, searched by words and by meaning.

mod citing;
mod embedding;
mod everything;
mod finding;
mod follower;
mod following;
mod image_work;
mod images;
mod own_chats;
mod part_notes;
mod prefixes;
mod programs;
mod reranking;
mod response;
mod size;
#[cfg(test)]
mod tests;
mod update;
mod vector_cache;
mod view;
mod viewing;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use api::{CollectionActivity, CollectionFile, ModelShelf, Unwatched};
use protocol::{ChatTexts, Engine};
use tokio::sync::watch;

pub use citing::check_citations;
pub use finding::{quoted, Found};
pub use images::ImagesRead;
pub use update::Updated;

use follower::Follower;
use image_work::ImageWork;
use vector_cache::VectorCache;

use crate::folder::{Rules, Source};
use crate::index::{Collection, Index};
use crate::{Error, Result};

/// All collections of one index, with one engine. Clones share everything.
#[derive(Clone)]
pub struct Knowledge {
    shared: Arc<Shared>,
}

/// The state that all clones share.
struct Shared {
    path: PathBuf,
    engine: Arc<dyn Engine>,
    shelf: Arc<dyn ModelShelf>,
    /// The user's own chats; a host without any sets none.
    chats: OnceLock<Arc<dyn ChatTexts>>,
    /// Opened when it is first needed: somebody without collections has no such file.
    index: tokio::sync::Mutex<Option<Index>>,
    /// The work on collections, by their ids; the others are idle.
    activity: Mutex<HashMap<String, CollectionActivity>>,
    /// Why collections are not watched, by their ids; the others are, or nobody follows them.
    unwatched: Mutex<HashMap<String, Unwatched>>,
    /// Becomes true for a collection that is to be left alone, by its id.
    stops: Mutex<HashMap<String, watch::Sender<bool>>>,
    /// The tasks that follow collections, by their ids.
    followers: Mutex<HashMap<String, Follower>>,
    /// Held by the collection that is read: two at once would only take the disk from each other.
    reading: tokio::sync::Mutex<()>,
    /// Held by the collection whose images are read.
    image_reading: tokio::sync::Mutex<()>,
    /// The reading of images, by the ids of their collections.
    image_work: Mutex<HashMap<String, ImageWork>>,
    /// Held while passages are embedded.
    embedding: tokio::sync::Mutex<()>,
    /// The reference of the embedding model that the person chose.
    chosen_model: watch::Sender<Option<String>>,
    /// Why the last embedding failed.
    embedding_problem: Mutex<Option<String>>,
    /// Why the last reranking failed.
    reranking_problem: watch::Sender<Option<String>>,
    vector_cache: tokio::sync::Mutex<VectorCache>,
    changes: watch::Sender<()>,
    closing: watch::Sender<bool>,
}

impl Knowledge {
    /// The collections whose index is this file, which need not be there yet. Nothing is read before it is needed.
    pub fn new(path: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Self {
        Self {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                engine,
                shelf,
                chats: OnceLock::new(),
                index: tokio::sync::Mutex::default(),
                activity: Mutex::default(),
                unwatched: Mutex::default(),
                stops: Mutex::default(),
                followers: Mutex::default(),
                reading: tokio::sync::Mutex::default(),
                image_reading: tokio::sync::Mutex::default(),
                image_work: Mutex::default(),
                embedding: tokio::sync::Mutex::default(),
                chosen_model: watch::Sender::default(),
                embedding_problem: Mutex::default(),
                reranking_problem: watch::Sender::default(),
                vector_cache: tokio::sync::Mutex::default(),
                changes: watch::Sender::default(),
                closing: watch::Sender::new(false),
            }),
        }
    }

    /// Adds a collection; returns its id. [`Knowledge::update`] reads it.
    ///
    /// # Errors
    /// [`Error::NoFolder`] for a place that is not there, [`Error::Pattern`] for rules that cannot be used; those of
    /// writing the index.
    pub async fn add(&self, name: &str, source: &Source, rules: &Rules) -> Result<String> {
        let source = update::checked(source, rules)?;
        let id = self.index().await?.add_collection(name, &source, rules).await?;
        self.changed();
        Ok(id)
    }

    /// Forgets a collection with all that was read of it. Its files stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; those of writing the index.
    pub async fn remove(&self, id: &str) -> Result<()> {
        self.stop(id);
        self.stop_images(id);
        self.unfollow(id);
        self.index().await?.remove_collection(id).await?;
        self.activity().remove(id);
        self.shared.unwatched().remove(id);
        self.changed();
        Ok(())
    }

    /// Gives a collection another name.
    ///
    /// # Errors
    /// As [`Knowledge::remove`].
    pub async fn rename(&self, id: &str, name: &str) -> Result<()> {
        let known = self.collection(id).await?;
        self.index().await?.change_collection(id, name, known.is_paused).await?;
        self.changed();
        Ok(())
    }

    /// Leaves a collection as it is, until [`Knowledge::update`] is called after `false` here. What was read is found.
    ///
    /// # Errors
    /// As [`Knowledge::remove`].
    pub async fn pause(&self, id: &str, is_paused: bool) -> Result<()> {
        let known = self.collection(id).await?;
        self.index()
            .await?
            .change_collection(id, &known.name, is_paused)
            .await?;
        if is_paused {
            self.stop(id);
        }
        self.changed();
        Ok(())
    }

    /// Forgets everything that was read of all collections, texts of images included, and reads them once more. No model
    /// is asked.
    ///
    /// # Errors
    /// Those of reading and writing the index. Documents are not touched.
    pub async fn rebuild(&self) -> Result<()> {
        self.forget_files().await?;
        for collection in self.collections().await? {
            self.update(&collection.id).await?;
        }
        Ok(())
    }

    /// Forgets everything that was read of all collections, which stay.
    ///
    /// # Errors
    /// As [`Knowledge::rebuild`].
    pub async fn forget_files(&self) -> Result<()> {
        self.shared.image_work().values().for_each(ImageWork::stop);
        let forgotten = async { self.index().await?.forget_all_files().await };
        match forgotten.await {
            Err(error) if error.is_damage() => self.make_anew().await?,
            forgotten => forgotten?,
        }
        self.changed();
        Ok(())
    }

    /// The work that is done with a collection now.
    pub fn activity_of(&self, id: &str) -> CollectionActivity {
        self.activity().get(id).cloned().unwrap_or_default()
    }

    /// The collections, the oldest first.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn collections(&self) -> Result<Vec<Collection>> {
        match self.existing().await? {
            Some(index) => index.collections().await,
            None => Ok(Vec::new()),
        }
    }

    /// The files of a collection as a window shows them, in the order of their paths.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; those of reading the index.
    pub async fn files(&self, id: &str) -> Result<Vec<CollectionFile>> {
        self.collection(id).await?;
        let files = self.index().await?.files(id).await?;
        Ok(files.into_iter().map(view::file).collect())
    }

    /// Chooses the embedding model; `None` takes the smallest of this computer. True if it is another one than before:
    /// [`Knowledge::embed`] then has its work, or goes over to it if it runs.
    pub fn choose_model(&self, reference: Option<String>) -> bool {
        let is_new = self.shared.chosen_model.send_if_modified(|chosen| {
            let changed = *chosen != reference;
            *chosen = reference;
            changed
        });
        self.changed();
        is_new
    }

    /// Says that other models are on this computer, so that another one may embed and rank passages. As
    /// [`Knowledge::embed`].
    ///
    /// # Errors
    /// Those of reading and writing the index.
    pub async fn models_changed(&self) -> Result<()> {
        self.changed();
        self.embed().await.map(drop)
    }

    /// Tells whenever [`Knowledge::view`] may look different.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// Ends all work and closes the index, which is whole without this, too.
    pub async fn shut_down(&self) {
        self.shared.closing.send_replace(true);
        self.unfollow_all();
        if let Some(index) = self.shared.index.lock().await.take() {
            index.close().await;
        }
    }

    /// The index, made if it is not there. A damaged one is made anew with its collections: no document is in danger.
    async fn index(&self) -> Result<Index> {
        let mut open = self.shared.index.lock().await;
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let index = match Index::open(&self.shared.path).await {
            Err(error) if error.is_damage() => {
                tracing::warn!("the index of documents is damaged and made anew");
                Index::rebuild(&self.shared.path).await?
            }
            opened => opened?,
        };
        Ok(open.insert(index).clone())
    }

    /// Puts an empty index with the same collections in the place of a damaged one.
    async fn make_anew(&self) -> Result<()> {
        tracing::warn!("the index of documents is damaged and made anew");
        let mut open = self.shared.index.lock().await;
        if let Some(index) = open.take() {
            index.close().await;
        }
        *open = Some(Index::rebuild(&self.shared.path).await?);
        Ok(())
    }

    /// The index, if there is one.
    async fn existing(&self) -> Result<Option<Index>> {
        match self.shared.index.lock().await.is_some() || self.shared.path.exists() {
            true => self.index().await.map(Some),
            false => Ok(None),
        }
    }

    async fn collection(&self, id: &str) -> Result<Collection> {
        match self.existing().await? {
            Some(index) => index.collection(id).await,
            None => Err(Error::NotFound("collection")),
        }
    }

    fn stop(&self, id: &str) {
        if let Some(stop) = self.stops().get(id) {
            stop.send_replace(true);
        }
    }

    fn changed(&self) {
        self.shared.changes.send_replace(());
    }

    fn activity(&self) -> MutexGuard<'_, HashMap<String, CollectionActivity>> {
        self.shared.activity()
    }

    fn stops(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<bool>>> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still complete.
        self.shared.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn activity(&self) -> MutexGuard<'_, HashMap<String, CollectionActivity>> {
        // As above.
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwatched(&self) -> MutexGuard<'_, HashMap<String, Unwatched>> {
        // As above.
        self.unwatched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn image_work(&self) -> MutexGuard<'_, HashMap<String, ImageWork>> {
        // As above.
        self.image_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn embedding_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.embedding_problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
