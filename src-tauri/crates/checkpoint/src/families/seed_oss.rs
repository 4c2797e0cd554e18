//! Seed-OSS: Llama's shape, whose attention has biases on the way in and none on the way out.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Seed-OSS", &["seed_oss"], parse)];

/// Seed-OSS.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    let o_bias = source.text.flag("attention_out_bias")?.unwrap_or(false);
    config.each_attention(|attention| attention.o_bias = o_bias);
    config.family()
}
