//! MiniCPM: Llama's shape with three multipliers, in version 3 with attention over latents. Defaults are those of the
//! `configuration_minicpm.py` beside the weights.

use super::row::FamilyRow;
use super::source::Source;
use super::{deepseek, llama};
use crate::config::decoder::DecoderConfig;
use crate::config::rope::Defaults;
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("MiniCPM 1, 2 and 4", &["minicpm"], minicpm),
    FamilyRow::text("MiniCPM 3", &["minicpm3"], minicpm3),
];

/// MiniCPM without latents.
pub(super) fn minicpm(source: Source<'_>) -> Result<Family, Error> {
    multiplied(source.text, llama::decoder(source.text)?)?.family()
}

/// MiniCPM with latents, whose values share the width of the stream.
pub(super) fn minicpm3(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shared = text.required("hidden_size")? / text.required("num_attention_heads")?;
    let value = text.number("v_head_dim")?.unwrap_or(shared);
    let config = deepseek::decoder(text, Some(deepseek::LATENT_EPS), value, Defaults::default())?;
    multiplied(text, config)?.family()
}

fn multiplied(text: Fields<'_>, config: DecoderConfig) -> Result<DecoderConfig, Error> {
    let number = |field| Ok::<_, Error>(text.number(field)?.unwrap_or(1.0f32));
    Ok(DecoderConfig {
        embedding_multiplier: Some(number("scale_emb")?),
        residual_multiplier: Some(number("scale_depth")? / (config.layers.len() as f32).sqrt()),
        logits_divisor: Some(config.hidden_size as f32 / number("dim_model_base")?),
        ..config
    })
}
