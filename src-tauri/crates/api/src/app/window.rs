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
    /// Calls of tools that wait for the user. Nothing else may approve one.
    Consent,
    /// The reason why the app could not start; no other window is open then.
    Failure,
}

impl WindowName {
    /// Every window.
    pub const ALL: [Self; 6] = [
        Self::Chat,
        Self::Models,
        Self::Settings,
        Self::Quick,
        Self::Consent,
        Self::Failure,
    ];

    /// The name as a string.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Models => "models",
            Self::Settings => "settings",
            Self::Quick => "quick",
            Self::Consent => "consent",
            Self::Failure => "failure",
        }
    }
}

/// A page that a window can be opened at. The name is also the value of `?page=` in its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum WindowPage {
    /// The models on this computer.
    Local,
    /// The search for models.
    Discover,
    /// The downloads of models.
    Downloads,
    /// Language, default model, and Ponder's place on the desktop.
    General,
    /// Theme, sizes, and the display of thinking.
    Appearance,
    /// The beginning of new chats.
    Chats,
    /// Loaded models, and the folders of models.
    Models,
    /// Endpoints.
    Connections,
    /// Servers of tools, and what they may do.
    Tools,
    /// The local server.
    Server,
    /// The network, and the data on disk.
    Privacy,
    /// The version of Ponder, its parts and their licenses.
    About,
}

/// A page that a window is asked to show, and perhaps a row of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PageRequest {
    /// The page.
    pub page: WindowPage,
    /// The name of a row of the settings, as the windows call it; one that is not there is ignored.
    pub row: Option<String>,
}

impl WindowPage {
    /// The window that it belongs to.
    #[must_use]
    pub fn window(self) -> WindowName {
        match self {
            Self::Local | Self::Discover | Self::Downloads => WindowName::Models,
            Self::General
            | Self::Appearance
            | Self::Chats
            | Self::Models
            | Self::Connections
            | Self::Tools
            | Self::Server
            | Self::Privacy
            | Self::About => WindowName::Settings,
        }
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Discover => "discover",
            Self::Downloads => "downloads",
            Self::General => "general",
            Self::Appearance => "appearance",
            Self::Chats => "chats",
            Self::Models => "models",
            Self::Connections => "connections",
            Self::Tools => "tools",
            Self::Server => "server",
            Self::Privacy => "privacy",
            Self::About => "about",
        }
    }
}
