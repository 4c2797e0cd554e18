//! Nomic BERT: BERT with rotary positions, gated networks and no biases. The published configs have GPT-2's names for
//! the shapes, and transformers' own `NomicBertConfig` has BERT's.

use super::row::FamilyRow;
use super::source::Source;
use crate::config::encoder::{EncoderActivation, EncoderConfig, Positions};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::embedding("Nomic BERT", &["nomic_bert"], parse)];

/// Names of the published checkpoints.
const RENAMES: &[&[(&str, &str)]] = &[
    &[("encoder.layers", "layers"), ("emb_ln", "embeddings.LayerNorm")],
    &[
        ("attn.Wqkv", "self_attn.qkv_proj"),
        ("attn.out_proj", "self_attn.o_proj"),
        ("mlp.fc11", "mlp.up_proj"),
        ("mlp.fc12", "mlp.gate_proj"),
        ("mlp.fc2", "mlp.down_proj"),
        ("norm1", "post_attention_layernorm"),
        ("norm2", "post_mlp_layernorm"),
    ],
];

/// Base of the rotary positions.
const THETA: f32 = 1000.0;

pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    for (field, wanted) in [
        ("qkv_proj_bias", false),
        ("mlp_fc1_bias", false),
        ("mlp_fc2_bias", false),
        ("prenorm", false),
        ("use_rms_norm", false),
        ("parallel_block", false),
    ] {
        if text.flag(field)?.unwrap_or(wanted) != wanted {
            return Err(Error::Unsupported(format!("`{field}`")));
        }
    }
    // Positions beyond those of the training by a base that grows with the text.
    if text.has("rotary_scaling_factor") {
        return Err(Error::Unsupported("`rotary_scaling_factor`".into()));
    }
    let activation = match text.text("activation_function")?.as_deref() {
        Some("swiglu") => EncoderActivation::Silu,
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
        None => EncoderActivation::named(text.text("hidden_act")?.as_deref().unwrap_or("silu"))?,
    };
    let (hidden_size, heads) = (
        text.either("n_embd", "hidden_size")?,
        text.either("n_head", "num_attention_heads")?,
    );
    let rope = RopeConfig::parse(
        text,
        hidden_size / heads,
        For::All,
        Defaults {
            theta: text.number("rotary_emb_base")?.unwrap_or(THETA),
            traditional: text.flag("rotary_emb_interleaved")?.unwrap_or(false),
            partial: text.number("rotary_emb_fraction")?.unwrap_or(1.0),
            whole: false,
        },
    )?;
    let config = EncoderConfig {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: text.either("n_layer", "num_hidden_layers")?,
        heads,
        width: text.either("n_inner", "intermediate_size")?,
        norm_eps: text.first(&["layer_norm_epsilon", "layer_norm_eps"])?.unwrap_or(1e-12),
        activation,
        gated: true,
        bias: false,
        positions: Positions::Rotary {
            rope,
            context: text.either("n_positions", "max_position_embeddings")?,
        },
        token_types: text.number("type_vocab_size")?.unwrap_or(2),
        renames: RENAMES,
    };
    Ok(Family::Encoder(Box::new(config.check()?)))
}
