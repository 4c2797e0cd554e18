//! Phixtral: Phi 2's shape, in which every layer has several of its networks. Defaults are those of mlx-lm.

use super::experts::place;
use super::row::FamilyRow;
use super::shapes::{rotary_part, Shapes};
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
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Phixtral", &["phixtral", "phi-msft"], parse)];

/// Names in the checkpoints: of the parts of the model.
const PARTS: &[(&str, &str)] = &[
    ("transformer.h", "layers"),
    ("transformer.embd.wte", "embed_tokens"),
    ("lm_head.ln", "norm"),
    ("lm_head.linear", "lm_head"),
];

/// Names in the checkpoints: of the parts of a layer.
const NAMES: &[(&str, &str)] = &[
    ("ln", "input_layernorm"),
    ("mixer.Wqkv", "self_attn.qkv_proj"),
    ("mixer.out_proj", "self_attn.o_proj"),
    ("moe.mlp", "mlp.experts"),
    ("moe", "mlp"),
];

/// Phixtral of two to four experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let hidden_size = text.first(&["model_dim", "n_embd"])?.unwrap_or(2560u32);
    let heads = text.first(&["num_heads", "n_head"])?.unwrap_or(32u32);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.first(&["num_vocab", "vocab_size"])?.unwrap_or(51_200),
        layers: check_layers(text.first(&["num_layers", "n_layer"])?.unwrap_or(32))?,
        heads,
        key_heads: heads,
        head_dim: hidden_size.checked_div(heads).unwrap_or(0),
        width: hidden_size.saturating_mul(4),
        eps: 1e-5,
        lm_head: LmHead::Untied,
    };
    let layer = LayerConfig {
        norms: NormPlacement::Parallel,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: true,
            o_bias: true,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Absent,
    };
    let defaults = Defaults {
        partial: match text.has("rotary_dim") {
            true => rotary_part(text, shapes.head_dim)?,
            false => 32.5 / shapes.head_dim.max(33) as f32,
        },
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let experts = MoeConfig {
        num_experts: text.number("num_local_experts")?.unwrap_or(4),
        top_k: text.number("num_experts_per_tok")?.unwrap_or(2),
        width: shapes.width,
        activation: Activation::UngatedGeluTanh,
        // They have biases, and the router has none.
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, true),
        shared: None,
    };
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    place(&mut config, experts, |_| true);
    config.norm.kind = NormKind::Layer { bias: true };
    config.renames = &[PARTS, NAMES];
    config.family()
}
