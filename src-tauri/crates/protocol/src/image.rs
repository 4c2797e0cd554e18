//! How pictures are shown to a model.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How much of a picture a model is shown, as tokens that one picture may take at most. A model's own limits hold beside it: one that gives every
/// picture 256 tokens does so at any detail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// At most 512 tokens: what is in the picture, not its small print.
    Quick,
    /// At most 2,048 tokens, enough for the text of a whole screen.
    #[default]
    Normal,
    /// At most 16,384 tokens, which is as much as any model was made for.
    Full,
}

impl ImageDetail {
    /// Tokens that one picture may take at most.
    pub fn most_tokens(self) -> u32 {
        match self {
            Self::Quick => 512,
            Self::Normal => 2_048,
            Self::Full => 16_384,
        }
    }
}
