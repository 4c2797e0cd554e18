//! Llama 4, its text part: three layers whose positions see their chunk alone for each full one, which knows nothing of
//! positions and whose queries grow with them, norms without factors of what has turned, and experts that are weighed
//! before they compute.

use super::experts::place;
use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, QkNorm, QueryScaling};
use crate::config::limits::check_nonzero;
use crate::config::moe::{MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text(
    "Llama 4, text only, MobileLLM-R1",
    &["llama4", "llama4_text"],
    parse,
)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("feed_forward.router", "mlp.gate"),
    ("feed_forward.shared_expert", "mlp.shared_experts"),
    ("feed_forward", "mlp"),
    ("output", "lm_head"),
];

/// Llama 4, and dense models of its shape.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    // Llama's parser knows no layers of these types; `no_rope_layers` says the same.
    let known = text.without("layer_types");
    let mut config = llama::decoder(Fields::new(&known))?;
    let layers = config.layers.len() as u32;
    let turns = match text.flags("no_rope_layers", layers) {
        Ok(Some(turns)) => turns,
        // An empty list stands for none.
        _ => {
            let every = text.number("no_rope_layer_interval")?.unwrap_or(4u32).max(1);
            (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect()
        }
    };
    let chunk = match text.says_null("attention_chunk_size") {
        true => None,
        false => Some(text.number("attention_chunk_size")?.unwrap_or(8192)),
    };
    let (normed, scaling) = (text.flag("use_qk_norm")?.unwrap_or(true), query_scaling(text)?);
    let mut head_dim = 0;
    for (attention, turns) in config.attention().zip(turns) {
        head_dim = attention.head_dim;
        if !turns {
            (attention.rope, attention.query_scaling) = (None, scaling);
            continue;
        }
        attention.chunk = chunk;
        if normed {
            attention.qk_norm = QkNorm::PerHeadBareTurned;
        }
    }
    let defaults = Defaults {
        traditional: true,
        ..Defaults::new(500_000.0)
    };
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    feed_forwards(text, &mut config)?;
    config.renames = &[NAMES];
    config.family()
}

/// Experts, and the width of the networks of other layers.
fn feed_forwards(text: Fields<'_>, config: &mut DecoderConfig) -> Result<(), Error> {
    let width = text.required("intermediate_size")?;
    if let Some(wide) = text.number("intermediate_size_mlp")? {
        config.each_layer(|layer| layer.feed_forward = FeedForward::dense(wide, Activation::Silu));
    }
    let step = text.number::<u32>("interleave_moe_layer_step")?.unwrap_or(1) as usize;
    let count = text.number("num_local_experts")?.unwrap_or(16);
    if step == 0 || count == 0 {
        return Ok(());
    }
    let experts = MoeConfig {
        num_experts: count,
        top_k: text.number("num_experts_per_tok")?.unwrap_or(1),
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            on_input: true,
            ..RouterConfig::new(Scoring::Sigmoid, false)
        },
        shared: Some(SharedExpertConfig::beside(width)),
    };
    let listed = text.numbers("moe_layers")?;
    place(config, experts, |layer| match &listed {
        Some(listed) => listed.contains(&(layer as f32)),
        None => (layer + 1).is_multiple_of(step),
    });
    Ok(())
}

/// The growth of queries by `attn_temperature_tuning`, which is a number in some files.
fn query_scaling(text: Fields<'_>) -> Result<Option<QueryScaling>, Error> {
    const TUNED: &str = "attn_temperature_tuning";
    let tuned = match text.number::<f32>(TUNED) {
        Ok(number) => number.is_none_or(|number| number != 0.0),
        Err(_) => text.flag(TUNED)?.unwrap_or(true),
    };
    let original_context = text.number::<f32>("floor_scale")?.unwrap_or(8192.0) as u32;
    check_nonzero("floor_scale", original_context)?;
    let beta = text.number("attn_scale")?.unwrap_or(0.1);
    Ok(tuned.then_some(QueryScaling {
        beta,
        original_context,
        from_one: true,
    }))
}
