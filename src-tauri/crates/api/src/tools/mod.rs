//! Tools: the servers that a person set up, and the calls of models.

mod calls;
mod elicitations;
mod servers;
mod web_search;

pub use calls::{
    CallApproval, CallEffects, CallState, CallStatus, ConsentExtent, ConsentReason, RunningCall, WaitingCall,
};
pub use elicitations::{
    ElicitationChoice, ElicitationField, ElicitationFormat, ElicitationInput, ElicitationWants, FieldProblem,
    FieldProblemKind, WaitingElicitation,
};
pub use servers::{
    FoundServer, ServerPart, ToolClient, ToolGrant, ToolRule, ToolServer, ToolServerState, ToolSetup, ToolView,
    ToolsView,
};
pub use web_search::{SearchProvider, WebSearch, WebSearchSetup};
