//! Models: which are on this computer, which are on the hub, whether they can be used and fit, and how they come and go.
//!
//! The standard Hugging Face cache is used in place, so what other programs fetched is found, and they find what is fetched here.
//! Everything that leaves this computer goes through [`net::Net`].

pub mod address;
mod api;
mod card;
mod describe;
pub mod digest;
mod error;
mod first_models;
pub mod fit;
mod folder;
mod home;
mod import;
mod inspect;
mod kept;
pub mod layout;
mod needed;
mod remembered;
mod remove;
mod scan;
mod search;
pub mod structure;
mod told;
mod transfer;
mod tree;
mod upkeep;
mod verify;

pub use api::{Listing, RemoteFile};
pub use error::Error;
pub use folder::{ModelFolder, BUILT_IN};
pub use home::{built_in_model, data_dir, hub_cache};
pub use needed::needed;
pub use transfer::Pace;
pub use verify::Verified;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use net::Net;
use remembered::Remembered;
use tokio::sync::Semaphore;
use told::Told;
use transfer::Transfers;

/// How many models are looked at on the hub at a time.
const LOOKS_AT_ONCE: usize = 4;

/// The models here and on the hub. Clones share everything.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Rooms>);

#[derive(Debug)]
struct Rooms {
    net: Net,
    folder: ModelFolder,
    data_dir: PathBuf,
    transfers: Transfers,
    remembered: Remembered,
    told: Mutex<HashMap<String, (Instant, Told)>>,
    looks: Semaphore,
}

impl Hub {
    /// The hub over a client, the models of this computer, and the folder for what it remembers. It asks nobody anything yet.
    pub fn open(net: Net, folder: ModelFolder, data_dir: &Path) -> Self {
        Self(Arc::new(Rooms {
            remembered: Remembered::open(data_dir, net.endpoint().address()),
            told: Mutex::default(),
            looks: Semaphore::new(LOOKS_AT_ONCE),
            net,
            folder,
            data_dir: data_dir.to_owned(),
            transfers: Transfers::default(),
        }))
    }

    /// The outbound client.
    pub fn net(&self) -> &Net {
        &self.0.net
    }

    /// The models on this computer.
    pub fn folder(&self) -> &ModelFolder {
        &self.0.folder
    }

    pub(crate) fn remembered(&self) -> &Remembered {
        &self.0.remembered
    }

    pub(crate) fn told_notes(&self) -> MutexGuard<'_, HashMap<String, (Instant, Told)>> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn looks(&self) -> &Semaphore {
        &self.0.looks
    }

    /// Where it keeps what it remembers: the app's data folder.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.0.data_dir
    }
}
