//! What Ponder keeps on the disk, as the Settings window shows it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A checked copy of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryBackup {
    /// When it was made, in milliseconds since 1970.
    #[ts(type = "number")]
    pub made_at: i64,
    /// Its bytes.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// Where the data of the app lies, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DataUse {
    /// The folder of all data but the models.
    pub folder: String,
    /// How many chats there are, those in the archive and in the trash among them.
    pub chats: u32,
    /// Bytes of the history file.
    #[ts(type = "number")]
    pub history: u64,
    /// Bytes of the pictures and texts that chats and drafts hold.
    #[ts(type = "number")]
    pub attachments: u64,
    /// Bytes of the models in all folders.
    #[ts(type = "number")]
    pub models: u64,
    /// The backups, the newest first.
    pub backups: Vec<HistoryBackup>,
}
