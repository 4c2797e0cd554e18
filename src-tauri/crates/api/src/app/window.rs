//! The windows of the app.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A window. The name is also its label in the shell and the value of `?window=` in its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum WindowName {
    /// Chats. Closing it quits the app, or hides it if the app stays in the Dock or the tray.
    Chat,
    /// Models: search, downloads, local models.
    Models,
    /// Settings of the app.
    Settings,
    /// Quick entry: one question, and its answer.
    Quick,
    /// The reason why the app could not start; no other window is open then.
    Failure,
}

impl WindowName {
    /// Every window.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Models, Self::Settings, Self::Quick, Self::Failure];

    /// The name as a string.
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
