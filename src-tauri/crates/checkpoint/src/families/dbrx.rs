//! DBRX: layer norms without biases, clipped projections, and experts in every layer.

use super::experts::place;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
};
use crate::config::limits::check_layers;
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("DBRX", &["dbrx"], parse)];

/// Names in the checkpoints: of the parts of the model.
const PARTS: &[(&str, &str)] = &[
    ("transformer.blocks", "layers"),
    ("transformer.wte", "embed_tokens"),
    ("transformer.norm_f", "norm"),
];

/// Names in the checkpoints: of the parts of a layer.
const NAMES: &[(&str, &str)] = &[
    ("norm_attn_norm.norm_1", "input_layernorm"),
    ("norm_attn_norm.norm_2", "post_attention_layernorm"),
    ("norm_attn_norm.attn.Wqkv", "self_attn.qkv_proj"),
    ("norm_attn_norm.attn.out_proj", "self_attn.o_proj"),
    ("ffn.router.layer", "mlp.gate"),
    ("ffn", "mlp"),
];

/// DBRX.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let attention = text.object("attn_config")?.ok_or(Error::MissingField("attn_config"))?;
    let feed = text.object("ffn_config")?.ok_or(Error::MissingField("ffn_config"))?;
    let (hidden_size, heads) = (text.required("d_model")?, text.required("n_heads")?);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("n_layers")?)?,
        heads,
        key_heads: attention.required("kv_n_heads")?,
        head_dim: hidden_size / heads,
        width: feed.required("ffn_hidden_size")?,
        eps: 1e-5,
        lm_head: LmHead::Untied,
    };
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            clip: attention.number("clip_qkv")?,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let experts = MoeConfig {
        num_experts: feed.required("moe_num_experts")?,
        top_k: feed.required("moe_top_k")?,
        width: shapes.width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, true),
        shared: None,
    };
    let rope = RopeConfig::parse(attention, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    place(&mut config, experts, |_| true);
    config.norm.kind = NormKind::Layer { bias: false };
    config.renames = &[PARTS, NAMES];
    config.family()
}
