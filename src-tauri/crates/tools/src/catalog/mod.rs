//! Tools that servers offer, as they are shown to a person and to a model.

mod listing;
mod names;
mod tool;

pub use listing::{tools_of, Listing};
pub use names::model_names;
pub use protocol::ToolRef;
pub use tool::{Binding, Effects, Tool};
