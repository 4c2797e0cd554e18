//! MiniCPM: Llama's shape with three multipliers. Defaults are those of the `configuration_minicpm.py` beside the
//! weights.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::DecoderConfig;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("MiniCPM 1, 2 and 4", &["minicpm"], parse)];

/// MiniCPM without latents.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let config = llama::decoder(text)?;
    let number = |field| Ok::<_, Error>(text.number(field)?.unwrap_or(1.0f32));
    DecoderConfig {
        embedding_multiplier: Some(number("scale_emb")?),
        residual_multiplier: Some(number("scale_depth")? / (config.layers.len() as f32).sqrt()),
        logits_divisor: Some(config.hidden_size as f32 / number("dim_model_base")?),
        ..config
    }
    .family()
}
