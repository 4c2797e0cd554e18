//! Hearing that the history file was written to, by whichever process, so that nobody has to look again and again.

use std::path::Path;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use crate::{Error, History, Result};

/// Rings whenever something is written to the history file.
#[derive(Debug)]
pub struct Writes {
    rang: Arc<Notify>,
    /// It watches as long as it is here.
    _watch: system::Watch,
}

impl Writes {
    /// Waits for a write since the last call. The writer may still be busy: rows reach the log before the transaction
    /// is committed.
    pub async fn heard(&self) {
        self.rang.notified().await;
    }
}

impl History {
    /// Hears of writes from now on, those of this process among them. Of those of other computers, to a folder on a
    /// network, nothing is heard.
    ///
    /// # Errors
    /// [`Error::Watch`] if the system cannot tell.
    pub fn writes(&self) -> Result<Writes> {
        let rang = Arc::new(Notify::new());
        // Everything is written to the log first, and the log is there as long as somebody has the file open.
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let watch = system::Watch::begin(Path::new(&log), Arc::downgrade(&rang)).map_err(Error::Watch)?;
        Ok(Writes { rang, _watch: watch })
    }
}

/// Rings, if somebody still listens; returns whether somebody does.
fn ring(bell: &Weak<Notify>) -> bool {
    bell.upgrade().inspect(|bell| bell.notify_one()).is_some()
}

/// A thread with this name that waits for the system.
fn spawn(waits: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("history-writes".into())
        .spawn(waits)
        .map(drop)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::Result;
    use std::path::Path;
    use std::sync::Weak;

    use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
    use tokio::sync::Notify;

    use super::{ring, spawn};

    #[derive(Debug)]
    pub struct Watch(Watches, WatchDescriptor);

    impl Watch {
        pub fn begin(path: &Path, bell: Weak<Notify>) -> Result<Self> {
            let mut inotify = Inotify::init()?;
            let mut watches = inotify.watches();
            let watched = watches.add(path, WatchMask::MODIFY)?;
            spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(events) = inotify.read_events_blocking(&mut buffer) {
                    let ended = events.into_iter().any(|event| event.mask.contains(EventMask::IGNORED));
                    if ended || !ring(&bell) {
                        return;
                    }
                }
            })?;
            Ok(Self(watches, watched))
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            // Ends the thread. A file that is not watched cannot be unwatched, and need not be.
            let _ = self.0.remove(self.1.clone());
        }
    }
}

#[cfg(target_os = "macos")]
mod system {
    use std::io::Result;
    use std::path::Path;
    use std::sync::Weak;

    use kqueue::{EventFilter, FilterFlag, Watcher};
    use tokio::sync::Notify;

    use super::{ring, spawn};

    /// FSEvents would tell of a file that stays open only when it is closed.
    #[derive(Debug)]
    pub struct Watch;

    impl Watch {
        pub fn begin(path: &Path, bell: Weak<Notify>) -> Result<Self> {
            let mut watcher = Watcher::new()?;
            watcher.add_filename(
                path,
                EventFilter::EVFILT_VNODE,
                FilterFlag::NOTE_WRITE | FilterFlag::NOTE_EXTEND,
            )?;
            watcher.watch()?;
            // It ends with the first write that nobody listens to.
            spawn(move || while watcher.poll_forever(None).is_some() && ring(&bell) {})?;
            Ok(Self)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use api::ChatSettings;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn writes_of_others_are_heard_and_looks_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        let (ours, theirs) = (History::open(&path).await.unwrap(), History::open(&path).await.unwrap());
        let writes = ours.writes().unwrap();
        let heard = || timeout(Duration::from_millis(300), writes.heard());
        while heard().await.is_ok() {}

        let before = ours.foreign_changes().await.unwrap();
        theirs.chats().await.unwrap();
        assert!(heard().await.is_err(), "somebody only looked");
        theirs.create_chat(&ChatSettings::default()).await.unwrap();
        assert!(heard().await.is_ok());
        assert_ne!(ours.foreign_changes().await.unwrap(), before);
        while heard().await.is_ok() {}
        assert!(heard().await.is_err(), "it is quiet again");
    }
}
