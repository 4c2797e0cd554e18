//! Chats as the history stores them and the windows show them. Times are Unix milliseconds.

use protocol::{Coalesce, Content, EndedBy, Error, FinishReason, Notice, Role, Stage, Timing, Usage};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::settings::ChatSettings;
use crate::tools::CallStatus;

/// The state of a message. Every message but an answer is `Complete` from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum AnswerState {
    /// The process that owns it is writing it.
    Streaming,
    /// Ended by the model or its limit.
    Complete,
    /// Ended by the user.
    Stopped,
    /// Ended by an error.
    Failed,
    /// Its process died while it was being written.
    Interrupted,
}

/// A chat in the sidebar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ChatSummary {
    /// Its id.
    pub id: String,
    /// Its title; empty until the first question.
    pub title: String,
    /// The creation time.
    #[ts(type = "number")]
    pub created_at: i64,
    /// The time of the last message.
    #[ts(type = "number")]
    pub updated_at: i64,
    /// True if it stays at the top.
    pub pinned: bool,
    /// True if an answer is running.
    pub running: bool,
    /// True if an answer ended in it that no window has shown since.
    #[serde(default)]
    pub unread: bool,
    /// True if an unsent question is stored in it.
    #[serde(default)]
    pub has_draft: bool,
    /// Grows with every change of what a window draws of the chat, in any process; drafts do not count. The end of an
    /// answer is one change.
    #[serde(default)]
    #[ts(type = "number")]
    pub revision: i64,
    /// True if it is archived: it is stored and searched, but not in the list.
    #[serde(default)]
    pub archived: bool,
    /// The project it belongs to.
    #[serde(default)]
    pub project: Option<String>,
}

/// The list of chats, or the part of it that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ChatList {
    /// The version of the list. A caller that has it asks for the changes since.
    #[ts(type = "number")]
    pub snapshot: u64,
    /// True if these are all chats; otherwise those that are new or changed since the requested snapshot.
    pub whole: bool,
    /// The chats, in the order of the list.
    pub chats: Vec<ChatSummary>,
    /// The ids of chats that left the list.
    pub gone: Vec<String>,
}

/// The scroll position of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ScrollPlace {
    /// The first visible message.
    pub message: String,
    /// The number of its pixels above the view.
    pub offset: f64,
}

/// A place in a branch; the model sees nothing before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CompactionMark {
    /// A summary of the messages that the model does not see; `None` if it gets none.
    pub summary: Option<String>,
}

/// The part of the model's context that a chat takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextUse {
    /// Tokens of the next prompt.
    pub tokens: u32,
    /// Tokens of the model's context; `None` if that is not known.
    pub context: Option<u32>,
    /// True if the number of tokens is an estimate.
    pub estimated: bool,
}

/// The messages that are deleted together with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DeleteScope {
    /// All messages after it, on every branch.
    Branch,
    /// Its question and all answers to it; the rest of the selected branch stays.
    Turn,
}

/// Messages that were deleted out of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DeletedMessages {
    /// The role of the first of them.
    pub role: Role,
    /// The beginning of its text.
    pub excerpt: String,
    /// True if it is the only one.
    pub alone: bool,
}

/// An entry of the trash: a chat, or messages that were deleted out of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TrashedChat {
    /// The chat; for messages one of their own, with the title of theirs.
    pub chat: ChatSummary,
    /// The messages, if it is no whole chat.
    pub messages: Option<DeletedMessages>,
    /// The time at which it is deleted permanently.
    #[ts(type = "number")]
    pub deleted_for_good_at: i64,
}

/// The state in which the history was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryState {
    /// True if it is a read-only copy.
    pub read_only: bool,
}

/// One part of a message, in the order of generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Part {
    /// Its content.
    #[serde(flatten)]
    pub content: Content,
    /// The time of its first piece.
    #[ts(type = "number")]
    pub started_at: i64,
    /// The time of its last piece.
    #[ts(type = "number")]
    pub ended_at: i64,
}

