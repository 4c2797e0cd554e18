//! The common part of Ponder's SQLite files: private files, connections, the meaning of errors, and words as full-text
//! indexes see them. Knows no table.

mod error;
mod open;
pub mod privacy;
pub mod words;

pub use error::{Error, Result};
pub use open::{begin, missing_table, options_of, private_file, writer, BUSY_TIMEOUT};
