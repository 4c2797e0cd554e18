//! Tools: the servers that a person set up, and the calls of models.

mod calls;
mod servers;
mod web_search;

pub use calls::{CallApproval, CallEffects, CallState, CallStatus, ConsentExtent, ConsentReason, WaitingCall};
pub use servers::{
    FoundServer, ServerPart, ToolClient, ToolGrant, ToolRule, ToolServer, ToolServerState, ToolSetup, ToolView,
    ToolsView,
};
pub use web_search::{SearchProvider, WebSearch, WebSearchSetup};
