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
mod folder;
mod home;
mod hub_summary;
mod import;
mod inspect;
mod json_file;
pub mod layout;
mod maintenance;
pub mod memory_fit;
mod model_files;
mod remove;
mod remove_model;
mod response_cache;
mod scan;
mod search;
mod set_aside;
pub mod structure;
mod transfer;
mod tree;
mod verify;

pub use api::{RemoteFile, RepoFiles};
pub use error::Error;
pub use folder::{ModelFolder, BUILT_IN};
pub use home::{built_in_model, data_dir, hub_cache, metal_library};
pub use model_files::model_files;
pub use set_aside::SetAside;
pub use transfer::TransferLimits;
pub use verify::Verified;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hub_summary::HubSummary;
use net::Net;
use protocol::ModelUsage;
use response_cache::ResponseCache;
use tokio::sync::Semaphore;
use transfer::Transfers;

/// How many models are looked at on the hub at a time.
const LOOKS_AT_ONCE: usize = 4;

/// The models here and on the hub. Clones share everything.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    net: Net,
    folder: ModelFolder,
    data_dir: PathBuf,
    transfers: Transfers,
    response_cache: ResponseCache,
    summaries: Mutex<HashMap<String, (Instant, HubSummary)>>,
    looks: Semaphore,
    /// Models that were removed and can still be brought back, and who used them.
    set_aside: Mutex<HashMap<String, (SetAside, ModelUsage)>>,
}

impl Hub {
    /// The hub over a client, the models of this computer, and the folder for its cached data. It sends no request yet.
    pub fn open(net: Net, folder: ModelFolder, data_dir: &Path) -> Self {
        Self(Arc::new(Inner {
            response_cache: ResponseCache::open(data_dir, net.endpoint().address()),
            summaries: Mutex::default(),
            looks: Semaphore::new(LOOKS_AT_ONCE),
            set_aside: Mutex::default(),
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

    pub(crate) fn response_cache(&self) -> &ResponseCache {
        &self.0.response_cache
    }

    pub(crate) fn summaries(&self) -> MutexGuard<'_, HashMap<String, (Instant, HubSummary)>> {
        self.0.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn looks(&self) -> &Semaphore {
        &self.0.looks
    }

    pub(crate) fn aside(&self) -> MutexGuard<'_, HashMap<String, (SetAside, ModelUsage)>> {
        self.0.set_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The app's data folder, where it stores its cached data.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.0.data_dir
    }
}
