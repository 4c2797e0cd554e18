//! Bringing a collection up to date with its folder: file by file, so that what was read stays whatever happens.

use std::path::{Path, PathBuf};

use api::CollectionActivity;
use futures::stream::{self, StreamExt};
use protocol::OWN_CHATS;
use tokio::sync::watch;

use super::size::{size, RECIPE};
use super::Knowledge;
use crate::folder::{walk, FileFilter, Rules, Source};
use crate::index::{Collection, FileToRead, Index};
use crate::reading::{describe, prepare, Outcome, Text};
use crate::{Error, Result};

/// Files that are read at the same time: the process that reads them is one, and the disk is read meanwhile.
const AT_ONCE: usize = 2;

/// The outcome of bringing a collection up to date.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Updated {
    /// Files that were read.
    pub read: u64,
    /// Files that are as they were.
    pub kept: u64,
    /// Files that cannot be read.
    pub failed: u64,
    /// Images that were found, which no model has read yet.
    pub images: u64,
    /// Files that are gone and were forgotten.
    pub forgotten: u64,
    /// True if it was paused, removed or ended before all files were read.
    pub is_stopped: bool,
}

impl Knowledge {
    /// Looks through the folder of a collection and reads what is new in it. Waits while another one is read. A paused
    /// one is left alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id, [`Error::Folder`] and [`Error::NoFolder`] if its folder cannot
    /// be listed; those of writing the index. What was read before is found in every case.
    pub async fn update(&self, id: &str) -> Result<Updated> {
        let stop = self.stops().entry(id.to_owned()).or_default().subscribe();
        let _reading = self.shared.reading.lock().await;
        let collection = self.collection(id).await?;
        self.stops()
            .entry(id.to_owned())
            .or_default()
            .send_replace(collection.is_paused);
        if collection.is_paused {
            return Ok(Updated {
                is_stopped: true,
                ..Updated::default()
            });
        }
        let Collection { source, rules, .. } = collection;
        let mut done = self.bring_up_to_date(id, &source, &rules, &stop).await;
        if done.as_ref().is_err_and(Error::is_damage) {
            self.make_anew().await?;
            done = self.bring_up_to_date(id, &source, &rules, &stop).await;
        }
        let activity = match &done {
            Ok(_) => CollectionActivity::Idle,
            Err(error) => CollectionActivity::Failed { error: error.told() },
        };
        self.tell(id, activity);
        done
    }

    async fn bring_up_to_date(
        &self,
        id: &str,
        source: &Source,
        rules: &Rules,
        stop: &watch::Receiver<bool>,
    ) -> Result<Updated> {
        self.tell(id, CollectionActivity::Looking);
        let walk = match id == OWN_CHATS {
            true => self.walk_chats().await?,
            false => {
                let (place, which) = (source.clone(), rules.clone());
                let walked = blocking(move || {
                    checked(&place, &which)?;
                    walk(&place, &which)
                });
                walked.await??
            }
        };
        let index = self.index().await?;
        let changes = index.sync(id, &walk, RECIPE).await?;
        let mut updated = Updated {
            kept: changes.kept,
            forgotten: changes.forgotten.len() as u64,
            ..Updated::default()
        };
        let of = changes.read.len() as u64;
        let told = |done| CollectionActivity::Reading { done, of };
        let closing = self.shared.closing.subscribe();
        let mut outcomes = stream::iter(changes.read)
            .map(|file| async {
                match id == OWN_CHATS {
                    true => self.read_chat(file).await,
                    false => read_one(source.clone(), rules.clone(), file).await,
                }
            })
            .buffered(AT_ONCE);
        let mut done = 0;
        while let Some((path, outcome)) = outcomes.next().await {
            if *stop.borrow() || *closing.borrow() {
                updated.is_stopped = true;
                break;
            }
            self.tell(id, told(done));
            store(&index, id, &path, &outcome?, &mut updated).await?;
            done += 1;
        }
        Ok(updated)
    }

    pub(super) fn tell(&self, id: &str, activity: CollectionActivity) {
        let before = match activity {
            CollectionActivity::Idle => self.activity().remove(id),
            ref activity => self.activity().insert(id.to_owned(), activity.clone()),
        };
        if before.unwrap_or_default() != activity {
            self.changed();
        }
    }
}

async fn store(index: &Index, id: &str, path: &Path, outcome: &Outcome, updated: &mut Updated) -> Result<()> {
    index.store(id, path, outcome, RECIPE).await?;
    match outcome {
        Outcome::Read { .. } => updated.read += 1,
        Outcome::Same { .. } => updated.kept += 1,
        Outcome::Failed { .. } => updated.failed += 1,
        Outcome::Image { .. } => updated.images += 1,
        Outcome::Skipped(_) => {}
    }
    Ok(())
}

async fn read_one(source: Source, rules: Rules, wanted: FileToRead) -> (PathBuf, Result<Outcome>) {
    let FileToRead { file, known, described } = wanted;
    let path = file.path.clone();
    let read = move || match (prepare(&source, &rules, &file, known, &text_of, size()), described) {
        // The passages are made anew, and no model has to look once more.
        (Outcome::Image { hash, stamp, .. }, Some(described)) if described.hash == hash => {
            describe(described, stamp, size())
        }
        (outcome, _) => outcome,
    };
    (path, blocking(read).await)
}

/// The text of a document, which the process for files of strangers reads.
pub(super) fn text_of(bytes: Vec<u8>, name: &str) -> std::result::Result<Text, protocol::Error> {
    Ok(Text::of(documents::read(bytes, name)?, name))
}

/// The source by absolute paths, if its places are there.
pub(super) fn checked(source: &Source, rules: &Rules) -> Result<Source> {
    let missing = |path: &Path| Error::NoFolder { path: path.to_owned() };
    match source {
        Source::Folder(path) => {
            let absolute = std::path::absolute(path).map_err(|_| missing(path))?;
            FileFilter::new(&absolute, rules)?;
            match absolute.is_dir() {
                true => Ok(Source::Folder(absolute)),
                false => Err(missing(path)),
            }
        }
        Source::Files(paths) => {
            let absolute = |path: &PathBuf| std::path::absolute(path).map_err(|_| missing(path));
            Ok(Source::Files(paths.iter().map(absolute).collect::<Result<_>>()?))
        }
    }
}

/// Work on files, off the threads that answer windows.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::Broken)
}
