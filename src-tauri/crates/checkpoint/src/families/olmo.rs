//! OLMo 2 and 3: norms after each half of a layer, and over all heads of queries and of keys together. OLMoE has the
//! latter.

use super::llama;
use super::row::FamilyRow;
use super::shapes::windows;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, NormPlacement, QkNorm};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("OLMo 2", &["olmo2"], olmo2),
    FamilyRow::text("OLMo 3", &["olmo3"], olmo3),
    FamilyRow::text("OLMoE", &["olmoe"], olmoe),
];

/// OLMo 2.
pub(super) fn olmo2(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

/// OLMo 3: three sliding layers for each full one, and only full ones have a scaled rope.
pub(super) fn olmo3(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    if windows(text, config.layers.len() as u32)?.is_none() {
        let window = Some(text.required("sliding_window")?);
        for (layer, attention) in config.attention().enumerate() {
            attention.window = window.filter(|_| !(layer + 1).is_multiple_of(4));
        }
    }
    let flat = match text.object("rope_parameters")? {
        Some(parameters) => parameters.number("rope_theta")?,
        None => None,
    };
    let theta = flat.or(text.number("rope_theta")?).unwrap_or(Defaults::default().theta);
    let Some(head_dim) = config.attention().next().map(|attention| attention.head_dim) else {
        return Err(Error::MissingField("num_hidden_layers"));
    };
    let defaults = Defaults::new(theta);
    let sliding = RopeConfig::parse(text, head_dim, For::Only("sliding_attention"), defaults)?;
    config.ropes = vec![
        RopeConfig::parse(text, head_dim, For::Type("full_attention"), defaults)?,
        sliding,
    ];
    for attention in config.attention() {
        attention.rope = Some(usize::from(attention.window.is_some()));
    }
    config.family()
}

/// OLMo with experts.
pub(super) fn olmoe(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, text.flag("norm_topk_prob")?.unwrap_or(false)),
        shared: None,
    };
    config.each_attention(|attention| attention.qk_norm = QkNorm::Whole);
    config.each_layer(|layer| layer.feed_forward = FeedForward::Moe(experts));
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::Whole);
    config.each_layer(|layer| layer.norms = NormPlacement::Post);
    Ok(config)
}
