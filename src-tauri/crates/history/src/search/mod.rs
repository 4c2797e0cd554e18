//! Full-text search: the index, the words of a query, snippets.

pub(crate) mod find;
pub(crate) mod index;
pub(crate) mod plain_text;
mod rebuild;
pub(crate) mod words;
