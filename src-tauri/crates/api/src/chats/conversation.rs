//! Chats as history keeps them and the windows show them. Times are Unix milliseconds.

use protocol::{Coalesce, Content, EndedBy, Error, FinishReason, Notice, Role, Stage, Timing, Usage};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::settings::ChatSettings;

/// Where a message stands. Everything but an answer is `Complete` from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum AnswerState {
    /// Being written by the process that owns it.
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
    /// When it was begun.
    #[ts(type = "number")]
    pub created_at: i64,
    /// When something was last said.
    #[ts(type = "number")]
    pub updated_at: i64,
    /// Whether it stays at the top.
    pub pinned: bool,
    /// Whether an answer is being written.
    pub running: bool,
    /// Whether an answer ended in it that no window has shown since.
    #[serde(default)]
    pub unread: bool,
    /// Grows with every change of what a window draws of the chat, whoever makes it; drafts are left out. The end of an answer is one change.
    #[serde(default)]
    #[ts(type = "number")]
    pub revision: i64,
    /// Whether it was put away: it is kept and found, and the list does not show it by itself.
    #[serde(default)]
    pub archived: bool,
    /// The folder it lies in.
    #[serde(default)]
    pub folder: Option<String>,
}

/// The list of chats, or what of it has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ChatList {
    /// Which state of the list this is: who has it asks for what has changed since.
    #[ts(type = "number")]
    pub edition: u64,
    /// Whether these are all chats; else those that are new or changed since the edition that was asked for.
    pub whole: bool,
    /// The chats, in the order of the list.
    pub chats: Vec<ChatSummary>,
    /// Chats that are no longer listed, by their ids.
    pub gone: Vec<String>,
}

/// Where a chat is scrolled to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ScrollPlace {
    /// The first message in sight.
    pub message: String,
    /// How many pixels of it are above the view.
    pub offset: f64,
}

/// A place in a branch up to which the model remembers nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryCut {
    /// What the model is told of what it does not remember; `None`: nothing.
    pub summary: Option<String>,
}

/// How much of its model's context a chat takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextUse {
    /// Tokens of what the model would be asked.
    pub tokens: u32,
    /// Tokens that the context holds; `None` if that is not known.
    pub context: Option<u32>,
    /// Whether the tokens are a guess.
    pub estimated: bool,
}

/// What is deleted with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DeleteScope {
    /// All that comes after it, on every branch.
    Branch,
    /// Its question and all that answers it; what follows on the branch that is looked at stays.
    Turn,
}

/// A chat in the trash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TrashedChat {
    /// The chat.
    pub chat: ChatSummary,
    /// When it is deleted for good.
    #[ts(type = "number")]
    pub deleted_for_good_at: i64,
}

/// What became of a history that was found damaged at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RepairedHistory {
    /// Where the damaged file lies now.
    pub set_aside: String,
    /// How many chats were kept.
    #[ts(type = "number")]
    pub chats: u64,
    /// Whether something was taken from a backup.
    pub from_backup: bool,
}

/// How the history was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryState {
    /// Whether it is a copy that is looked at, in which nothing can be changed.
    pub read_only: bool,
    /// What became of it if it was found damaged.
    pub repaired: Option<RepairedHistory>,
}

/// A folder of chats: a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Folder {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Instructions that stand before those of each chat in it; empty: none.
    pub system_prompt: String,
    /// Files whose texts stand before the first question of each chat in it, in this order.
    #[serde(default)]
    pub files: Vec<Content>,
    /// When it was made.
    #[ts(type = "number")]
    pub created_at: i64,
}

/// One part of a message, in the order it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Part {
    /// What it holds.
    #[serde(flatten)]
    pub content: Content,
    /// When its first piece came.
    #[ts(type = "number")]
    pub started_at: i64,
    /// When its last piece came.
    #[ts(type = "number")]
    pub ended_at: i64,
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
    /// Who speaks.
    pub role: Role,
    /// Where it stands.
    pub state: AnswerState,
    /// Its content.
    pub parts: Vec<Part>,
    /// The call whose result this is, in a message of [`Role::Tool`]. A call has one result at most. Its state is `Stopped` if the tool was
    /// not run because the person went on without it.
    pub tool_call_id: Option<String>,
    /// The ids of all messages with the same parent, oldest first, this one included.
    pub siblings: Vec<String>,
    /// When it was made.
    #[ts(type = "number")]
    pub created_at: i64,
    /// When it ended.
    #[ts(type = "number | null")]
    pub finished_at: Option<i64>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The commit or content hash of that model.
    pub model_revision: Option<String>,
    /// SHA-256 of the chat template it was asked through.
    pub template_hash: Option<String>,
    /// What an answer was asked with, its model's reference included, the chat's instructions left out; `None` for every other message.
    pub settings: Option<ChatSettings>,
    /// Whether its thought was ended for the model, by the person or by the budget.
    pub thinking_ended: bool,
    /// How many of its tokens are reasoning, as far as it has come; `None` if that was never counted.
    pub thinking_tokens: Option<u32>,
    /// Why it ended.
    pub finish_reason: Option<FinishReason>,
    /// The rule that ended it.
    pub ended_by: Option<EndedBy>,
    /// Why it failed.
    pub error: Option<Error>,
    /// What the user should know about it.
    pub notices: Vec<Notice>,
    /// Tokens counted.
    pub usage: Option<Usage>,
    /// Times and rates.
    pub timing: Option<Timing>,
    /// Set if the model remembers nothing up to and including this message. The last mark of a branch counts.
    pub memory_cut: Option<MemoryCut>,
    /// Whether a person wrote this answer over a model's.
    #[serde(default)]
    pub edited: bool,
    /// Whether the answer can be continued: it ended early and holds something, more of it could come, and it is the last message of
    /// what its chat looks at. Decided when it is read from the history.
    pub continuable: bool,
}

