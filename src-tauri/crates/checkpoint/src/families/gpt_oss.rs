//! gpt-oss: experts with biases and clipped gates, attention with sinks, every second layer sliding.

use super::row::FamilyRow;
use super::shapes::{windows, Shapes};
use super::source::Source;
use crate::config::decoder::{Activation, AttentionConfig, FeedForward, LayerConfig, Mixer, NormPlacement};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("gpt-oss", &["gpt_oss"], parse)];

/// The name of the router in the checkpoints.
const ROUTER: &[(&str, &str)] = &[("mlp.router", "mlp.gate")];

/// The limit that [`Activation::ClippedSilu`] has.
const LIMIT: f32 = 7.0;

/// gpt-oss of 20 and 120 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes::parse(text)?;
    if let Some(limit) = text.number::<f32>("swiglu_limit")?.filter(|limit| *limit != LIMIT) {
        return Err(Error::Unsupported(format!("gates clipped at {limit}")));
    }
    let windows = match windows(text, shapes.layers)? {
        Some(windows) => windows,
        None => {
            let window = Some(text.required("sliding_window")?);
            (0..shapes.layers)
                .map(|layer| window.filter(|_| layer.is_multiple_of(2)))
                .collect()
        }
    };
    let attention = AttentionConfig {
        qkv_bias: true,
        o_bias: true,
        sinks: true,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let experts = MoeConfig {
        num_experts: text.required("num_local_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: shapes.width,
        activation: Activation::ClippedSilu,
        bias: true,
        router: RouterConfig::new(Scoring::Softmax, true),
        shared: None,
    };
    let layers = windows.into_iter().map(|window| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            window,
            ..attention.clone()
        }),
        feed_forward: FeedForward::Moe(experts),
    });
    let defaults = Defaults::new(150_000.0);
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], layers.collect());
    config.renames = &[ROUTER];
    config.family()
}
