//! nanochat: norms without factors, after the embedding, of heads and at the end too, halves of a head turn backwards,
//! and a network without a gate squares. Names are those of mlx-lm or of transformers. Defaults are those of
//! transformers' `NanoChatConfig`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{EmbeddingNorm, EncoderActivation, QkNorm};
use crate::config::rope::Defaults;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("nanochat", &["nanochat"], parse)];

/// Names outside of the layers, and of the layers themselves, in files of mlx-lm.
const OUTER: &[(&str, &str)] = &[("transformer.h", "layers"), ("transformer.wte", "embed_tokens")];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.c_q", "self_attn.q_proj"),
    ("attn.c_k", "self_attn.k_proj"),
    ("attn.c_v", "self_attn.v_proj"),
    ("attn.c_proj", "self_attn.o_proj"),
    ("mlp.c_fc", "mlp.up_proj"),
    ("mlp.c_proj", "mlp.down_proj"),
    ("mlp.fc1", "mlp.up_proj"),
    ("mlp.fc2", "mlp.down_proj"),
];

/// nanochat of all depths.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let activation = text.text("hidden_act")?;
    let activation = EncoderActivation::named(activation.as_deref().unwrap_or("relu2"))?;
    let mut config = llama::ungated(text, activation, Defaults::default())?;
    // A norm without factors gives the same before and after the heads turn.
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    config.ropes = config
        .ropes
        .into_iter()
        .map(|rope| rope.backwards())
        .collect::<Result<_, _>>()?;
    (config.norm.bare, config.norm.bare_end) = (true, true);
    config.embedding_norm = Some(EmbeddingNorm::Bare);
    config.logits_softcap = Some(text.number("final_logit_softcapping")?.unwrap_or(15.0));
    config.renames = &[OUTER, INNER];
    config.family()
}
