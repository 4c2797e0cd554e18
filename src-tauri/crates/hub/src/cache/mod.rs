//! The standard Hugging Face cache on disk: names that are safe in paths, folders, locks, the hashes of blobs.

pub mod digest;
mod layout;
mod lock;
pub(crate) mod model_files;
mod names;
mod open;
mod repo_files;

pub(crate) use layout::{entries, file_size, walk};
pub use layout::{Cache, Repository, SnapshotFile};
pub use lock::Lock;
pub(crate) use names::refused_name;
pub use names::{checked_listing, checked_listing_where, Commit, Etag, FilePath, RepositoryId, Revision, MOST_FILES};
pub(crate) use open::{open_file, refuse_link};
pub use repo_files::{RemoteFile, RepoFiles};
