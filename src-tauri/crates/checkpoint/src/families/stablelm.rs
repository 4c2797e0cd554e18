//! StableLM: Llama's shape with layer norms and a partly turning head; the large one has attention and network beside
//! each other. Defaults are those of transformers' `StableLmConfig`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{NormKind, NormPlacement};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("StableLM 2 and 3B", &["stablelm"], parse)];

/// StableLM of 1.6, 3 and 12 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("qk_layernorm")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "layer norms of queries and keys (`qk_layernorm`)".into(),
        ));
    }
    let mut config = llama::decoder(text)?;
    let defaults = Defaults {
        partial: 0.25,
        ..Defaults::default()
    };
    let head_dim = config.attention().next().map(|attention| attention.head_dim);
    if let Some(head_dim) = head_dim {
        config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    }
    let qkv_bias = text.flag("use_qkv_bias")?.unwrap_or(false);
    config.each_attention(|attention| attention.qkv_bias = qkv_bias);
    if text.flag("use_parallel_residual")?.unwrap_or(false) {
        config.each_layer(|layer| layer.norms = NormPlacement::Parallel);
    }
    config.norm.kind = NormKind::Layer { bias: true };
    config.norm.eps = text.number("layer_norm_eps")?.unwrap_or(1e-5);
    config.family()
}
