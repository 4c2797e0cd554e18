//! Gemma 3n: attention and per-layer inputs of Gemma 4's small models, with several streams. Names and defaults are
//! those of transformers' `Gemma3nTextConfig`.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::mobilenet;
use crate::config::gemma4::{layer_types, AltUpConfig, Gemma4Config, RopeParameters};
use crate::config::limits::check_layers;
use crate::config::Family;
use crate::error::Error;
use crate::image_processor::parts::one_size;
use crate::image_processor::{Filter, ImageProcessor, ProcessorConfig};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "Gemma 3n",
        &["gemma3n"],
        parse,
        VisionRow {
            encoder: mobilenet::parse,
            processor: ProcessorRow::always(&["Gemma3n"], processor),
            prompt: ImagePrompt {
                around: "\n\n",
                run: ImageRun::Between("<start_of_image>", "<end_of_image>"),
                ..ImagePrompt::new("<image_soft_token>")
            },
        },
    ),
    FamilyRow::text("Gemma 3n, text only", &["gemma3n_text"], parse),
];

/// Gemma 3n, its text part.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let count = check_layers(text.required("num_hidden_layers")?)?;
    let layers = layer_types(text, count)?;
    let head_dim = text.number("head_dim")?.unwrap_or(256);
    let altup = AltUpConfig::parse(text, layers.len())?;
    let written = |kind: &'static str| match text.object("rope_parameters")? {
        Some(all) => match all.object(kind)? {
            Some(fields) => fields.number("rope_theta"),
            None => Ok(None),
        },
        None => Ok(None),
    };
    let rope = |kind: &'static str, field: &'static str, usual: f32| {
        let theta = match written(kind)? {
            Some(theta) => theta,
            None => text.number(field)?.unwrap_or(usual),
        };
        Ok::<_, Error>(RopeParameters {
            theta,
            partial_rotary_factor: 1.0,
        })
    };
    if text.object("rope_scaling")?.is_some() {
        return Err(Error::Unsupported("`rope_scaling` of Gemma 3n".into()));
    }
    let config = Gemma4Config {
        hidden_size: text.required("hidden_size")?,
        num_kv_shared_layers: text.number("num_kv_shared_layers")?.unwrap_or(15),
        intermediate_size: altup.mlp_widths.iter().copied().max().unwrap_or(0),
        use_double_wide_mlp: false,
        num_attention_heads: text.required("num_attention_heads")?,
        num_key_value_heads: text.required("num_key_value_heads")?,
        num_global_key_value_heads: None,
        head_dim,
        global_head_dim: head_dim,
        sliding_window: text.number("sliding_window")?.unwrap_or(512),
        hidden_size_per_layer_input: Some(text.number("hidden_size_per_layer_input")?.unwrap_or(256)),
        vocab_size: text.number("vocab_size")?.unwrap_or(262_400),
        vocab_size_per_layer_input: text.number("vocab_size_per_layer_input")?.unwrap_or(262_144),
        rms_norm_eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        final_logit_softcapping: text.number("final_logit_softcapping")?,
        tie_word_embeddings: true,
        sliding_rope: rope("sliding_attention", "rope_local_base_freq", 10_000.0)?,
        full_rope: rope("full_attention", "rope_theta", 1_000_000.0)?,
        attention_k_eq_v: false,
        experts: None,
        altup: Some(altup),
        layers,
    };
    Ok(Family::Gemma4(config.check(text)?))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    // Its convolutions have no patches: the grid is that of its features.
    one_size(
        processor,
        768,
        |width, tokens| (width / tokens).max(1),
        Filter::Bilinear,
        None,
    )
}
