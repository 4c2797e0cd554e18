//! Phi 3 and 4 (mini): Llama's shape with joined projections in the files and a partly turning head.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Phi 3, 3.5 and 4 mini", &["phi3"], parse)];

/// Phi 3, 3.5 and 4 mini.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    let window = source.text.number("sliding_window")?;
    config.each_attention(|attention| attention.window = window);
    config.family()
}
