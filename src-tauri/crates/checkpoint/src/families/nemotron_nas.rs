//! Llama Nemotron by architecture search: Llama's shape, in which some layers lack attention or the network, or have a
//! projection in its place, and every network has its own width. Defaults are those of the `configuration_decilm.py`
//! beside the weights.

use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    AttentionConfig, DenseConfig, FeedForward, LayerConfig, LinearConfig, Mixer, NormPlacement,
};
use crate::config::limits::check_names;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Llama Nemotron 49B to 253B", &["nemotron-nas"], parse)];

/// The field with one object for each layer.
const BLOCKS: &str = "block_configs";

/// Names of the projections in the original files.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.linear_attn", "self_attn.linear"),
    ("mlp.linear_mlp", "mlp.linear"),
];

/// Llama Nemotron Super and Ultra.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes {
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
        ..Shapes::with_width(text, 0)?
    };
    let blocks = text.object_list(BLOCKS)?.ok_or(Error::MissingField(BLOCKS))?;
    check_names(BLOCKS, blocks.len(), shapes.layers as usize)?;
    let layer = |block: Fields<'_>| {
        Ok(LayerConfig {
            norms: NormPlacement::Pre,
            mixer: mixer(text, &shapes, part(block, "attention")?)?,
            feed_forward: network(text, &shapes, part(block, "ffn")?)?,
        })
    };
    let layers = blocks.into_iter().map(layer).collect::<Result<Vec<_>, Error>>()?;
    if !layers.iter().any(|layer| matches!(layer.mixer, Mixer::Attention(_))) {
        return unusable(BLOCKS, "no layer has attention");
    }
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::new(500_000.0))?;
    let mut config = shapes.decoder(vec![rope], layers);
    config.renames = &[NAMES];
    config.family()
}

/// The description of a part of a layer.
fn part<'a>(block: Fields<'a>, field: &'static str) -> Result<Fields<'a>, Error> {
    block.object(field)?.ok_or(Error::MissingField(field))
}

fn mixer(text: Fields<'_>, shapes: &Shapes, part: Fields<'_>) -> Result<Mixer, Error> {
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    if part.flag("no_op")?.unwrap_or(false) {
        return Ok(Mixer::Absent);
    }
    if part.flag("replace_with_linear")?.unwrap_or(false) {
        return Ok(Mixer::Linear(LinearConfig { bias }));
    }
    for field in ["window_length", "num_sink_tokens"] {
        if part.has(field) {
            return Err(Error::Unsupported(format!("attention with `{field}`")));
        }
    }
    let sharing = part.required("n_heads_in_group")?;
    if !shapes.heads.is_multiple_of(sharing) {
        let reason = format!("{} heads cannot share keys by {sharing}", shapes.heads);
        return unusable("n_heads_in_group", reason);
    }
    Ok(Mixer::Attention(AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        ..AttentionConfig::new(shapes.heads, shapes.heads / sharing, shapes.head_dim, Some(0))
    }))
}

fn network(text: Fields<'_>, shapes: &Shapes, part: Fields<'_>) -> Result<FeedForward, Error> {
    let bias = text.flag("mlp_bias")?.unwrap_or(false);
    if part.flag("no_op")?.unwrap_or(false) {
        return Ok(FeedForward::Absent);
    }
    if part.flag("replace_with_linear")?.unwrap_or(false) {
        return Ok(FeedForward::Linear(LinearConfig { bias }));
    }
    let multiplier: f64 = part.number("ffn_mult")?.ok_or(Error::MissingField("ffn_mult"))?;
    Ok(FeedForward::Dense(DenseConfig {
        width: width(multiplier, shapes.hidden_size),
        activation: llama::activation(text)?,
        bias,
    }))
}

/// Two thirds of so many times the stream, as the next multiple of 256.
fn width(multiplier: f64, hidden_size: u32) -> u32 {
    let multiplier = (multiplier * 1e6).round() / 1e6;
    let width = (2.0 * multiplier * f64::from(hidden_size) / 3.0).floor();
    ((width / 256.0).ceil() * 256.0) as u32
}
