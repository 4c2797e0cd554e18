//! Command R and its successors: attention and network beside each other after one layer norm, neighbors turn against
//! each other, tied embeddings. In Command R7B and A three layers slide for each full one, which knows nothing of
//! positions. Command A with experts has them in every layer but the first few.
//! Defaults are those of transformers' `CohereConfig` and `Cohere2Config`.

use super::experts::{place, scoring};
use super::row::FamilyRow;
use super::shapes::{windows, Shapes};
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
};
use crate::config::moe::{Balance, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Command R, Aya", &["cohere"], cohere),
    FamilyRow::text("Command A with experts", &["cohere2_moe", "cohere2moe"], cohere2_moe),
    FamilyRow::text("Command R7B and A", &["cohere2"], cohere2),
];

/// Command R and Aya.
pub(super) fn cohere(source: Source<'_>) -> Result<Family, Error> {
    if source.text.flag("use_qk_norm")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "layer norms of queries and keys (`use_qk_norm`)".into(),
        ));
    }
    decoder(source.text)?.family()
}

/// Command R7B and A.
pub(super) fn cohere2(source: Source<'_>) -> Result<Family, Error> {
    sliding(source.text, 0)?.family()
}

/// Command A with experts. Defaults are those of mlx-vlm.
pub(super) fn cohere2_moe(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    let mut config = sliding(text, first)?;
    let width: u32 = text.required("intermediate_size")?;
    let top_k = text.number("num_experts_per_tok")?.unwrap_or(8);
    let shared = text
        .first(&["num_shared_experts", "moe_num_shared_experts"])?
        .unwrap_or(4u32);
    let balance = match text.text("shared_expert_combination_strategy")?.as_deref() {
        None | Some("average") => Balance::Mean,
        Some("sum") => Balance::Sum,
        Some(other) => return Err(Error::Unsupported(format!("shared experts combined by `{other}`"))),
    };
    let scoring = match text.has("expert_selection_fn") {
        true => scoring(text, "expert_selection_fn", Scoring::Sigmoid)?,
        false => scoring(text, "moe_gate_act", Scoring::Sigmoid)?,
    };
    let experts = MoeConfig {
        num_experts: text.number("num_experts")?.unwrap_or(128),
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(scoring, text.flag("norm_topk_prob")?.unwrap_or(true)),
        shared: (shared > 0).then(|| SharedExpertConfig {
            balance,
            ..SharedExpertConfig::beside(shared.saturating_mul(width))
        }),
    };
    place(&mut config, experts, |layer| layer >= first);
    let dense = text.number("prefix_dense_intermediate_size")?.unwrap_or(width);
    for layer in config.layers.iter_mut().take(first) {
        layer.feed_forward = FeedForward::dense(dense, Activation::Silu);
    }
    if let Some(eps) = text.number("rms_norm_eps")? {
        config.norm.kind = NormKind::RootMeanSquare;
        config.norm.eps = eps;
    }
    config.family()
}

/// Windows in most layers but the first few, which turn with or without one.
fn sliding(text: Fields<'_>, first: usize) -> Result<DecoderConfig, Error> {
    let mut config = decoder(text)?;
    let turns = text.number("prefix_dense_sliding_window_pattern")?.unwrap_or(1u32) == 1;
    let windows = match windows(text, config.layers.len() as u32)? {
        Some(windows) => windows,
        None => {
            let window = text.number("sliding_window")?.unwrap_or(4096);
            let every = text.number("sliding_window_pattern")?.unwrap_or(4u32).max(1) as usize;
            let slides = |layer: usize| (!layer.is_multiple_of(every)).then_some(window);
            (1..=config.layers.len()).map(slides).collect()
        }
    };
    for (index, (attention, window)) in config.attention().zip(windows).enumerate() {
        attention.window = window.filter(|_| index >= first);
        let turns = if index < first { turns } else { window.is_some() };
        attention.rope = attention.rope.filter(|_| turns);
    }
    Ok(config)
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let shapes = Shapes {
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Tied,
        ..Shapes::parse(text)?
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let layer = LayerConfig {
        norms: NormPlacement::Parallel,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: bias,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let defaults = Defaults {
        traditional: true,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer {
        bias: text.flag("layer_norm_bias")?.unwrap_or(false),
    };
    config.logits_divisor = Some(text.number("logit_scale")?.unwrap_or(0.0625f32).recip());
    Ok(config)
}
