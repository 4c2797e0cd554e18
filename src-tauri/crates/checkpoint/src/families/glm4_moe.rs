//! GLM 4.5 and its kin with experts: scoring between 0 and 1, a correction for the choice, a network beside the
//! experts.

use super::glm4;
use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, QkNorm};
use crate::config::moe::{Correction, ExpertGroups, GroupScore, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("dots.llm1", &["dots1"], dots1),
    FamilyRow::text("GLM 4.5 to 4.7", &["glm4_moe"], glm4_moe),
    FamilyRow::text("Solar Open", &["solar_open"], solar_open),
    FamilyRow::vision("GLM-4.5V", &["glm4v_moe"], glm4_moe, glm4::VISION),
];

/// GLM 4.5, 4.6 and 4.7.
pub(super) fn glm4_moe(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    if text.flag("use_qk_norm")?.unwrap_or(false) {
        config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    }
    config.family()
}

/// Solar Open: GLM's shape with other defaults.
pub(super) fn solar_open(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    let head_dim = config.attention().next().map_or(128, |attention| attention.head_dim);
    if text.flag("use_qk_norm")?.unwrap_or(false) {
        config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    }
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, Defaults::new(1_000_000.0))?];
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    config.family()
}

/// dots.llm1.
pub(super) fn dots1(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    // Only q, k and v follow `attention_bias`.
    config.each_attention(|attention| attention.o_bias = false);
    feed_forwards(text, &mut config)?;
    Ok(config)
}

/// Gives experts to the layers after the first few, as DeepSeek's configs and those that follow them say it.
pub(super) fn feed_forwards(text: Fields<'_>, config: &mut DecoderConfig) -> Result<(), Error> {
    if text.number::<u32>("n_routed_experts")?.is_none() {
        return Ok(());
    }
    let experts = experts(text)?;
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    let step = text.number::<u32>("moe_layer_freq")?.unwrap_or(1).max(1) as usize;
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if index >= first && index.is_multiple_of(step) {
            layer.feed_forward = FeedForward::Moe(experts);
        }
    }
    Ok(())
}

/// The experts as DeepSeek's configs and those that follow them say it.
pub(super) fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    let (top_k, width) = (
        text.required("num_experts_per_tok")?,
        text.required("moe_intermediate_size")?,
    );
    let sigmoid = match text.text("topk_method")?.as_deref() {
        None | Some("noaux_tc") => true,
        // DeepSeek V2; mlx-lm takes every other word for plain choice.
        Some("group_limited_greedy" | "greedy" | "gready") => false,
        Some(other) => return Err(Error::Unsupported(format!("experts chosen by `{other}`"))),
    };
    let scoring = match text.text("scoring_func")?.as_deref() {
        None if sigmoid => Scoring::Sigmoid,
        Some("sigmoid") => Scoring::Sigmoid,
        None | Some("softmax") => Scoring::Softmax,
        Some(other) => return Err(Error::Unsupported(format!("experts scored by `{other}`"))),
    };
    let plain = matches!(text.text("topk_method")?.as_deref(), Some("greedy" | "gready"));
    let count = text.number("n_group")?.filter(|count| *count > 1 && !plain);
    let top_groups = text.number("topk_group")?;
    let shared = text.number::<u32>("n_shared_experts")?.filter(|count| *count > 0);
    Ok(MoeConfig {
        num_experts: text.required("n_routed_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            normalised: top_k > 1 && text.flag("norm_topk_prob")?.unwrap_or(sigmoid),
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::when(sigmoid),
            groups: count.map(|count| ExpertGroups {
                count,
                top_k: top_groups.unwrap_or(count),
                score: if sigmoid { GroupScore::TwoBest } else { GroupScore::Best },
            }),
            ..RouterConfig::new(scoring, false)
        },
        shared: shared.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    })
}
