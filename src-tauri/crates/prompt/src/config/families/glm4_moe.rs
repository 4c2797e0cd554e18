//! GLM 4.5 and its kin with experts: scores between 0 and 1, a correction for the choice, a network beside the experts.

use super::{llama, Source};
use crate::config::decoder::{Activation, DecoderConfig, Feed, HeadNorm};
use crate::config::experts::{ExpertsConfig, GroupScore, Groups, RouterConfig, Scores, SharedConfig};
use crate::config::fields::Fields;
use crate::config::{ConfigError, Family};

/// GLM 4.5, 4.6 and 4.7.
pub(super) fn glm4_moe(source: Source<'_>) -> Result<Family, ConfigError> {
    let text = source.text;
    let mut config = decoder(text)?;
    if text.flag("use_qk_norm")?.unwrap_or(false) {
        config.attention().for_each(|attention| attention.head_norm = HeadNorm::PerHead);
    }
    config.family()
}

/// dots.llm1.
pub(super) fn dots1(source: Source<'_>) -> Result<Family, ConfigError> {
    let mut config = decoder(source.text)?;
    config.attention().for_each(|attention| attention.head_norm = HeadNorm::PerHead);
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, ConfigError> {
    let mut config = llama::decoder(text)?;
    // Only q, k and v follow `attention_bias`.
    config.attention().for_each(|attention| attention.o_bias = false);
    feeds(text, &mut config)?;
    Ok(config)
}

/// Gives experts to the layers after the first few, as DeepSeek's configs and those that follow them say it.
pub(super) fn feeds(text: Fields<'_>, config: &mut DecoderConfig) -> Result<(), ConfigError> {
    if text.number::<u32>("n_routed_experts")?.is_none() {
        return Ok(());
    }
    let experts = experts(text)?;
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    let step = text.number::<u32>("moe_layer_freq")?.unwrap_or(1).max(1) as usize;
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if index >= first && index.is_multiple_of(step) {
            layer.feed = Feed::Experts(experts);
        }
    }
    Ok(())
}

fn experts(text: Fields<'_>) -> Result<ExpertsConfig, ConfigError> {
    let (chosen, width) = (text.required("num_experts_per_tok")?, text.required("moe_intermediate_size")?);
    let sigmoid = match text.text("topk_method")?.as_deref() {
        None | Some("noaux_tc") => true,
        // DeepSeek V2; mlx-lm takes every other word for plain choice.
        Some("group_limited_greedy" | "greedy" | "gready") => false,
        Some(other) => return Err(ConfigError::NotYet(format!("experts chosen by `{other}`"))),
    };
    let scores = match text.text("scoring_func")?.as_deref() {
        None if sigmoid => Scores::Sigmoid,
        Some("sigmoid") => Scores::Sigmoid,
        None | Some("softmax") => Scores::Softmax,
        Some(other) => return Err(ConfigError::NotYet(format!("experts scored by `{other}`"))),
    };
    let plain = matches!(text.text("topk_method")?.as_deref(), Some("greedy" | "gready"));
    let count = text.number("n_group")?.filter(|count| *count > 1 && !plain);
    let kept = text.number("topk_group")?;
    let shared = text.number::<u32>("n_shared_experts")?.filter(|count| *count > 0);
    Ok(ExpertsConfig {
        experts: text.required("n_routed_experts")?,
        chosen,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            scores,
            normalised: chosen > 1 && text.flag("norm_topk_prob")?.unwrap_or(sigmoid),
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: sigmoid,
            groups: count.map(|count| Groups {
                count,
                kept: kept.unwrap_or(count),
                by: if sigmoid { GroupScore::TwoBest } else { GroupScore::Best },
            }),
        },
        shared: shared.map(|count| SharedConfig {
            width: count.saturating_mul(width),
            gated: false,
        }),
    })
}
