//! Models: which are on this computer, which are on the hub, whether they can be used and fit, and how they come and go.
//!
//! The standard Hugging Face cache is used in place, so what other programs fetched is found, and they find what is fetched here.
//! Everything that leaves this computer goes through [`net::Net`].

mod api;
pub mod digest;
mod error;
pub mod fit;
mod folder;
mod home;
mod import;
mod inspect;
mod kept;
pub mod layout;
mod needed;
mod remove;
mod scan;
pub mod structure;
mod transfer;
mod verify;

pub use api::{Listing, RemoteFile};
pub use error::Error;
pub use folder::{ModelFolder, BUILT_IN};
pub use home::{built_in_model, data_dir, hub_cache};
pub use needed::needed;
pub use transfer::Pace;
pub use verify::Verified;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::Net;

use transfer::Transfers;

/// The models here and on the hub. Clones share everything.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Rooms>);

#[derive(Debug)]
struct Rooms {
    net: Net,
    folder: ModelFolder,
    data_dir: PathBuf,
    transfers: Transfers,
}

impl Hub {
    /// The hub over a client, the models of this computer, and the folder for what it remembers. It asks nobody anything yet.
    pub fn open(net: Net, folder: ModelFolder, data_dir: &Path) -> Self {
        Self(Arc::new(Rooms {
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

    /// Where it keeps what it remembers: the app's data folder.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.0.data_dir
    }
}
