//! The contract with a box of tools: what it offers to a model, and calls that it runs once a person consented.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use ts_rs::TS;

use crate::{Content, ImageBytes, Result, ToolCall};

/// Names a tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
pub struct ToolRef {
    /// The server's id.
    pub server: String,
    /// The name that the server gave the tool.
    pub tool: String,
}

/// The server of the tools that Ponder has itself.
pub const OWN_SERVER: &str = "ponder";

/// The names of Ponder's own tools that search and read the documents of a chat.
pub const DOCUMENT_TOOLS: [&str; 3] = ["search_documents", "open_passage", "read_all"];

/// The name of Ponder's own tool that searches the user's other chats.
pub const SEARCH_CHATS: &str = "search_chats";

/// The name of Ponder's own tool that suggests a note about the user.
pub const SUGGEST_NOTE: &str = "suggest_note";

/// A tool as a model is told of it. A chat keeps those that it began with, so that its prompts begin alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// The tool.
    pub of: ToolRef,
    /// The name of its server for people.
    pub server_name: String,
    /// The name by which a model calls it.
    pub name: String,
    /// Its declaration, as in `tools` of OpenAI's chat API.
    pub declaration: Value,
}

/// The way by which a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOrigin {
    /// A model has just made it, in an answer of this process.
    Answer,
    /// A person asked for it once more. No earlier consent covers it.
    Again,
}

/// A call that a box of tools is to run. Nothing reads one from bytes.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The chat.
    pub chat: String,
    /// The question whose turn it belongs to.
    pub turn: String,
    /// The answer that made it.
    pub answer: String,
    /// The call, by the name that the model knows.
    pub call: ToolCall,
    /// The number of the attempt at it, from 1.
    pub attempt: u32,
    /// The tool.
    pub tool: ToolRef,
    /// The way by which it came.
    pub origin: CallOrigin,
}

/// Stores that a call begins, with the arguments that it runs with. A call whose beginning cannot be stored does not
/// run.
pub type StoreStart = Box<dyn FnOnce(Value) -> BoxFuture<'static, Result<()>> + Send>;

/// The progress of a call that runs. Nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, TS)]
pub struct CallProgress {
    /// The part that is done, in the server's own measure.
    pub done: Option<f64>,
    /// All of it, if that is known.
    pub total: Option<f64>,
    /// A word of the server, without anything invisible.
    pub message: Option<String>,
    /// True while its server asks the person for something.
    pub asks: bool,
}

/// Hears of the progress of a call.
pub type TellProgress = Arc<dyn Fn(CallProgress) + Send + Sync>;

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// It has a result, which the model gets.
    Done,
    /// It has a result that says what went wrong.
    Failed,
    /// It was refused, by a person or a rule, and did not run.
    Refused,
    /// It was stopped before it had a result.
    Stopped,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Its end.
    pub end: CallEnd,
    /// The words for the model and the person.
    pub content: Vec<Content>,
    /// Images that came with them, as they came: whoever keeps the result checks them.
    pub images: Vec<ImageBytes>,
}

impl CallResult {
    /// A result of words only.
    pub fn words(end: CallEnd, text: impl Into<String>) -> Self {
        Self {
            end,
            content: vec![Content::text(text)],
            images: Vec::new(),
        }
    }
}

/// A box of tools.
pub trait Toolbox: Send + Sync {
    /// These tools as a model is told of them, sorted; a tool that is not there any more is left out.
    fn offer(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<OfferedTool>>;

    /// The declarations of these tools as they are now: `None` for one that its server does not have any more. Nothing
    /// is started; tools of servers that do not run are left out.
    fn declarations_now(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<(ToolRef, Option<Value>)>>;

    /// Runs a call once a person consented to it, and waits for both. `tell` hears how far it is; `stop` becomes true
    /// when the person stops the turn.
    fn run(
        &self,
        call: CallRequest,
        start: StoreStart,
        tell: TellProgress,
        stop: watch::Receiver<bool>,
    ) -> BoxFuture<'_, CallResult>;

    /// Forgets the calls of a turn, which ended.
    fn end_turn(&self, turn: &str);

    /// Forgets what was granted in a chat, which is gone.
    fn forget_chat(&self, chat: &str);
}
