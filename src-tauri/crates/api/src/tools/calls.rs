//! Calls of tools as the history stores them, and those that wait for a person's consent.

use protocol::{CallEnd, CallProgress, ReadingCost, ToolRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CallState {
    /// It waits for a person's consent.
    Asked,
    /// It runs.
    Started,
    /// It has a result.
    Done,
    /// It has a result that says what went wrong.
    Failed,
    /// A person or a rule refused it; it did not run.
    Refused,
    /// A person stopped it; it may have run.
    Stopped,
    /// The process that asked for consent is gone; it did not run.
    NotRun,
    /// The process that ran it is gone; it may have run.
    MayHaveRun,
}

impl CallState {
    /// True while something may still come of it by itself.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Asked | Self::Started)
    }
}

impl From<CallEnd> for CallState {
    fn from(end: CallEnd) -> Self {
        match end {
            CallEnd::Done => Self::Done,
            CallEnd::Failed => Self::Failed,
            CallEnd::Refused => Self::Refused,
            CallEnd::Stopped => Self::Stopped,
        }
    }
}

/// The state of a call that an answer made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CallStatus {
    /// The id of the call.
    pub call: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of its server, as it was.
    pub server_name: String,
    /// Its state.
    pub state: CallState,
    /// The arguments that a person wrote in place of the model's.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The process that asks or runs it, as the history file calls it.
    pub owner: String,
    /// The time at which it was made.
    #[ts(type = "number")]
    pub asked_at: i64,
    /// The time at which it began to run.
    #[serde(default)]
    #[ts(type = "number | null")]
    pub started_at: Option<i64>,
    /// The time of its end.
    #[serde(default)]
    #[ts(type = "number | null")]
    pub ended_at: Option<i64>,
}

/// A call that this process runs, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RunningCall {
    /// The answer that made it.
    pub answer: String,
    /// The id of the call.
    pub call: String,
    /// How far it is.
    pub progress: CallProgress,
}

/// The reason for asking a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ConsentReason {
    /// Nobody allowed this tool before.
    New,
    /// It was allowed, and is another tool now.
    Changed,
    /// The person wants to be asked each time.
    Rule,
    /// A result in this turn may hold words of strangers.
    UntrustedResult,
    /// The turn has made many calls.
    ManyCalls,
    /// It is run once more; it may have run before.
    Again,
}

/// How far a consent reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ConsentExtent {
    /// This call.
    Once,
    /// Calls of this tool in this chat, until Ponder ends.
    Chat,
    /// Calls of this tool.
    Always,
}

/// The effects of a call, as its server describes them: its word, which never replaces a consent (`ToolAnnotations` in
/// the Model Context Protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CallEffects {
    /// It changes nothing.
    pub read_only: bool,
    /// It may delete or overwrite something.
    pub destructive: bool,
    /// It deals with what strangers write, such as pages of the web.
    pub open_world: bool,
}

impl CallEffects {
    /// Those of a tool that says nothing of itself.
    pub const UNKNOWN: Self = Self {
        read_only: false,
        destructive: true,
        open_world: true,
    };

    /// True if a call may change something or send something away.
    pub fn has_side_effects(self) -> bool {
        !self.read_only || self.open_world
    }
}

/// A call that waits for a person, as it is shown. All texts of strangers in it have no invisible characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WaitingCall {
    /// The answer that made it.
    pub answer: String,
    /// The name by which it waits.
    pub call: String,
    /// The digest of what is shown, which an approval quotes.
    pub hash: String,
    /// The chat.
    pub chat: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of its server.
    pub server_name: String,
    /// The command or the address of its server; empty for Ponder's own.
    pub server_command: String,
    /// The tool's name for people.
    pub title: String,
    /// The host that the call reaches; a consent that goes further than this call is one for this host. `None` for a
    /// tool that reaches any, or none.
    pub host: Option<String>,
    /// Its description.
    pub description: String,
    /// Its description when it was allowed before, if it is another one now.
    pub former_description: Option<String>,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// The arguments.
    pub arguments: Value,
    /// The same as JSON text, in which no number is rounded.
    pub arguments_text: String,
    /// The effects of a call.
    pub effects: CallEffects,
    /// Why the person is asked.
    pub reason: ConsentReason,
    /// The cost of a call that reads all documents; none for any other, or if it is not known.
    pub reading: Option<ReadingCost>,
    /// False if *always* cannot be kept: there is no keychain.
    pub can_keep: bool,
}

/// A person's consent to a call that was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CallApproval {
    /// The answer that made it.
    pub answer: String,
    /// The name by which it waits.
    pub call: String,
    /// The digest of what was shown.
    pub hash: String,
    /// How far it reaches.
    pub extent: ConsentExtent,
    /// The arguments that the person wrote in place of the shown ones, as JSON text, in which no number is rounded.
    pub arguments: Option<String>,
}
