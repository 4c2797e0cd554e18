//! Disk use of the app's data, as the Settings window shows it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A verified copy of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HistoryBackup {
    /// The creation time, in milliseconds since 1970.
    #[ts(type = "number")]
    pub made_at: i64,
    /// Its size in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// A kind of the app's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DataKind {
    /// The history with its backups.
    Chats,
    /// The images and files of chats and drafts.
    Attachments,
    /// The models that are shared with other programs.
    Models,
}

/// The place and the size of the app's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DataUse {
    /// The folder of all data except models.
    pub folder: String,
    /// The number of chats, the archive and the trash included.
    pub chats: u32,
    /// Bytes of the history file.
    #[ts(type = "number")]
    pub history: u64,
    /// Bytes of the attachments of chats and drafts.
    #[ts(type = "number")]
    pub attachments: u64,
    /// Bytes of the models in all folders.
    #[ts(type = "number")]
    pub models: u64,
    /// The backups, the newest first.
    pub backups: Vec<HistoryBackup>,
    /// Damaged files that a repair replaced, the newest first.
    pub set_aside: Vec<HistoryBackup>,
}
