//! Servers in a file (`.mcpb`, formerly `.dxt`): an archive with a manifest. It is read in the process for files of
//! strangers, and nothing of it runs here.

mod archive;
mod manifest;
mod placeholders;

pub use archive::{unpack, Contents, Entry, MAX_BYTES, TASKS};
pub use manifest::{Field, FieldKind, Kind, Manifest};
pub use placeholders::{fill, BundleCommand, Values};

/// Why a bundle cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Error {
    /// The archive is no bundle, or one that means harm.
    #[error("this is no bundle that can be used: {0}; nothing was added")]
    Archive(String),
    /// Its manifest cannot be used.
    #[error("the manifest of this bundle cannot be used: {0}; nothing was added")]
    Manifest(String),
    /// A value that a person has to fill in, or another one.
    #[error("{field}: {reason}; nothing was added")]
    Value {
        /// The field's title.
        field: String,
        /// The fault.
        reason: String,
    },
}
