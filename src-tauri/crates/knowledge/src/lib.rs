//! Knowledge: folders of documents whose passages are found by words and by meaning, and answers that are held against
//! them.
//!
//! A collection is walked ([`walk`]), compared with the index ([`Index::sync`]), and each new file is read and split
//! ([`prepare`], [`split`]) and stored in one transaction ([`Index::store`]). A question is searched by words
//! ([`Index::search`]) and, by whoever has a model, by vectors; [`fuse`] makes one ranking of both. The marks of an
//! answer are held against its passages by [`citations::check`]. A [`Watcher`] tells when a walk is worth it again.
//!
//! [`Knowledge`] does all of it in the background for a program. The room knows an engine as a trait, and no window.

pub mod citations;
mod error;
mod folder;
mod fuse;
mod host;
mod index;
mod passages;
mod reading;
pub mod vectors;
mod watch;

pub use error::{Error, Result};
pub use folder::{read, walk, FoundFile, Reading, Rules, SkipReason, SkippedFile, Source, Stamp, Walk};
pub use fuse::fuse;
pub use host::{check_citations, quoted, Found, ImagesRead, Knowledge, Updated};
pub use index::{
    Changes, Collection, Counts, FileState, FileToRead, Hit, Index, StoredFile, StoredPassage, StoredVector,
};
pub use passages::{split, Form, Passage, Size, PATH_SIGN};
pub use reading::{describe, prepare, Described, Outcome, Reader, Text};
pub use watch::{Changed, WatchOptions, Watcher};
