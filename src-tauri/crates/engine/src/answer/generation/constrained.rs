//! An answer whose tokens are limited by a grammar.

use super::Generation;
use crate::error::Result;

impl Generation {
    /// True if its next token is limited by its last one.
    pub fn constrained(&self) -> bool {
        self.output.is_limited()
    }

    /// True if its first step waits for its grammar, so that the steps of others do not.
    pub fn awaits_grammar(&self) -> bool {
        self.decoding() && self.output.awaits_grammar()
    }

    /// Limits what is chosen next, after its last token.
    ///
    /// # Errors
    /// If what was written does not follow the grammar.
    pub fn limit_choice(&mut self) -> Result<()> {
        let mask = self.output.mask()?;
        if let Some(sequence) = self.state.sequence_mut() {
            sequence.limit(mask);
        }
        Ok(())
    }
}
