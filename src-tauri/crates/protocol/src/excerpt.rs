//! Documents: files whose text a model is given.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The unit of a text, for the user.
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
    /// The unit of the numbers below.
    pub unit: ExcerptUnit,
    /// The first page or line of the part, from 1.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// The number of units in the whole text.
    pub of: u32,
}

impl Excerpt {
    /// All of a text with this many pages or lines.
    pub fn whole(unit: ExcerptUnit, of: u32) -> Self {
        Self {
            unit,
            first: 1,
            last: of,
            of,
        }
    }

    /// True if nothing is left out.
    pub fn is_whole(&self) -> bool {
        self.first <= 1 && self.last >= self.of
    }
}
