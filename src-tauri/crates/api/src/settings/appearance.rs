//! The appearance of the windows.

use protocol::limits::refusal;
use protocol::Result;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Light or dark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Theme {
    /// Follows the system.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// The spacing of lines and rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Density {
    /// Wide spacing.
    #[default]
    Comfortable,
    /// Narrow spacing.
    Compact,
}

/// The color scheme of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CodeTheme {
    /// Muted colors.
    #[default]
    Soft,
    /// One color next to the text's own.
    Ink,
    /// Strong colors.
    Vivid,
}

/// The maximum line length of a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ReadingWidth {
    /// As in a book.
    Narrow,
    /// The default.
    #[default]
    Normal,
    /// For tables and code.
    Wide,
    /// As wide as the window.
    Full,
}

/// The visibility of thoughts that are not expanded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ThoughtDisplay {
    /// Hidden.
    Folded,
    /// The last lines, while thinking.
    #[default]
    WhileThinking,
    /// Always in full.
    Always,
}

/// The appearance of all windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Appearance {
    /// Light or dark.
    pub theme: Theme,
    /// The text size, in percent.
    pub text_size: u16,
    /// The spacing.
    pub density: Density,
    /// The color scheme of code.
    pub code_theme: CodeTheme,
    /// The maximum line length.
    pub width: ReadingWidth,
    /// The visibility of thoughts.
    pub thoughts: ThoughtDisplay,
    /// The zoom of everything, in percent.
    pub zoom: u16,
}

impl Default for Appearance {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            text_size: 100,
            density: Density::default(),
            code_theme: CodeTheme::default(),
            width: ReadingWidth::default(),
            thoughts: ThoughtDisplay::default(),
            zoom: 100,
        }
    }
}

impl Appearance {
    /// The bounds of `text_size` and `zoom`.
    pub const PERCENT: std::ops::RangeInclusive<u16> = 50..=300;

    /// Refuses sizes at which nothing is readable.
    ///
    /// # Errors
    /// `BadRequest`, which names the field.
    pub fn check(&self) -> Result<()> {
        for (field, percent) in [("text_size", self.text_size), ("zoom", self.zoom)] {
            if !Self::PERCENT.contains(&percent) {
                let (low, high) = (*Self::PERCENT.start(), *Self::PERCENT.end());
                let message = format!("{field} is {percent} %; it has to be between {low} % and {high} %");
                return Err(refusal(field, message).with("low", low).with("high", high));
            }
        }
        Ok(())
    }
}
