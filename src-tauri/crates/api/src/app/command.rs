//! Commands of menus, shortcuts and the command palette.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A command of the app. Its keys are listed in `ui/src/shared/shortcuts.json`, for menus and windows alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(export)]
pub enum Command {
    /// Starts a new chat.
    NewChat,
    /// Starts a temporary chat, of which nothing is written.
    TemporaryChat,
    /// Searches all chats.
    Search,
    /// Finds words in the open chat.
    Find,
    /// Opens the command palette.
    Palette,
    /// Moves the focus to the composer.
    Composer,
    /// Generates the last answer again.
    Regenerate,
    /// Stops the running answer.
    Stop,
    /// Ends the running thought.
    AnswerNow,
    /// Switches thinking on or off.
    Thinking,
    /// Shows the settings of the open chat.
    ChatSettings,
    /// Asks one question of two models, or of one model with two settings.
    TwoAnswers,
    /// Exports the open chat.
    Export,
    /// Imports chats from a file.
    Import,
    /// Shows the Models window.
    Models,
    /// Shows the Settings window.
    Settings,
    /// Shows the version of Ponder, its parts and their licenses.
    About,
    /// Opens quick entry.
    QuickEntry,
    /// Zooms in, in all windows.
    ZoomIn,
    /// Zooms out, in all windows.
    ZoomOut,
    /// Resets the zoom of all windows.
    ZoomReset,
    /// Lists all shortcuts.
    Help,
    /// Switches full screen on or off.
    FullScreen,
    /// Closes the window.
    CloseWindow,
    /// Installs the command `ponder` for terminals.
    InstallCommand,
    /// Ends the app.
    Quit,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 26] = [
        Self::NewChat,
        Self::TemporaryChat,
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

    /// True if the chat window's page runs it; the host runs the others, in whichever window they are invoked.
    #[must_use]
    pub fn is_of_chat(self) -> bool {
        use Command::*;
        match self {
            NewChat | TemporaryChat | Search | Find | Palette | Composer | Regenerate | Stop | AnswerNow | Thinking
            | ChatSettings | TwoAnswers | Export | Import => true,
            Models | Settings | About | QuickEntry | ZoomIn | ZoomOut | ZoomReset | Help | FullScreen | CloseWindow
            | InstallCommand | Quit => false,
        }
    }

    /// True if the page of the focused window runs it.
    #[must_use]
    pub fn is_of_page(self) -> bool {
        matches!(self, Self::ZoomIn | Self::ZoomOut | Self::ZoomReset | Self::Help)
    }

    /// True if it brings the chat window to the front; the other commands of the chat window need it there already.
    #[must_use]
    pub fn opens_chat_window(self) -> bool {
        matches!(
            self,
            Self::NewChat | Self::TemporaryChat | Self::Search | Self::Palette | Self::Import
        )
    }
}
