//! An answer that follows a schema.

use super::Generation;
use crate::error::Result;

impl Generation {
    /// Whether what may come next depends on its last token.
    pub fn constrained(&self) -> bool {
        self.request.schema.is_some()
    }

    /// Limits what is chosen next, after its last token.
    ///
    /// # Errors
    /// If what was written does not follow the schema.
    pub fn limit_choice(&mut self) -> Result<()> {
        let mask = self.output.mask()?;
        if let Some(sequence) = &mut self.sequence {
            sequence.limit(mask);
        }
        Ok(())
    }
}
