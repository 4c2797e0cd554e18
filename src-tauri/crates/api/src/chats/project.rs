//! Projects, and notes about the user.

use protocol::Content;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A project: a folder of chats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Project {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Instructions that precede those of each of its chats; empty if there are none.
    pub system_prompt: String,
    /// Files whose texts precede the first question of each chat in it, in this order.
    #[serde(default)]
    pub files: Vec<Content>,
    /// Collections of documents that each chat in it asks.
    #[serde(default)]
    pub collections: Vec<String>,
    /// True if each chat in it is told the notes of the project about the user.
    #[serde(default)]
    pub uses_notes: bool,
    /// The creation time.
    #[ts(type = "number")]
    pub created_at: i64,
}

/// A line about the user that models are told, which the user wrote or confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Note {
    /// Its id.
    pub id: String,
    /// Its text, on one line.
    pub text: String,
    /// The chat in which a model suggested it; none if the user wrote it, or deleted that chat.
    pub chat: Option<String>,
    /// The creation time.
    #[ts(type = "number")]
    pub created_at: i64,
}
