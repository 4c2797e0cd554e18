//! One decode step of a batch.

use mlx::tensor::Tensor;

use crate::error::{Error, Result};
use crate::sequence::DecodedStep;

/// A step whose tokens are being computed.
pub struct Step {
    /// Which token each row gives.
    pub choice: Choice,
    /// Whose row each is; `None` if its token is not wanted any more.
    pub rows: Vec<Option<u64>>,
    /// True if a chat answer takes part.
    pub chat: bool,
    /// True if other answers do.
    pub others: bool,
}

/// Which tokens a step gives.
pub enum Choice {
    /// Tokens `[rows]`.
    Made(DecodedStep),
    /// They depend on those of the step before, which say what a schema allows; meanwhile the logits are computed.
    Waiting {
        /// The tokens `[rows]` that were read.
        input: Tensor,
        /// The logits after them, `[rows, vocabulary]`.
        logits: Tensor,
        /// Whose row each is, also if its token is not wanted any more.
        members: Vec<u64>,
    },
}

impl Step {
    /// The tokens, when they were chosen.
    pub fn made(&self) -> Result<&DecodedStep> {
        match &self.choice {
            Choice::Made(decoded) => Ok(decoded),
            Choice::Waiting { .. } => Err(Error::Panicked("the tokens of a step were not chosen".into())),
        }
    }
}
