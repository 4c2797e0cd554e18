//! The standard Hugging Face cache on disk: names that are safe in paths, its folders, its locks, the hashes of its blobs.

pub mod digest;
mod layout;
mod lock;
pub(crate) mod model_files;
mod names;
mod repo_files;

pub(crate) use layout::{open_file, refuse_link, walk};
pub use layout::{Cache, Repository, SnapshotFile};
pub use lock::Lock;
pub(crate) use names::bad as refused;
pub use names::{checked_listing, checked_listing_where, Commit, Etag, FilePath, RepositoryId, Revision, MOST_FILES};
pub use repo_files::{RemoteFile, RepoFiles};
