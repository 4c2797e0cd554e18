//! Tools, resources and prompts that servers offer, as they are shown to a person and to a model.

mod listing;
mod names;
mod prompt;
mod resource;
mod tool;

pub use listing::{tools_of, Listing};
pub use names::model_names;
pub use prompt::{prompts_of, text_of, Argument, Prompt};
pub use protocol::ToolRef;
pub use resource::{content_of, resources_of, templates_of, Resource, ResourceContent};
pub use tool::{Binding, Tool};
