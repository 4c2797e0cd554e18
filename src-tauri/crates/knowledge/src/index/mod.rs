//! The index: one SQLite file with the passages of all collections, their words and their vectors.

mod collections;
mod columns;
mod database;
mod definition;
mod question;
mod search;
mod stop_words;
mod store;
mod sync;
mod vectors;

pub use collections::{Collection, Counts, FileState, StoredFile};
pub use database::Index;
pub use search::{Hit, StoredPassage};
pub use sync::{Changes, FileToRead};
pub use vectors::StoredVector;
