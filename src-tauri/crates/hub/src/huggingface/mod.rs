//! The models on the hub: its interface, what it says of a model, and what it said before.

pub mod address;
pub(crate) mod api;
pub(crate) mod card;
mod describe;
mod first_models;
mod fit;
pub(crate) mod response_cache;
mod search;
pub(crate) mod summary;
