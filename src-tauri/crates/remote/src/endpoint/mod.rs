//! Endpoints: their addresses, their keys, and the lists of their models.

mod address;
mod info;
pub(crate) mod keys;
mod models;

pub(crate) use address::leaves_computer;
pub use address::{address, endpoint};
pub use info::{check_name_is_free, info};
pub use keys::check_way;
pub(crate) use models::models;
