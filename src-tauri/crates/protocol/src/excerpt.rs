//! Documents: files of which a model is given the text.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a text is divided into, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ExcerptUnit {
    /// Pages of a document.
    Pages,
    /// Lines of a text without pages.
    Lines,
}

/// A part of a text, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
pub struct Excerpt {
    /// What is counted.
    pub unit: ExcerptUnit,
    /// The first page or line of the part, from 1.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// How many the whole text has.
    pub of: u32,
}

impl Excerpt {
    /// All of a text of so many pages or lines.
    pub fn whole(unit: ExcerptUnit, of: u32) -> Self {
        Self {
            unit,
            first: 1,
            last: of,
            of,
        }
    }

    /// Whether nothing is left out.
    pub fn is_whole(&self) -> bool {
        self.first <= 1 && self.last >= self.of
    }
}
