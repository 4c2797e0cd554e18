//! What is looked for in all chats, and where it stands; chats as files.

use protocol::Role;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What is looked for in titles, questions, answers and the names of what is attached to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct HistoryQuery {
    /// Words that all stand in one place, each as it is or as a beginning; words between quotes stand there one after another.
    pub text: String,
    /// Answers of this model alone, and the questions to them, by its reference.
    pub model: Option<String>,
    /// What was said at this time or later, in Unix milliseconds.
    #[ts(type = "number | null")]
    pub since: Option<i64>,
    /// What was said before this time, in Unix milliseconds.
    #[ts(type = "number | null")]
    pub until: Option<i64>,
    /// Titles are left out: who has the list of chats finds them there.
    pub without_titles: bool,
}

impl HistoryQuery {
    /// These words, wherever and whenever.
    pub fn words(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// One place where something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryHit {
    /// The chat.
    pub chat: String,
    /// Its title.
    pub title: String,
    /// The message; `None` if it is the title.
    pub message: Option<String>,
    /// Who said it; `None` if it is the title.
    pub role: Option<Role>,
    /// The model that said it.
    pub model: Option<String>,
    /// When it was said, in Unix milliseconds.
    #[ts(type = "number")]
    pub at: i64,
    /// The place with some text around it, on one line.
    pub snippet: String,
    /// Where the words stand in the snippet, from and up to, in UTF-16 code units.
    pub marks: Vec<(u32, u32)>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryHits {
    /// Titles first, then messages, newest first.
    pub hits: Vec<HistoryHit>,
    /// Whether there are more than are told.
    pub more: bool,
    /// Whether older chats are still being read into the index, so that some may be missing.
    pub indexing: bool,
}

/// How chats are written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExportFormat {
    /// For reading and editing: the branch that is looked at.
    Markdown,
    /// For programs: everything, and what is imported again.
    Json,
    /// A page for a browser with everything in it: the branch that is looked at.
    Html,
}

impl ExportFormat {
    /// The ending of its files' names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }
}

/// What became of a file of chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportReport {
    /// Chats that are new.
    pub chats: usize,
    /// Their messages.
    pub messages: usize,
    /// Chats that were here already, which stay as they are.
    pub already_here: usize,
}
