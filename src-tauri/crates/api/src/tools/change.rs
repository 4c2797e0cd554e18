//! Tools of a chat that differ from those that its model is told of.

use protocol::ToolRef;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How the tools that a chat names differ from those that its model is told of, which stay until a person takes the new
/// ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolsChange {
    /// Tools that the model is not told of yet.
    pub added: Vec<ToolRef>,
    /// Tools that the model is told of, though the chat names them no more or their server has them no more. Calls of
    /// them do not run.
    pub removed: Vec<ToolRef>,
    /// Tools that their server describes in another way now.
    pub changed: Vec<ToolRef>,
}

impl ToolsChange {
    /// True if there is no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}
