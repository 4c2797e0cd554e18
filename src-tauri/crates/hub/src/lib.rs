//! Models: those on this computer and those on the hub, whether they run and fit, and how they come and go.
//!
//! The standard Hugging Face cache is used in place, so models that other programs fetched are found here, and they
//! find ours. Everything that leaves this computer goes through [`net::Net`].

pub mod cache;
mod download;
mod error;
pub mod huggingface;
mod local;
pub mod memory_fit;
mod upkeep;

use std::path::Path;
use std::sync::Arc;

use net::Net;

pub use crate::cache::model_files::model_files;
pub use crate::cache::{RemoteFile, RepoFiles};
pub use crate::download::{DownloadLimits, Downloads};
pub use crate::error::Error;
pub use crate::local::home::{built_in_model, data_dir, hub_cache, metal_library, BUILT_IN};
pub use crate::local::model_folder::ModelFolder;
pub use crate::local::other_programs::{gguf_name, GgufModel, OtherPrograms};
pub use crate::upkeep::undo_removal::RemovedModel;
pub use crate::upkeep::verify::Verified;
pub use crate::upkeep::{FormatChange, GgufImported, Removals, Upkeep};

use crate::huggingface::{Catalog, HubApi, ModelMemory, Search};
use crate::memory_fit::Measured;

/// The models here and on the hub. Clones share everything.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    net: Net,
    local: ModelFolder,
    catalog: Arc<Catalog>,
    search: Search,
    memory: ModelMemory,
    downloads: Downloads,
    upkeep: Upkeep,
    removals: Removals,
}

impl Hub {
    /// The hub behind a client, the models of this computer, and the folder for cached data. Sends no request yet.
    pub fn open(net: Net, local: ModelFolder, data_dir: &Path) -> Self {
        let (api, measured) = (HubApi::new(net.clone()), Measured::in_folder(data_dir));
        let catalog = Arc::new(Catalog::open(api.clone(), local.clone(), measured.clone(), data_dir));
        let downloads = Downloads::new(api.clone(), local.clone(), data_dir);
        Self(Arc::new(Parts {
            search: Search::new(api.clone(), local.clone(), catalog.clone()),
            memory: ModelMemory::new(local.clone(), catalog.clone(), measured),
            upkeep: Upkeep::new(api, local.clone(), downloads.clone()),
            removals: Removals::new(local.clone(), downloads.clone()),
            net,
            local,
            catalog,
            downloads,
        }))
    }

    /// The outbound client.
    pub fn net(&self) -> &Net {
        &self.0.net
    }

    /// The models on this computer.
    pub fn local(&self) -> &ModelFolder {
        &self.0.local
    }

    /// Descriptions and cards of the hub's models.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The search for models on the hub.
    pub fn search(&self) -> &Search {
        &self.0.search
    }

    /// The memory that models need.
    pub fn memory(&self) -> &ModelMemory {
        &self.0.memory
    }

    /// The downloads of this process.
    pub fn downloads(&self) -> &Downloads {
        &self.0.downloads
    }

    /// Verifying, repairing, updating and importing.
    pub fn upkeep(&self) -> &Upkeep {
        &self.0.upkeep
    }

    /// Removing models, and undoing that.
    pub fn removals(&self) -> &Removals {
        &self.0.removals
    }
}
