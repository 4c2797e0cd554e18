//! The app and the desktop around it: links and files that are opened with it, work that is unfinished at the end, and
//! features that the desktop lacks.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something that the app was opened with: a link, a file, a notification. It waits until the chat window takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum OpenRequest {
    /// Text of a link, for the draft of a new chat. It is sent only by the user.
    Draft {
        /// The words.
        text: String,
    },
    /// A chat to show.
    Chat {
        /// Its id.
        id: String,
    },
    /// A file of chats, imported only if the user confirms it.
    Chats {
        /// The key under which the file is read.
        key: String,
        /// Its name.
        name: String,
        /// A preview of its content.
        found: ImportPreview,
    },
    /// A file for the draft of a new chat.
    File {
        /// The key under which its bytes are read.
        key: String,
        /// Its name.
        name: String,
    },
    /// The command `ponder` was installed for terminals.
    CommandInstalled {
        /// The path of the command.
        path: String,
        /// Its folder if that may not be on the terminal's search path; `None` if it is.
        folder: Option<String>,
    },
    /// Something that cannot be opened.
    Refused {
        /// The reason.
        error: Error,
    },
}

/// The content of a file of chats, before any of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportPreview {
    /// The number of chats.
    pub chats: usize,
    /// The number of messages in them.
    pub messages: usize,
    /// The titles of the first chats.
    pub titles: Vec<String>,
}

/// Work that runs while the app is asked to quit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RunningWork {
    /// The titles of the chats in which an answer is running; empty for an untitled chat.
    pub answers: Vec<String>,
    /// The models that are being downloaded.
    pub downloads: Vec<String>,
}

impl RunningWork {
    /// True if nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.downloads.is_empty()
    }
}

/// The time at which an app with running work quits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum QuitChoice {
    /// As soon as nothing runs; the windows close now.
    WhenDone,
    /// Now. Running answers are stored, and downloads resume at the next start.
    Now,
    /// Not at all.
    Cancel,
}

/// The reason why this desktop lacks a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum UnavailableReason {
    /// The desktop shows no tray icons.
    NoTray,
    /// Wayland does not tell an app about keys while another one is in front.
    Wayland,
    /// No program shows notifications.
    NoNotifications,
    /// The feature is not needed here.
    NotNeeded,
}

/// The features of the desktop; `None` means that it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Desktop {
    /// An icon in the menu bar or the tray.
    pub tray: Option<UnavailableReason>,
    /// A global shortcut.
    pub global_shortcut: Option<UnavailableReason>,
    /// Notifications.
    pub notifications: Option<UnavailableReason>,
    /// The command `ponder` in the terminal, installed by the app.
    pub command: Option<UnavailableReason>,
    /// True if the app is opened at login.
    pub open_at_login: bool,
    /// The reason why the chosen shortcut is not heard.
    pub shortcut_refused: Option<Error>,
}
