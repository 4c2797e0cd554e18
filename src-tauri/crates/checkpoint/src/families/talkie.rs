//! Talkie: norms without factors, learned numbers as factors of heads, parts of layers and logits, and embeddings that
//! are added after every layer. Halves of a head turn backwards. Defaults are those of mlx-lm's `talkie.py`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{EmbeddingNorm, LmHead, QkNorm};
use crate::config::rope::{Defaults, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Talkie", &["talkie"], parse)];

/// Names outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("blocks", "layers"),
    ("embed", "embed_tokens"),
    ("lm_head", "lm_head.weight"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.attn_query", "self_attn.q_proj"),
    ("attn.attn_key", "self_attn.k_proj"),
    ("attn.attn_value", "self_attn.v_proj"),
    ("attn.attn_resid", "self_attn.o_proj"),
    ("attn", "self_attn"),
    ("mlp.mlp_gate", "mlp.gate_proj"),
    ("mlp.mlp_linear", "mlp.up_proj"),
    ("mlp.mlp_resid", "mlp.down_proj"),
];

/// Talkie of 13 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::activated(text, llama::activation(text)?, Defaults::new(1_000_000.0))?;
    for attention in config.attention() {
        // A norm without factors gives the same before and after the heads turn.
        (attention.qk_norm, attention.head_gain) = (QkNorm::PerHead, true);
    }
    config.ropes = config
        .ropes
        .into_iter()
        .map(RopeConfig::backwards)
        .collect::<Result<_, _>>()?;
    (config.norm.bare, config.norm.bare_end) = (true, true);
    config.embedding_norm = Some(EmbeddingNorm::Bare);
    // The type's own, as torch has it.
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(f32::EPSILON);
    config.gains = true;
    config.lm_head = LmHead::Untied;
    config.renames = &[OUTER, INNER];
    config.family()
}
