//! A damaged history and its repair.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The number of chats and messages of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryContents {
    /// Its chats, the archive and the trash included.
    #[ts(type = "number")]
    pub chats: u64,
    /// Its messages.
    #[ts(type = "number")]
    pub messages: u64,
}

/// A backup that can take the place of a damaged history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct UsableBackup {
    /// The creation time, in milliseconds since 1970.
    #[ts(type = "number")]
    pub made_at: i64,
    /// The chats and messages in it.
    pub contents: HistoryContents,
}

/// The readable part of a damaged history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryDamage {
    /// The number of chats that the file names, readable or not.
    #[ts(type = "number")]
    pub known_chats: u64,
    /// The readable part of the file.
    pub readable: HistoryContents,
    /// The newest backup that can be read.
    pub backup: Option<UsableBackup>,
    /// The readable part of the file and that backup together.
    pub together: HistoryContents,
}

/// The contents of a file that takes the place of a damaged history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum HistoryRemedy {
    /// The readable part of the file, and what only the newest backup has.
    Everything,
    /// The newest backup alone.
    Backup,
}

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RepairedHistory {
    /// The path of the damaged file.
    pub set_aside: String,
    /// The chats and messages of the new file.
    pub contents: HistoryContents,
}
