//! Endpoints: their addresses, their keys, and the lists of their models.

mod address;
pub(crate) mod keys;
mod models;

pub use address::{address, check_name_is_free, endpoint, info};
pub(crate) use address::{leaves_computer, may_see_its_key};
pub(crate) use models::models;
