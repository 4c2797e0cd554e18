//! The *Offline* switch, stored in the data folder, so that it holds for every process that uses the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use files::{write_private, Durability};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::error::{Error, Result};

/// How often the file is read for a change that another process made.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Serialize, Deserialize)]
struct SwitchFile {
    offline: bool,
}

/// The *Offline* switch of a data folder.
#[derive(Debug)]
pub(crate) struct OfflineSwitch {
    file: Option<PathBuf>,
    forced: bool,
    on: watch::Sender<bool>,
    looked: Mutex<Instant>,
}

impl OfflineSwitch {
    /// The switch of a data folder; without a folder it lives in memory. `forced` keeps it on.
    pub(crate) fn open(folder: Option<&Path>, forced: bool) -> Self {
        let file = folder.map(|folder| folder.join("network.json"));
        let on = forced || file.as_deref().is_some_and(read);
        Self {
            file,
            forced,
            on: watch::Sender::new(on),
            looked: Mutex::new(Instant::now()),
        }
    }

    /// True if the environment forces it on.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced
    }

    /// True while no connection may be opened.
    pub(crate) fn is_on(&self) -> bool {
        self.look();
        *self.on.borrow()
    }

    /// Sets the switch and stores it. If it cannot be stored, going offline still holds for this process.
    pub(crate) fn set(&self, offline: bool) -> Result<()> {
        if offline {
            self.on.send_replace(true);
        }
        if let Some(file) = &self.file {
            store(file, offline).map_err(|source| Error::Setting {
                path: file.clone(),
                reason: source.to_string(),
            })?;
        }
        self.on.send_replace(offline || self.forced);
        Ok(())
    }

    /// Ends when the switch is on.
    pub(crate) async fn until_on(&self) {
        let mut changes = self.on.subscribe();
        loop {
            if self.is_on() {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Changes when the switch does.
    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.on.subscribe()
    }

    fn look(&self) {
        let (Some(file), false) = (&self.file, self.forced) else {
            return;
        };
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() < LOOK_AGAIN {
                return;
            }
            *looked = Instant::now();
        }
        let stored = read(file);
        self.on.send_if_modified(|on| std::mem::replace(on, stored) != stored);
    }
}

/// A file that cannot be understood counts as offline: the safe side of a privacy switch.
fn read(file: &Path) -> bool {
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice::<SwitchFile>(&bytes).map_or(true, |stored| stored.offline),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn store(file: &Path, offline: bool) -> std::io::Result<()> {
    let text = serde_json::to_vec(&SwitchFile { offline })?;
    write_private(file, &text, Durability::PowerLoss)
}
