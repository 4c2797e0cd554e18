//! Tools: the servers that a person set up, and the calls of models.

mod bundle;
mod calls;
mod change;
mod elicitations;
mod resources;
mod servers;
mod web_search;

pub use bundle::{BundleField, BundleFieldKind, BundleValue, ToolBundle};
pub use calls::{
    CallApproval, CallEffects, CallState, CallStatus, ConsentExtent, ConsentReason, RunningCall, WaitingCall,
};
pub use change::ToolsChange;
pub use elicitations::{
    ElicitationChoice, ElicitationField, ElicitationFormat, ElicitationInput, ElicitationWants, FieldProblem,
    FieldProblemKind, WaitingElicitation,
};
pub use resources::{PromptArgument, ServerPrompt, ServerPrompts, ServerResource, ServerResources};
pub use servers::{
    FoundServer, ServerVariable, ToolClient, ToolGrant, ToolRule, ToolServer, ToolServerState, ToolSetup, ToolView,
    ToolsView,
};
pub use web_search::{SearchProvider, WebSearch, WebSearchSetup};
