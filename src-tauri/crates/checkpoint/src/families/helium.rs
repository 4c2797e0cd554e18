//! Helium: Llama's shape, in which neighbors turn against each other.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Helium", &["helium"], parse)];

/// Helium of 2 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    config.each_attention(|attention| attention.o_bias = false);
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config.family()
}
