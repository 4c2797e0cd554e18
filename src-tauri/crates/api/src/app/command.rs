//! What a menu, a shortcut or the palette can ask for.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A command of the app. Its keys stand in `ui/src/shared/shortcuts.json`, for the menus and for the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(export)]
pub enum Command {
    /// Begins a chat.
    NewChat,
    /// Searches all chats.
    Search,
    /// Finds words in the open chat.
    Find,
    /// Opens the field for everything.
    Palette,
    /// Goes to where a question is written.
    Composer,
    /// Answers the last question once more.
    Regenerate,
    /// Ends the answer that is being written.
    Stop,
    /// Ends its thought.
    AnswerNow,
    /// Switches thinking on or off.
    Thinking,
    /// Shows what the open chat is set to.
    ChatSettings,
    /// Asks two models, or one in two ways.
    TwoAnswers,
    /// Writes the open chat to a file.
    Export,
    /// Takes chats from a file.
    Import,
    /// Shows the Models window.
    Models,
    /// Shows the Settings window.
    Settings,
    /// Shows what is built into Ponder, and its licences.
    About,
    /// Opens the small window for one question.
    QuickEntry,
    /// Draws all windows larger.
    ZoomIn,
    /// Draws all windows smaller.
    ZoomOut,
    /// Draws all windows as they are at first.
    ZoomReset,
    /// Lists all shortcuts.
    Help,
    /// Lets the window fill the screen, or no longer.
    FullScreen,
    /// Closes the window.
    CloseWindow,
    /// Lets the terminal find the command `ponder`.
    InstallCommand,
    /// Ends the app.
    Quit,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 25] = [
        Self::NewChat,
        Self::Search,
        Self::Find,
        Self::Palette,
        Self::Composer,
        Self::Regenerate,
        Self::Stop,
        Self::AnswerNow,
        Self::Thinking,
        Self::ChatSettings,
        Self::TwoAnswers,
        Self::Export,
        Self::Import,
        Self::Models,
        Self::Settings,
        Self::About,
        Self::QuickEntry,
        Self::ZoomIn,
        Self::ZoomOut,
        Self::ZoomReset,
        Self::Help,
        Self::FullScreen,
        Self::CloseWindow,
        Self::InstallCommand,
        Self::Quit,
    ];

    /// Whether the chat window's page does it; the host does the others, in whichever window it is asked for.
    #[must_use]
    pub fn is_of_chat(self) -> bool {
        match self {
            Self::NewChat
            | Self::Search
            | Self::Find
            | Self::Palette
            | Self::Composer
            | Self::Regenerate
            | Self::Stop
            | Self::AnswerNow
            | Self::Thinking
            | Self::ChatSettings
            | Self::TwoAnswers
            | Self::Export
            | Self::Import => true,
            Self::Models
            | Self::Settings
            | Self::About
            | Self::QuickEntry
            | Self::ZoomIn
            | Self::ZoomOut
            | Self::ZoomReset
            | Self::Help
            | Self::FullScreen
            | Self::CloseWindow
            | Self::InstallCommand
            | Self::Quit => false,
        }
    }

    /// Whether the page of whichever window is in front does it.
    #[must_use]
    pub fn is_of_page(self) -> bool {
        matches!(self, Self::ZoomIn | Self::ZoomOut | Self::ZoomReset | Self::Help)
    }

    /// Whether it brings the chat window to the front if that is not there; the other commands of the chat window need it in front.
    #[must_use]
    pub fn opens_chat_window(self) -> bool {
        matches!(self, Self::NewChat | Self::Search | Self::Palette | Self::Import)
    }
}
