//! Images as a model sees them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The detail at which a model sees an image, as the maximum number of tokens for one image. The model's own limits
/// apply as well: one that spends 256 tokens on every image does so at any detail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// At most 512 tokens: the subject of the image, not its small print.
    Quick,
    /// At most 2,048 tokens, enough for the text of a whole screen.
    #[default]
    Normal,
    /// At most 16,384 tokens, the most that any model supports.
    Full,
}

impl ImageDetail {
    /// The maximum number of tokens for one image.
    pub fn most_tokens(self) -> u32 {
        match self {
            Self::Quick => 512,
            Self::Normal => 2_048,
            Self::Full => 16_384,
        }
    }
}
