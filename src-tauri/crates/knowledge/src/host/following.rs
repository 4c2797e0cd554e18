//! Following the folders of collections: what the system tells of them is read.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use api::Unwatched;
use protocol::OWN_CHATS;
use tokio::sync::Notify;

use super::follower::Follower;
use super::own_chats::SETTLING;
use super::Knowledge;
use crate::watch::{WatchOptions, Watcher};
use crate::{Error, Result};

impl Knowledge {
    /// Brings a collection up to date in the background, embeds what is new, and follows its folder from then on. Called
    /// again, it looks through the folder once more. Errors are told by [`Knowledge::view`].
    pub fn follow(&self, id: &str) {
        let mut followers = self.followers();
        if let Some(known) = followers.get(id).filter(|known| !known.task.is_finished()) {
            known.look.notify_one();
            return;
        }
        let look = Arc::new(Notify::new());
        let (knowledge, owned, again) = (self.clone(), id.to_owned(), look.clone());
        let task = tokio::spawn(async move { knowledge.follow_on(&owned, &again).await });
        let task = task.abort_handle();
        followers.insert(id.to_owned(), Follower { task, look });
    }

    /// Follows all collections, as [`Knowledge::follow`] does.
    pub async fn follow_all(&self) {
        match self.collections().await {
            Ok(collections) => collections.iter().for_each(|collection| self.follow(&collection.id)),
            Err(error) => tracing::warn!(%error, "the collections could not be read"),
        }
    }

    pub(super) fn unfollow(&self, id: &str) {
        if let Some(follower) = self.followers().remove(id) {
            follower.task.abort();
        }
    }

    pub(super) fn unfollow_all(&self) {
        self.followers().drain().for_each(|(_, follower)| follower.task.abort());
    }

    /// Looks and waits by turns, until the collection is gone.
    async fn follow_on(&self, id: &str, again: &Notify) {
        if id == OWN_CHATS {
            return self.follow_chats(again).await;
        }
        loop {
            // Placed before the first look, so that nothing happens between the two unseen.
            let watcher = self.watcher(id).await;
            let mut watcher = match watcher {
                Ok(watcher) => {
                    self.set_unwatched(id, None);
                    Some(watcher)
                }
                Err(Error::NotFound(_)) => return,
                Err(error) => {
                    self.set_unwatched(id, unwatched(&error));
                    tracing::warn!(%error, "a collection is not watched");
                    None
                }
            };
            loop {
                if let Err(Error::NotFound(_)) = self.look(id).await {
                    return;
                }
                let changed = async {
                    match &mut watcher {
                        Some(watcher) => watcher.changed().await.map(drop),
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = changed => if let Err(error) = changed {
                        self.set_unwatched(id, unwatched(&error));
                        tracing::warn!(%error, "a collection is not watched any more");
                        again.notified().await;
                        break;
                    },
                    () = again.notified() => if watcher.is_none() { break },
                }
            }
        }
    }

    /// [`Knowledge::follow_on`] for the user's own chats.
    async fn follow_chats(&self, again: &Notify) {
        let Ok(chats) = self.chats() else { return };
        let mut changes = chats.changes();
        loop {
            changes.borrow_and_update();
            if let Err(Error::NotFound(_)) = self.look(OWN_CHATS).await {
                return;
            }
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => tokio::time::sleep(SETTLING).await,
                    Err(_) => return,
                },
                () = again.notified() => {}
            }
        }
    }

    pub(super) fn set_unwatched(&self, id: &str, reason: Option<Unwatched>) {
        let before = match &reason {
            Some(reason) => self.shared.unwatched().insert(id.to_owned(), reason.clone()),
            None => self.shared.unwatched().remove(id),
        };
        if before != reason {
            self.changed();
        }
    }

    async fn watcher(&self, id: &str) -> Result<Watcher> {
        let collection = self.collection(id).await?;
        Watcher::start(collection.source, collection.rules, WatchOptions::default()).await
    }

    /// Reads what is new, and embeds it.
    async fn look(&self, id: &str) -> Result<()> {
        let updated = self.update(id).await;
        if let Err(error) = &updated {
            tracing::warn!(%error, "a collection could not be brought up to date");
        }
        updated?;
        // A task of its own: changes are read meanwhile.
        let knowledge = self.clone();
        tokio::spawn(async move {
            if let Err(error) = knowledge.embed().await {
                tracing::warn!(%error, "passages could not be embedded");
            }
        });
        Ok(())
    }

    fn followers(&self) -> MutexGuard<'_, HashMap<String, Follower>> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still complete.
        self.shared.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a collection is not watched; none for what keeps it from being read at all, which is told as that.
pub(super) fn unwatched(error: &Error) -> Option<Unwatched> {
    match error {
        Error::TooManyFolders { most } => Some(Unwatched::TooManyFolders { most: *most as u64 }),
        Error::WatchLimit { setting } => Some(Unwatched::WatchLimit {
            setting: (*setting).to_owned(),
        }),
        Error::Watch(_) => Some(Unwatched::NotPossible),
        _ => None,
    }
}
