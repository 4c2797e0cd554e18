//! Downloads: in ranges, with the hash following the bytes, into the standard cache, so that a model is there whole and
//! right or not at all.
//!
//! ```text
//! queue ─ job ─ task: file list ─ fetch (one file): lock ─ connections ─► writer: disk, record, hash ─► its name
//!                      └ links of all files, the revision last
//! ```

mod cleanup;
mod download_task;
mod downloads;
mod file;
mod limits;
mod queue;
mod shared;

pub use downloads::Downloads;
pub use limits::DownloadLimits;
