//! Models: which are on this computer, which are on the hub, whether they can be used and fit, and how they come and go.
//!
//! The standard Hugging Face cache is used in place, so what other programs fetched is found, and they find what is fetched here.
//! Everything that leaves this computer goes through [`net::Net`].

pub mod cache;
mod download;
mod error;
pub mod huggingface;
mod local;
pub mod memory_fit;
mod upkeep;

pub use cache::model_files::model_files;
pub use cache::{RemoteFile, RepoFiles};
pub use download::TransferLimits;
pub use error::Error;
pub use local::home::{built_in_model, data_dir, hub_cache, metal_library, BUILT_IN};
pub use local::model_folder::ModelFolder;
pub use upkeep::set_aside::SetAside;
pub use upkeep::verify::Verified;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use api::ModelUsage;
use download::Transfers;
use huggingface::response_cache::ResponseCache;
use huggingface::summary::HubSummary;
use net::Net;
use tokio::sync::Semaphore;

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
