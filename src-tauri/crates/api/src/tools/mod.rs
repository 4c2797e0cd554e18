//! Tools: the servers that a person set up, and the calls of models.

mod calls;
mod servers;

pub use calls::{CallApproval, CallEffects, CallState, CallStatus, ConsentExtent, ConsentReason, WaitingCall};
pub use servers::{
    FoundServer, ServerPart, ToolClient, ToolGrant, ToolRule, ToolServer, ToolServerState, ToolSetup, ToolView,
    ToolsView,
};