impl Part {
    /// A part that came at once.
    pub fn at(content: Content, at: i64) -> Self {
        Self {
            content,
            started_at: at,
            ended_at: at,
        }
    }
}

/// A message as the windows show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct StoredMessage {
    /// Its id.
    pub id: String,
    /// The chat it belongs to.
    pub chat: String,
    /// The message it answers; `None` for the first of a chat.
    pub parent: Option<String>,
    /// The role of its author.
    pub role: Role,
    /// Its state.
    pub state: AnswerState,
    /// Its content.
    pub parts: Vec<Part>,
    /// The call whose result this is, in a message of [`Role::Tool`]. A call has one result at most. The state is
    /// `Stopped` if the user went on without running the tool.
    pub tool_call_id: Option<String>,
    /// The states of the calls of an answer that Ponder runs tools for.
    #[serde(default)]
    pub calls: Vec<CallStatus>,
    /// The ids of all messages with the same parent, oldest first, this one included.
    pub siblings: Vec<String>,
    /// The creation time.
    #[ts(type = "number")]
    pub created_at: i64,
    /// The time at which it ended.
    #[ts(type = "number | null")]
    pub finished_at: Option<i64>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The commit or content hash of that model.
    pub model_revision: Option<String>,
    /// SHA-256 of the chat template that rendered its prompt.
    pub template_hash: Option<String>,
    /// The settings an answer was requested with, its model's reference included and the chat's instructions left out;
    /// `None` for every other message.
    pub settings: Option<ChatSettings>,
    /// True if its thought was ended for the model, by the user or by the budget.
    pub thinking_ended: bool,
    /// The number of reasoning tokens so far; `None` if they were not counted.
    pub thinking_tokens: Option<u32>,
    /// The reason for its end.
    pub finish_reason: Option<FinishReason>,
    /// The rule that ended it.
    pub ended_by: Option<EndedBy>,
    /// The error that ended it.
    pub error: Option<Error>,
    /// Notices for the user.
    pub notices: Vec<Notice>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Times and rates.
    pub timing: Option<Timing>,
    /// The compaction mark: the model sees nothing up to and including this message. The last mark of a branch counts.
    pub compaction_mark: Option<CompactionMark>,
    /// True if the user edited this answer.
    #[serde(default)]
    pub edited: bool,
    /// True if the answer can be continued: it ended early, is not empty, could go on, and is the last message of the
    /// selected branch. Computed when it is read from the history.
    pub continuable: bool,
}

impl StoredMessage {
    /// A complete, empty message that has no place in a chat yet.
    pub fn new(role: Role) -> Self {
        Self {
            id: String::new(),
            chat: String::new(),
            parent: None,
            role,
            state: AnswerState::Complete,
            parts: Vec::new(),
            tool_call_id: None,
            calls: Vec::new(),
            siblings: Vec::new(),
            created_at: 0,
            finished_at: None,
            model: None,
            model_revision: None,
            template_hash: None,
            settings: None,
            thinking_ended: false,
            thinking_tokens: None,
            finish_reason: None,
            ended_by: None,
            error: None,
            notices: Vec::new(),
            usage: None,
            timing: None,
            compaction_mark: None,
            edited: false,
            continuable: false,
        }
    }

    /// The text of the answer or the question alone, such as a title is made from.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// The selected branch of a chat, as its window shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ChatView {
    /// The chat.
    pub summary: ChatSummary,
    /// The settings for its next turn.
    pub settings: ChatSettings,
    /// The unsent draft.
    pub draft: Vec<Content>,
    /// Its scroll position; `None` for the end.
    pub scroll_place: Option<ScrollPlace>,
    /// The messages of the branch, oldest first: all of them, or the newest of a long one. If the first has a parent,
    /// earlier messages are read separately.
    pub messages: Vec<StoredMessage>,
    /// Running answers to the same question as the last answer of the branch.
    #[serde(default)]
    pub beside: Vec<StoredMessage>,
}

