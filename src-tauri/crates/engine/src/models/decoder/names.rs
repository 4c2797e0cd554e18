//! Names of tensors, of layers that are two here and of tables with numbers in their names among them, and tokens of
//! the vocabulary that stand for nothing.

use checkpoint::config::decoder::{DecoderConfig, HalvedLayers, LayerConfig};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::models::decoder::shared_keys::reads_earlier;
use crate::weights::Weights;

/// Gives tensors the names that this loader has for them.
pub(super) fn rename(config: &DecoderConfig, weights: &mut Weights<'_>) {
    weights.rename_each(of_output);
    config.renames.iter().for_each(|table| weights.rename(table));
    if config.cycles.is_some() {
        weights.rename_each(|name| of_stack(name, config.layers.len() / 2));
    }
    let reads_earlier = |layer: &LayerConfig| layer.mixer.attention().is_some_and(reads_earlier);
    if let Some(own) = config.layers.iter().position(reads_earlier) {
        weights.rename_each(|name| of_reusing(name, own));
    }
    if config.ngrams.is_some() {
        weights.rename_each(of_runs);
    }
    match config.halved_layers {
        Some(HalvedLayers::Numbered) => weights.rename_each(of_half),
        Some(HalvedLayers::Named) => weights.rename_each(of_named_half),
        None => {}
    }
}

/// Zero for each of the tokens `[1, vocabulary]`, and less than everything for those in these runs, if there are any.
pub(super) fn unwritten(runs: &[(u32, u32)], vocabulary: u32, dtype: Dtype) -> Result<Option<Tensor>> {
    if runs.iter().all(|(first, _)| *first >= vocabulary) {
        return Ok(None);
    }
    let never = |token: u32| runs.iter().any(|(first, end)| (*first..*end).contains(&token));
    let number = |token: u32| if never(token) { f32::NEG_INFINITY } else { 0.0 };
    let numbers: Vec<f32> = (0..vocabulary).map(number).collect();
    Tensor::from_f32(&numbers, &[1, vocabulary as i32])
        .astype(dtype)
        .map(Some)
}

/// The name of a tensor of the output layer of Molmo, whose layers have projections of the same name.
fn of_output(name: &str) -> Option<String> {
    let short = name.strip_prefix("transformer.").unwrap_or(name);
    Some(format!("lm_head.{}", short.strip_prefix("ff_out.")?))
}

/// The name of a tensor of layers that follow so many others.
fn of_reusing(name: &str, own: usize) -> Option<String> {
    let (layer, rest) = name.strip_prefix("kv_reuse_layers.")?.split_once('.')?;
    Some(format!("layers.{}.{rest}", own.checked_add(layer.parse().ok()?)?))
}

/// The name of a tensor of one of two stacks of so many layers: the high one follows the low one.
fn of_stack(name: &str, layers: usize) -> Option<String> {
    let (first, rest) = match name.strip_prefix("L_module.layers.") {
        Some(rest) => (0, rest),
        None => (layers, name.strip_prefix("H_module.layers.")?),
    };
    let (layer, rest) = rest.split_once('.')?;
    Some(format!("layers.{}.{rest}", first.checked_add(layer.parse().ok()?)?))
}

/// The name of a tensor of a table of runs whose number stands beside its name: `oe_embed_proj3.…` is
/// `ngram_embeddings.post_projs.3.…`.
fn of_runs(name: &str) -> Option<String> {
    let (table, rest) = name.strip_prefix("oe_embed_")?.split_once('.')?;
    let named = [("tokens", "embedders"), ("proj", "post_projs")].into_iter();
    let mut found = named.filter_map(|(theirs, ours)| Some((ours, table.strip_prefix(theirs)?.parse::<u32>().ok()?)));
    let (ours, number) = found.next()?;
    Some(format!("ngram_embeddings.{ours}.{number}.{rest}"))
}

/// The name of a tensor of a layer that is two here: `layers.3.self_attn.1.…` is `layers.7.self_attn.…`, and what both
/// halves share belongs to the first.
fn of_half(name: &str) -> Option<String> {
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let (first, (part, inner)) = (layer.parse::<u32>().ok()?.checked_mul(2)?, rest.split_once('.')?);
    match (part, inner.split_once('.')) {
        ("mlps", Some((half, inner))) => Some(format!("layers.{}.mlp.{inner}", first + half.parse::<u32>().ok()?)),
        (_, Some((half, inner))) if matches!(half, "0" | "1") => {
            let half = u32::from(half == "1");
            Some(format!("layers.{}.{part}.{inner}", first + half))
        }
        _ => Some(format!("layers.{first}.{rest}")),
    }
}

/// The same if `attn` and its norm are the first half, and `ffn` and its norm the second.
fn of_named_half(name: &str) -> Option<String> {
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let (first, (part, inner)) = (layer.parse::<u32>().ok()?.checked_mul(2)?, rest.split_once('.')?);
    let (half, part) = match part {
        "attn_norm" => (0, "input_layernorm"),
        "ffn_norm" => (1, "input_layernorm"),
        "ffn" => (1, part),
        _ => (0, part),
    };
    Some(format!("layers.{}.{part}.{inner}", first + half))
}
