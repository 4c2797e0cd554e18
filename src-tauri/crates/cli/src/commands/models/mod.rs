//! The models on this computer: listed, fetched, verified, repaired, removed, imported.

mod import;
mod list;
mod progress;
mod pull;
mod reference;
mod remove;
mod size;
mod verify;

pub use import::{import, ImportArgs};
pub use list::{run, ModelsArgs};
pub use pull::{pull, PullArgs};
pub use remove::{remove, RemoveArgs};
pub use verify::{repair, verify, VerifyArgs};
