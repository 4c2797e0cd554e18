//! Tools that reach the internet: a page, and a search. A model chooses pages, so that they are public ones, and no
//! redirect leads from one host to another; a person chooses the search engine.

mod body;
mod engine;
mod page;
mod search;

pub use engine::SearchEngine;

pub(super) use page::{fetch, host_of_page};
pub(super) use search::search;
