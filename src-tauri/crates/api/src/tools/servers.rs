//! Servers of tools as a person set them up.

use protocol::ToolRef;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{CallEffects, WebSearch};

/// A word of a person about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ToolRule {
    /// Every call is asked about, whatever was allowed.
    Ask,
    /// No call runs.
    Deny,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ToolServerState {
    /// Not switched on. Nothing of it runs.
    Off,
    /// Switched on; it starts when a chat needs it.
    Idle,
    /// It starts.
    Starting,
    /// It runs.
    Ready,
    /// It did not start, or ended.
    Failed {
        /// The reason, with its last words.
        reason: String,
    },
    /// It runs only for somebody who signed in, or did so with more permissions.
    NeedsSignIn,
}

/// A client id that a person got where a server is run, for a server that lets no program register itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolClient {
    /// The id.
    pub id: String,
    /// The secret; empty if there is none. It goes to the keychain.
    pub secret: String,
}

impl std::fmt::Debug for ToolClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolClient")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A variable or a header of a server. Secrets stay in the keychain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerVariable {
    /// Its name.
    pub name: String,
    /// Its value; `None` for a secret.
    pub value: Option<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolView {
    /// Its name in its server.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The effects of a call, as the server says.
    pub effects: CallEffects,
    /// Tokens that its declaration takes in a prompt, about.
    pub tokens: u32,
    /// The person's word about it.
    pub rule: Option<ToolRule>,
    /// True if it is switched on; `None` for a tool without a switch of its own.
    pub on: Option<bool>,
}

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolServer {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The program with its arguments, as a shell would take them, or the address; empty for Ponder's own tools.
    pub command: String,
    /// Its variables or headers.
    pub parts: Vec<ServerVariable>,
    /// True if it is Ponder's own.
    pub builtin: bool,
    /// True if the person signed in to it.
    pub signed_in: bool,
    /// Its state.
    pub state: ToolServerState,
    /// Its tools, as far as they are known.
    pub tools: Vec<ToolView>,
    /// Why some of its tools are left out.
    pub problems: Vec<String>,
    /// The folders that the person chose for it.
    pub roots: Vec<String>,
}

/// A consent that holds in all chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolGrant {
    /// The tool.
    pub tool: ToolRef,
    /// The name of its server.
    pub server_name: String,
    /// The host that its calls may reach, if it was given for one.
    pub host: Option<String>,
    /// The time at which it was given.
    #[ts(type = "number")]
    pub granted_at: i64,
}

/// Everything about tools that the settings show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolsView {
    /// The servers, Ponder's own first.
    pub servers: Vec<ToolServer>,
    /// The consents.
    pub grants: Vec<ToolGrant>,
    /// The search engine of Ponder's own tool, if one is chosen.
    pub web_search: Option<WebSearch>,
}

/// A server as a person sets it up: a command line or an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolSetup {
    /// Its name; empty for one that is made out of the command.
    pub name: String,
    /// The command line, as a shell takes it, or an address that begins with `http`.
    pub command: String,
    /// Variables of a program, or headers of an address. Those that look secret go to the keychain.
    pub parts: Vec<ServerVariable>,
}

/// A server in the configuration of another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FoundServer {
    /// The program that it was set up for, such as `Claude Desktop`.
    pub from: String,
    /// As it would be set up here.
    pub setup: ToolSetup,
    /// Why it cannot be taken as it is, such as a placeholder that nobody filled in.
    pub problem: Option<String>,
}
