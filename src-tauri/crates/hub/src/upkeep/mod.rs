//! The upkeep of the models on this computer: verify, repair, update, import, remove.

mod delete_files;
mod gguf;
mod import;
mod maintenance;
mod removal;
mod trash_folder;
pub(crate) mod undo_removal;
pub(crate) mod verify;

pub use gguf::{FormatChange, GgufImported};
pub use maintenance::Upkeep;
pub use removal::Removals;
