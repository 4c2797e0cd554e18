//! Experts as the configs of several families describe them.

use crate::config::decoder::{DecoderConfig, FeedForward};
use crate::config::moe::{Correction, ExpertGroups, GroupScore, MoeConfig, RouterConfig, Scoring};
use crate::config::Fields;
use crate::error::Error;

/// The router of DeepSeek V3 and those that follow it: a score between 0 and 1 for each expert, a correction for the
/// choice, and the two best of each of `n_group` groups, of which `topk_group` are chosen from.
pub(super) fn corrected_router(text: Fields<'_>, normalised: bool, factor: f32) -> Result<RouterConfig, Error> {
    Ok(RouterConfig {
        factor,
        correction: Correction::Always,
        groups: groups(text)?,
        ..RouterConfig::new(Scoring::Sigmoid, normalised)
    })
}

/// Groups of experts by `n_group` and `topk_group`, if there are several; each counts as its two best.
pub(super) fn groups(text: Fields<'_>) -> Result<Option<ExpertGroups>, Error> {
    let count = text.number("n_group")?.filter(|count| *count > 1);
    let top_k = text.number("topk_group")?;
    Ok(count.map(|count| ExpertGroups {
        count,
        top_k: top_k.unwrap_or(count),
        score: GroupScore::TwoBest,
    }))
}

/// A way to score by its name in a config; by `usual` if it has none.
pub(super) fn scoring(text: Fields<'_>, field: &'static str, usual: Scoring) -> Result<Scoring, Error> {
    match text.text(field)?.as_deref() {
        None => Ok(usual),
        Some("sigmoid") => Ok(Scoring::Sigmoid),
        Some("softmax") => Ok(Scoring::Softmax),
        Some("sqrtsoftplus") => Ok(Scoring::SqrtSoftplus),
        Some(other) => Err(Error::Unsupported(format!("experts scored by `{other}`"))),
    }
}

/// Refuses a flag that gives biases to experts whose router has none.
pub(super) fn refuse_biases(text: Fields<'_>, field: &'static str) -> Result<(), Error> {
    match text.flag(field)? {
        Some(true) => Err(Error::Unsupported(format!("experts with biases (`{field}`)"))),
        Some(false) | None => Ok(()),
    }
}

/// Gives experts to the layers that `has` is true for.
pub(super) fn place(config: &mut DecoderConfig, experts: MoeConfig, has: impl Fn(usize) -> bool) {
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if has(index) {
            layer.feed_forward = FeedForward::Moe(experts);
        }
    }
}

/// Which layers have experts, by `mlp_layer_types`; `None` if the config has no such list.
pub(super) fn sparse_layers(text: Fields<'_>, layers: u32) -> Result<Option<Vec<bool>>, Error> {
    text.kinds("mlp_layer_types", layers, &[("dense", false), ("sparse", true)])
}
