//! How the windows look.

use protocol::limits::refusal;
use protocol::Result;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Light or dark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Theme {
    /// As the system is set.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// How much room there is between lines and rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Density {
    /// Room to breathe.
    #[default]
    Comfortable,
    /// More on one screen.
    Compact,
}

/// The colours of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CodeTheme {
    /// Soft colours of their own.
    #[default]
    Soft,
    /// One colour beside that of the text.
    Ink,
    /// Strong colours.
    Vivid,
}

/// How long the lines of a chat may get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ReadingWidth {
    /// As in a book.
    Narrow,
    /// As drawn.
    #[default]
    Normal,
    /// For tables and code.
    Wide,
    /// As wide as the window.
    Full,
}

/// When the words of a thought are seen that nobody opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ThoughtDisplay {
    /// Never.
    Folded,
    /// Its last lines, while it is being thought.
    #[default]
    WhileThinking,
    /// Always, whole.
    Always,
}

/// How the windows look, all of them alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Appearance {
    /// Light or dark.
    pub theme: Theme,
    /// How large text is, in percent.
    pub text_size: u16,
    /// How much room there is.
    pub density: Density,
    /// The colours of code.
    pub code_theme: CodeTheme,
    /// How long lines may get.
    pub width: ReadingWidth,
    /// When thoughts are seen.
    pub thoughts: ThoughtDisplay,
    /// How large everything is, in percent.
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
    /// What `text_size` and `zoom` may be.
    const PERCENT: std::ops::RangeInclusive<u16> = 50..=300;

    /// Refuses sizes at which nothing can be read.
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
