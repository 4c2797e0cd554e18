//! Citations of a response, held against the passages that it was given.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The marks of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckedCitations {
    /// The marks in the order of its text.
    pub citations: Vec<CheckedCitation>,
    /// The number of its sentences that quote or name numbers and have no mark.
    pub unmarked: u32,
}

/// A mark such as `[2]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CheckedCitation {
    /// The number of the passage.
    pub number: u32,
    /// The sentence that it stands in, or after.
    pub sentence: String,
    /// The verdict.
    pub verdict: CitationVerdict,
}

/// The verdict of strings and numbers on a mark; no model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CitationVerdict {
    /// The chat has no passage of this number.
    Dangling,
    /// Every quotation and number of the sentence is in a passage that it names.
    Supported,
    /// The sentence quotes nothing and names no number, so strings say nothing.
    Unchecked,
    /// The sentence has quotations or numbers that are in none of the passages that it names.
    Unsupported {
        /// They.
        missing: Vec<String>,
    },
}

/// The text of a file with the place of a passage in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PassageText {
    /// The path of the file on this computer.
    pub path: String,
    /// The text before the passage, of the same file; the end of a longer one.
    pub before: String,
    /// The passage.
    pub passage: String,
    /// The text after it; the beginning of a longer one.
    pub after: String,
    /// The page of the passage, from 1; none if the file has no pages.
    pub page: Option<u32>,
    /// Its first line, from 1.
    pub first_line: u32,
    /// True if the file was read again since, and its text is no longer the one that was quoted.
    pub is_changed: bool,
    /// True for an image, which is its only page; a model wrote the text.
    pub is_image: bool,
}

/// A page of the file of a passage as an image; of an image, itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PassagePage {
    /// The number of pages of the file.
    pub pages: u32,
    /// The width of the image, in pixels.
    pub width: u32,
    /// Its height.
    pub height: u32,
    /// The image as a data URL.
    pub image: String,
    /// The lines of the passage on the page; none if they are not found on it.
    pub marks: Vec<PageMark>,
}

/// A rectangle on a page, in shares of its width and height.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct PageMark {
    /// From the left edge.
    pub left: f32,
    /// From the upper edge.
    pub top: f32,
    /// Its width.
    pub width: f32,
    /// Its height.
    pub height: f32,
}
