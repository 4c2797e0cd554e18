//! The state of a host: consents, turns, and calls that wait.

use std::collections::HashMap;
use std::path::PathBuf;

use protocol::ReadingCost;
use serde_json::Value;
use tokio::sync::oneshot;

use super::grants::StoredConsents;
use crate::builtin::{Builtin, SearchEngine};
use crate::catalog::ToolRef;
use crate::consent::{CallKey, Consents, Denial, Permit, TurnCalls};
use crate::elicitation::{Elicitation, Reply};
use crate::import::Found;

/// The consents of a host, and the calls that wait.
#[derive(Default)]
pub(super) struct State {
    pub(super) consents: Consents,
    pub(super) turns: HashMap<String, TurnCalls>,
    pub(super) asked: HashMap<CallKey, ShownCall>,
    /// Requests of servers that wait for the person, oldest first.
    pub(super) elicited: Vec<PendingElicitation>,
    /// The descriptions that persons were shown when they allowed a tool in all chats.
    pub(super) descriptions: HashMap<ToolRef, String>,
    pub(super) can_keep: bool,
    /// Servers that were found elsewhere, with their secrets, which no window is told.
    pub(super) found: Vec<Found>,
    /// The bundle that a person looks at.
    pub(super) bundle: Option<OpenedBundle>,
}

/// A bundle that a person looks at, until it is added.
#[derive(Debug, Clone)]
pub(super) struct OpenedBundle {
    pub(super) hash: String,
    pub(super) path: PathBuf,
}

/// A person's decision.
pub(super) enum Decision {
    Run(Box<Permit>),
    Refused(Denial),
}

/// A call that waits, and what is shown of it.
pub(super) struct ShownCall {
    pub(super) decided: oneshot::Sender<Decision>,
    pub(super) turn: String,
    pub(super) again: bool,
    pub(super) server_name: String,
    pub(super) server_command: String,
    /// The tool, if it is Ponder's own, and the search engine.
    pub(super) own: Option<(Builtin, Option<SearchEngine>)>,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) parameters: Value,
    /// The cost of reading all documents, for the call that does.
    pub(super) reading: Option<ReadingCost>,
}

/// A request of a server that waits for the person.
pub(super) struct PendingElicitation {
    pub(super) id: String,
    pub(super) from: Asker,
    pub(super) elicitation: Elicitation,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// The call amid which a server asks.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) chat: String,
    pub(super) tool: ToolRef,
    pub(super) server_name: String,
    pub(super) server_command: String,
}

impl State {
    /// The consents that hold in all chats.
    pub(super) fn kept(&self) -> StoredConsents {
        StoredConsents {
            grants: self.consents.always(),
            descriptions: self.descriptions.clone(),
        }
    }
}
