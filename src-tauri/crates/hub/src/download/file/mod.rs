//! One file of a download: its connections, the partial file they fill, and the check of its hash.

pub(super) mod byte_ranges;
pub(super) mod connections;
pub(super) mod context;
pub(super) mod disk_space;
pub(super) mod fetch;
pub(super) mod file_source;
pub(super) mod partial;
mod prefix_hasher;
pub(super) mod progress;
mod range_allocator;
mod range_response;
pub(super) mod stop;
pub(super) mod verified_blobs;
mod writer;
