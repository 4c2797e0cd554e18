//! Gemma 3n: attention and per-layer inputs of Gemma 4's small models, but several streams of which each layer computes one and corrects the
//! others by it (AltUp). Names and defaults are those of transformers' `Gemma3nTextConfig`.

use super::decoder::check_width;
use super::fields::Fields;
use super::gemma4::{layer_types, Gemma4Config, RopeParameters};
use crate::Error;

/// More streams than any model has.
const MOST_STREAMS: u32 = 16;

/// Several streams, and what a layer has beside attention and network.
#[derive(Debug, Clone, PartialEq)]
pub struct AltUpConfig {
    /// How many streams.
    pub streams: u32,
    /// The one that layers compute.
    pub active: u32,
    /// Whether what a layer adds by its inputs is made of the scaled stream.
    pub scaled: bool,
    /// Width inside of the layers' shortcut of two projections (Laurel).
    pub laurel_rank: u32,
    /// Width of each layer's MLP.
    pub mlp_widths: Vec<u32>,
    /// The part of each layer's gate that is held at 0; all of it goes through if it is 0.
    pub sparsity: Vec<f32>,
}

impl AltUpConfig {
    fn parse(text: Fields<'_>, layers: usize) -> Result<Self, Error> {
        const WIDTHS: &str = "intermediate_size";
        const SPARSITY: &str = "activation_sparsity_pattern";
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        let mlp_widths = match text.numbers(WIDTHS)?.as_deref() {
            Some([all]) => vec![*all as u32; layers],
            Some(each) if each.len() == layers => each.iter().map(|width| *width as u32).collect(),
            Some(each) => return unusable(WIDTHS, format!("it names {} of {layers} layers", each.len())),
            None => return Err(Error::MissingField(WIDTHS)),
        };
        let sparsity = match text.numbers(SPARSITY)? {
            Some(each) if each.len() == layers => each,
            Some(each) => return unusable(SPARSITY, format!("it names {} of {layers} layers", each.len())),
            // The first ten layers of published models, whose configs say so.
            None => vec![0.0; layers],
        };
        if let Some(part) = sparsity.iter().find(|part| !(0.0..1.0).contains(*part)) {
            return unusable(SPARSITY, format!("{part} is no part of a layer"));
        }
        for width in &mlp_widths {
            check_width(WIDTHS, 2 * u64::from(*width))?;
        }
        let altup = Self {
            streams: text.number("altup_num_inputs")?.unwrap_or(4),
            active: text.number("altup_active_idx")?.unwrap_or(0),
            scaled: text.flag("altup_correct_scale")?.unwrap_or(true),
            laurel_rank: text.number("laurel_rank")?.unwrap_or(64),
            mlp_widths,
            sparsity,
        };
        check_width("laurel_rank", altup.laurel_rank.into())?;
        if !(2..=MOST_STREAMS).contains(&altup.streams) {
            return unusable("altup_num_inputs", format!("{} is not from 2 to {MOST_STREAMS}", altup.streams));
        }
        if altup.active >= altup.streams {
            return unusable(
                "altup_active_idx",
                format!("there is no stream {} of {}", altup.active, altup.streams),
            );
        }
        Ok(altup)
    }
}

/// Reads the text part.
pub(super) fn parse(text: Fields<'_>) -> Result<Gemma4Config, Error> {
    let count = super::decoder::check_layers(text.required("num_hidden_layers")?)?;
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
    Gemma4Config {
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
    }
    .check(text)
}