/// The progress of a summary that a model writes of a chat. A long chat is read in pieces, each with a summary of its
/// own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SummaryProgress {
    /// Tokens of the chat that were read, about.
    #[ts(type = "number")]
    pub read: u64,
    /// Tokens of the chat that are to be read.
    #[ts(type = "number")]
    pub total: u64,
    /// Tokens of the present summary that were written.
    #[ts(type = "number")]
    pub written: u64,
}

/// The place of a question in the tree of its chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Position {
    /// At the end of the selected branch.
    #[default]
    End,
    /// At the beginning: an edited first question.
    Beginning,
    /// After this message. An edited question gets the parent of the original.
    After(String),
}

/// A stored question and the answer that was started for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Turn {
    /// The user's question.
    pub question: StoredMessage,
    /// The answer, still empty; attach to it for its events.
    pub answer: StoredMessage,
    /// [`ChatSummary::revision`] right before the turn was stored.
    #[ts(type = "number")]
    pub revision_before: i64,
    /// The same right after it. A window that showed the earlier revision and adds the turn shows this one.
    #[ts(type = "number")]
    pub revision: i64,
}

/// A stored question and the two answers that were started for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TurnWithTwoAnswers {
    /// The user's question.
    pub question: StoredMessage,
    /// The answers, still empty, in the requested order. The chat selects the first.
    pub answers: [StoredMessage; 2],
}

/// A running answer of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RunningAnswer {
    /// Its chat.
    pub chat: String,
    /// Its message.
    pub message: String,
}

/// A change of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum AnswerBody {
    /// Progress of loading or prefill.
    Progress {
        /// The current stage.
        stage: Stage,
        /// Units done.
        #[ts(type = "number")]
        done: u64,
        /// Total units.
        #[ts(type = "number")]
        total: u64,
    },
    /// The answer has not started, because there is no memory for it next to the answers of these models.
    Waiting {
        /// The references of the models that are answering; its own may be among them.
        models: Vec<String>,
    },
    /// An answer is continued: its content so far, which replaces everything shown.
    Continued {
        /// Its parts.
        parts: Vec<Part>,
        /// Notices for the user.
        notices: Vec<Notice>,
    },
    /// More content at the end of the message: text extends a last part of the same kind, everything else is a new
    /// part.
    Delta {
        /// The new content.
        content: Content,
        /// The time of the content.
        #[ts(type = "number")]
        at: i64,
    },
    /// Something the user should know.
    Notice {
        /// The notice.
        notice: Notice,
    },
    /// The end, in any state; replaces everything shown.
    Finished {
        /// The message as it is stored.
        message: Box<StoredMessage>,
    },
    /// The writer of this stream is gone; the answer may go on. Attach again.
    Detached,
}

/// One event of one answer. Numbers count from 1 without gaps, so that a window that attaches again can ask for the new
/// ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AnswerEvent {
    /// The message.
    pub message: String,
    /// The number of the last event in here; adjacent deltas may have been merged.
    #[ts(type = "number")]
    pub seq: u64,
    /// The event itself.
    pub body: AnswerBody,
}

impl Coalesce for AnswerEvent {
    /// Merges two deltas of one text; the result has the later number.
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        let (message, seq) = (next.message, next.seq);
        let rest = match (&mut self.body, next.body) {
            (
                AnswerBody::Delta { content, at },
                AnswerBody::Delta {
                    content: more,
                    at: later,
                },
            ) => {
                let Some(content) = content.coalesce(more) else {
                    (*at, self.seq) = (later, seq);
                    return None;
                };
                AnswerBody::Delta { content, at: later }
            }
            (_, other) => other,
        };
        Some(Self {
            message,
            seq,
            body: rest,
        })
    }

    fn is_last(&self) -> bool {
        matches!(self.body, AnswerBody::Finished { .. } | AnswerBody::Detached)
    }

    fn abandoned() -> Self {
        Self {
            message: String::new(),
            seq: 0,
            body: AnswerBody::Detached,
        }
    }
}
