//! Mellum 2: Qwen 3's experts, and positions that differ between sliding and full layers.

use super::experts::{place, sparse_layers};
use super::llama;
use super::row::FamilyRow;
use super::shapes::ropes_by_type;
use super::source::Source;
use crate::config::decoder::{Activation, QkNorm};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::rope::Defaults;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Mellum 2", &["mellum"], parse)];

/// Mellum 2 with experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    ropes_by_type(text, &mut config, Defaults::new(500_000.0), Defaults::default())?;
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("moe_intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, text.flag("norm_topk_prob")?.unwrap_or(true)),
        shared: None,
    };
    let sparse = sparse_layers(text, config.layers.len() as u32)?;
    place(&mut config, experts, |layer| {
        sparse.as_ref().is_none_or(|sparse| sparse[layer])
    });
    config.family()
}
