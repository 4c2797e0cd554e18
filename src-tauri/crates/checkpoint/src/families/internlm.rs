//! InternLM 2 and 3: Llama's shape; in 2 with other names and joined projections, in which each key head comes with its
//! queries. Defaults are those of the `configuration_internlm2.py` and `configuration_internlm3.py` beside the weights.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::FeedForward;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("InternLM 2 and 2.5", &["internlm2"], internlm2),
    FamilyRow::text("InternLM 3", &["internlm3"], internlm3),
];

/// Names in the checkpoints of InternLM 2.
const NAMES: &[(&str, &str)] = &[
    ("tok_embeddings", "embed_tokens"),
    ("attention.wqkv", "self_attn.qkv_proj"),
    ("attention.wo", "self_attn.o_proj"),
    ("attention_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("feed_forward.w1", "mlp.gate_proj"),
    ("feed_forward.w2", "mlp.down_proj"),
    ("feed_forward.w3", "mlp.up_proj"),
    ("output", "lm_head"),
];

/// InternLM 2 and 2.5.
pub(super) fn internlm2(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    let bias = source.text.flag("bias")?.unwrap_or(true);
    for attention in config.attention() {
        attention.joined_by_key_head = true;
        (attention.qkv_bias, attention.o_bias) = (bias, bias);
    }
    config.renames = &[NAMES];
    config.family()
}

/// InternLM 3.
pub(super) fn internlm3(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let (qkv_bias, bias) = (
        text.flag("qkv_bias")?.unwrap_or(false),
        text.flag("bias")?.unwrap_or(false),
    );
    config.each_attention(|attention| attention.qkv_bias = qkv_bias);
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    config.family()
}
