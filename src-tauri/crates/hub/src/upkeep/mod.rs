//! The upkeep of the models on this computer: verify, repair, update, import, remove.

mod aside_folder;
mod import;
mod maintenance;
mod remove;
mod remove_model;
pub(crate) mod set_aside;
pub(crate) mod verify;
