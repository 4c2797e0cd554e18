//! The model folder: which models are on this computer, where they lie, and whether they can be used.
//!
//! It reads the standard Hugging Face cache in place, so what other programs fetched is found, and the model that comes
//! with the app. It opens no connection.

pub mod digest;
mod error;
mod folder;
mod home;
mod inspect;
pub mod layout;

pub use error::Error;
pub use folder::{ModelFolder, BUILT_IN};
pub use home::{built_in_model, data_dir, hub_cache};