impl StoredMessage {
    /// A complete, empty message that stands nowhere yet.
    pub fn new(role: Role) -> Self {
        Self {
            id: String::new(),
            chat: String::new(),
            parent: None,
            role,
            state: AnswerState::Complete,
            parts: Vec::new(),
            tool_call_id: None,
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
            memory_cut: None,
            edited: false,
            continuable: false,
        }
    }

    /// The words of the answer or the question alone, such as a title is made of.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Text { text } => Some(text.as_str()),
                Content::Thinking { .. }
                | Content::ToolCall { .. }
                | Content::Data { .. }
                | Content::Image { .. }
                | Content::File { .. } => None,
            })
            .collect()
    }
}

/// A chat as its window shows it: the branch that is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ChatView {
    /// The chat.
    pub summary: ChatSummary,
    /// What it remembers for its next turn.
    pub settings: ChatSettings,
    /// What was written and not sent.
    pub draft: Vec<Content>,
    /// Where it was scrolled to; `None`: its end.
    pub scroll_place: Option<ScrollPlace>,
    /// The messages of the branch, oldest first: all of them, or the newest of a long one. Those before the first, if that has a parent, are
    /// read apart.
    pub messages: Vec<StoredMessage>,
    /// Answers that are being written beside the last one of the branch, to the same question.
    #[serde(default)]
    pub beside: Vec<StoredMessage>,
}

/// Where a question goes in the tree of its chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Position {
    /// At the end of the branch that is looked at.
    #[default]
    End,
    /// At the beginning: an edited first question.
    Beginning,
    /// After this message: a question that was edited goes after the message that the earlier one came after.
    After(String),
}

/// A question that was stored and the answer that was begun for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Turn {
    /// What the person asked.
    pub question: StoredMessage,
    /// The answer, still empty; attach to it to see it grow.
    pub answer: StoredMessage,
    /// [`ChatSummary::revision`] right before it was stored.
    #[ts(type = "number")]
    pub revision_before: i64,
    /// The same right after it: who showed the state before and adds the turn shows this one.
    #[ts(type = "number")]
    pub revision: i64,
}

/// A question that was stored and two answers that were begun for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TurnWithTwoAnswers {
    /// What the person asked.
    pub question: StoredMessage,
    /// The answers, still empty, in the order in which they were asked for. The chat looks at the first.
    pub answers: [StoredMessage; 2],
}

/// An answer that is being written, in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RunningAnswer {
    /// Its chat.
    pub chat: String,
    /// Its message.
    pub message: String,
}

/// What happened to an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum AnswerBody {
    /// How far loading or prefill has come.
    Progress {
        /// What is being waited for.
        stage: Stage,
        /// Units done.
        #[ts(type = "number")]
        done: u64,
        /// Units in all.
        #[ts(type = "number")]
        total: u64,
    },
    /// The answer is not begun yet, because there is no memory for it beside the answers of these models.
    Waiting {
        /// The models that answer, by their references; its own may be among them.
        models: Vec<String>,
    },
    /// An answer is continued: its content so far, which replaces what was shown.
    Continued {
        /// Its parts.
        parts: Vec<Part>,
        /// What the user should know about it.
        notices: Vec<Notice>,
    },
    /// More at the end of the message: a text continues the last part if that is of the same kind, all else is a part of its own.
    Delta {
        /// What came.
        content: Content,
        /// When it came.
        #[ts(type = "number")]
        at: i64,
    },
    /// Something the user should know.
    Notice {
        /// What.
        notice: Notice,
    },
    /// The end, in whatever state; replaces all that was shown.
    Finished {
        /// The message as it is stored.
        message: Box<StoredMessage>,
    },
    /// The writer of this stream is gone; the answer may go on. Attach again.
    Detached,
}

/// One event of one answer. Numbers count from 1 without gaps, so that a window that attaches again asks for what is new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AnswerEvent {
    /// The message.
    pub message: String,
    /// The number of the last event in here (neighbouring deltas may have been joined).
    #[ts(type = "number")]
    pub seq: u64,
    /// What happened.
    pub body: AnswerBody,
}

impl Coalesce for AnswerEvent {
    /// Two pieces of one text become one that carries the later number.
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        match (&mut self.body, next) {
            (
                AnswerBody::Delta { content, at },
                AnswerEvent {
                    message,
                    seq,
                    body:
                        AnswerBody::Delta {
                            content: more,
                            at: later,
                        },
                },
            ) => {
                let rest = content.coalesce(more);
                if rest.is_none() {
                    (*at, self.seq) = (later, seq);
                }
                rest.map(|content| AnswerEvent {
                    message,
                    seq,
                    body: AnswerBody::Delta { content, at: later },
                })
            }
            (_, next) => Some(next),
        }
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
