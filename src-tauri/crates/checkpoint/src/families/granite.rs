//! Granite, dense: Llama's shape with four multipliers.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::DecoderConfig;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Granite 3 and 4, dense", &["granite"], parse)];

/// Granite 3 and 4 (dense).
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    // Written for each model; without it the scores are not scaled at all.
    let scale = text.number("attention_multiplier")?.unwrap_or(1.0);
    config.each_attention(|attention| attention.scale = scale);
    DecoderConfig {
        embedding_multiplier: text.number("embedding_multiplier")?,
        residual_multiplier: text.number("residual_multiplier")?,
        logits_divisor: text.number("logits_scaling")?,
        ..config
    }
    .family()
}
