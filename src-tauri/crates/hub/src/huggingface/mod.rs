//! The models on the hub: its HTTP interface, the search, the descriptions of models, and the responses kept for when
//! the hub cannot be reached.

pub mod address;
mod card;
mod catalog;
pub(crate) mod hub_api;
mod hub_model;
mod model_memory;
mod recommended;
pub(crate) mod response_cache;
mod search;
mod summary;
mod weight_bytes;

pub use catalog::Catalog;
pub use hub_api::HubApi;
pub use model_memory::ModelMemory;
pub use search::Search;
