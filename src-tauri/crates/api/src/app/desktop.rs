//! What the app shares with the desktop around it: what is brought to it, what runs when it is to end, what the desktop can do.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something that was brought to the app from outside: by a link, a file, a notification. It waits until the chat window takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum Arrival {
    /// Words of a link, for the draft of a new chat. They are nobody's question until a person sends them.
    Draft {
        /// The words.
        text: String,
    },
    /// A chat to show.
    Chat {
        /// Its id.
        id: String,
    },
    /// A file of chats, which are imported only if a person says so.
    Chats {
        /// What the file is asked for by.
        key: String,
        /// Its name.
        name: String,
        /// What it holds.
        found: ImportPreview,
    },
    /// A file for the draft of a new chat.
    File {
        /// What its bytes are asked for by.
        key: String,
        /// Its name.
        name: String,
    },
    /// The command `ponder` was put where terminals look.
    CommandInstalled {
        /// Where it lies.
        path: String,
        /// Its folder, if a terminal may have to be told of that; `None`: terminals look there.
        folder: Option<String>,
    },
    /// What cannot be taken, and why.
    Refused {
        /// Why.
        error: Error,
    },
}

/// What a file of chats holds, before anything of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportPreview {
    /// Its chats.
    pub chats: usize,
    /// Their messages.
    pub messages: usize,
    /// The titles of the first of them.
    pub titles: Vec<String>,
}

/// What runs while the app is asked to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Unfinished {
    /// The titles of the chats with an answer that is being written; empty for a chat without one.
    pub answers: Vec<String>,
    /// The models that are being fetched.
    pub downloads: Vec<String>,
}

impl Unfinished {
    /// Whether nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.downloads.is_empty()
    }
}

/// When the app ends that was asked to while something runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum QuitChoice {
    /// As soon as nothing runs; its windows close now.
    WhenDone,
    /// Now. What was written is stored, and downloads go on the next time.
    Now,
    /// Not at all.
    Cancel,
}

/// Why this desktop has no such thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Absence {
    /// The desktop shows no icons of apps.
    NoTray,
    /// Wayland lets no app hear keys while another is in front.
    Wayland,
    /// No program shows notifications.
    NoNotifications,
    /// Nothing of that kind is needed here.
    NotNeeded,
}

/// What the desktop can do; `None`: it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Desktop {
    /// An icon in the menu bar or the tray.
    pub tray: Option<Absence>,
    /// A shortcut that is heard everywhere.
    pub global_shortcut: Option<Absence>,
    /// Notifications.
    pub notifications: Option<Absence>,
    /// The command `ponder` in the terminal, put there by the app.
    pub command: Option<Absence>,
    /// Whether the app is opened at login.
    pub open_at_login: bool,
    /// Why the shortcut that is set is not heard.
    pub shortcut_refused: Option<String>,
}
