//! The models on this computer: listed, downloaded, verified, repaired, removed, imported, quantized.

mod import;
mod list;
mod progress;
mod pull;
mod quantize;
mod reference;
mod remove;
mod size;
mod verify;

pub use import::{import, ImportArgs, EXAMPLES as IMPORT_EXAMPLES};
pub use list::{facts, run, ModelsArgs, EXAMPLES};
pub use pull::{pull, PullArgs, EXAMPLES as PULL_EXAMPLES};
pub use quantize::{quantize, QuantizeArgs, EXAMPLES as QUANTIZE_EXAMPLES};
pub use remove::{remove, RemoveArgs, EXAMPLES as REMOVE_EXAMPLES};
pub use verify::{repair, verify, VerifyArgs, REPAIR_EXAMPLES, VERIFY_EXAMPLES};
