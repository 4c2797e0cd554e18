//! Qwen 2 and 3 with experts.

use super::experts::place;
use super::llama;
use super::qwen;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, QkNorm};
use crate::config::moe::{Balance, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Qwen 1.5 and 2 with experts", &["qwen2_moe"], qwen2_moe),
    FamilyRow::text("Qwen 3 with experts", &["qwen3_moe"], qwen3_moe),
    FamilyRow::vision(
        "Qwen3-VL and Qwen3-Omni with experts",
        &["qwen3_vl_moe", "qwen3_omni_moe"],
        qwen3_vl_moe,
        qwen::VISION,
    ),
];

/// The name of the network beside the experts.
pub(super) const SHARED: &[(&str, &str)] = &[("mlp.shared_expert", "mlp.shared_experts")];

/// Qwen 1.5 and 2 with experts: one more beside them, which a gate weighs.
pub(super) fn qwen2_moe(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = with_experts(text, false)?;
    config.each_attention(|attention| attention.qkv_bias = true);
    config.renames = &[SHARED];
    config.family()
}

/// Qwen 3 with experts.
pub(super) fn qwen3_moe(source: Source<'_>) -> Result<Family, Error> {
    let mut config = with_experts(source.text, source.text.flag("norm_topk_prob")?.unwrap_or(false))?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    config.family()
}

/// The language part of Qwen3-VL with experts, whose weights count unless the config says otherwise.
pub(super) fn qwen3_vl_moe(source: Source<'_>) -> Result<Family, Error> {
    let mut config = with_experts(source.text, source.text.flag("norm_topk_prob")?.unwrap_or(true))?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    config.family()
}

fn with_experts(text: Fields<'_>, normalised: bool) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    place_experts(&mut config, text, experts(text, normalised)?)?;
    Ok(config)
}

/// Puts experts into the layers that `decoder_sparse_step` and `mlp_only_layers` leave to them.
pub(super) fn place_experts(config: &mut DecoderConfig, text: Fields<'_>, experts: MoeConfig) -> Result<(), Error> {
    let dense: Vec<f32> = text.numbers("mlp_only_layers")?.unwrap_or_default();
    let step = text.number::<u32>("decoder_sparse_step")?.unwrap_or(1).max(1) as usize;
    place(config, experts, |layer| {
        (layer + 1).is_multiple_of(step) && !dense.contains(&(layer as f32))
    });
    Ok(())
}

/// The experts by the fields that all of Qwen's configs share.
pub(super) fn experts(text: Fields<'_>, normalised: bool) -> Result<MoeConfig, Error> {
    let shared = text
        .number::<u32>("shared_expert_intermediate_size")?
        .filter(|width| *width > 0);
    Ok(MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("moe_intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, normalised),
        shared: shared.map(|width| SharedExpertConfig {
            width,
            activation: Activation::Silu,
            balance: Balance::Gated,
        }),
    })
}
