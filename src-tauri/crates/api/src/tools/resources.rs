//! Resources and prompts of servers, for a person to choose from.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A resource that can be attached to a message, or a template of addresses of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerResource {
    /// Its address; that of a template has variables such as `{path}`.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The server's words about it.
    pub description: String,
    /// Such as `text/markdown`; empty if the server does not say.
    pub media_type: String,
    /// Its size, if the server says.
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
    /// The variables of a template, in order; empty for a resource.
    pub variables: Vec<String>,
}

/// The resources of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerResources {
    /// The server's id.
    pub server: String,
    /// Its name.
    pub server_name: String,
    /// The resources, then the templates.
    pub resources: Vec<ServerResource>,
    /// Why there are none.
    pub problem: Option<String>,
}

/// An argument that a person fills in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PromptArgument {
    /// Its name for the server.
    pub name: String,
    /// The server's words about it.
    pub description: String,
    /// There is no prompt without it.
    pub required: bool,
}

/// A prompt of a server: a text for a person to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerPrompt {
    /// The server's id.
    pub server: String,
    /// Its name.
    pub server_name: String,
    /// The prompt's name for the server.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The server's words about it.
    pub description: String,
    /// The arguments to fill in.
    pub arguments: Vec<PromptArgument>,
}

/// The prompts of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerPrompts {
    /// The prompts.
    pub prompts: Vec<ServerPrompt>,
    /// True if a server is switched on that does not run, which may have more.
    pub more: bool,
}
