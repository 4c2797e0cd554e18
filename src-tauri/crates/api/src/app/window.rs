//! The windows of the app.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A window. The same word is its label in the shell and the value of `?window=` in its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum WindowName {
    /// Chats. Closing it ends the app, or hides it where the app stays in the Dock or the tray.
    Chat,
    /// Models: found, fetched, kept.
    Models,
    /// What is set for the whole app.
    Settings,
    /// Quick entry: one question, and its answer.
    Quick,
    /// Why the app could not start; it stands alone.
    Failure,
}

impl WindowName {
    /// Every window.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Models, Self::Settings, Self::Quick, Self::Failure];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Models => "models",
            Self::Settings => "settings",
            Self::Quick => "quick",
            Self::Failure => "failure",
        }
    }
}
