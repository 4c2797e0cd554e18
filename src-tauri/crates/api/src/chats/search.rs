//! Full-text search over all chats; chats as files.

use protocol::Role;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A search in titles, questions, answers and the names of their attachments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct HistoryQuery {
    /// Words that all occur in one place, in full or as a prefix; quoted words occur one after another.
    pub text: String,
    /// Limits the search to answers of this model, by its reference, and the questions to them.
    pub model: Option<String>,
    /// The earliest time, in Unix milliseconds.
    #[ts(type = "number | null")]
    pub since: Option<i64>,
    /// The time before which a message was written, in Unix milliseconds.
    #[ts(type = "number | null")]
    pub until: Option<i64>,
    /// Leaves titles out: a caller that has the list of chats searches them there.
    pub without_titles: bool,
}

impl HistoryQuery {
    /// A search for these words, without filters.
    pub fn words(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// One place where the words were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryHit {
    /// The chat.
    pub chat: String,
    /// Its title.
    pub title: String,
    /// The message; `None` for the title.
    pub message: Option<String>,
    /// The role of its author; `None` for the title.
    pub role: Option<Role>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The time of the message, in Unix milliseconds.
    #[ts(type = "number")]
    pub at: i64,
    /// The words with some text around them, on one line.
    pub snippet: String,
    /// The ranges of the words in the snippet, start and end, in UTF-16 code units.
    pub marks: Vec<(u32, u32)>,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryHits {
    /// Titles first, then messages, newest first.
    pub hits: Vec<HistoryHit>,
    /// True if there are more hits than these.
    pub more: bool,
    /// True if older chats are still being indexed, so that hits may be missing.
    pub indexing: bool,
}

/// A file format for exported chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExportFormat {
    /// For reading and editing: the selected branch.
    Markdown,
    /// For programs: everything; the format that can be imported again.
    Json,
    /// A self-contained page for a browser: the selected branch.
    Html,
}

impl ExportFormat {
    /// The file extension.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }
}

/// The result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportReport {
    /// New chats.
    pub chats: usize,
    /// Their messages.
    pub messages: usize,
    /// Chats that existed already; they stay as they are.
    pub already_here: usize,
    /// Images that cannot be shown; they were left out.
    pub dropped_images: usize,
}
