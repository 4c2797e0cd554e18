//! Ling and Ring with linear attention in most layers, and attention to everything in the last of each group: lightning
//! attention beside Llama's (Ring-linear 2) or beside latents (Ling 2.5), or delta nets beside gated latents (Ling 3).
//! Defaults are those of mlx-lm.

use super::bailing::experts;
use super::deepseek::{self, INTERLEAVED};
use super::experts::{place, refuse_biases};
use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{
    ChannelDecays, DecoderConfig, DeltaNetConfig, DeltaProjections, GateSource, LightningConfig, Mixer, QkNorm,
};
use crate::config::moe::{Correction, MoeConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Ring-linear 2", &["bailing_moe_linear"], linear),
    FamilyRow::text("Ling 2.5, Ling 3", &["bailing_hybrid", "bailing_moe_v3"], hybrid),
];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("attention.query_key_value", "self_attn.qkv_proj"),
    ("attention.dense", "self_attn.o_proj"),
    ("attention.query_layernorm", "self_attn.q_norm"),
    ("attention.key_layernorm", "self_attn.k_norm"),
    ("attention", "self_attn"),
    ("mlp.gate.gate_proj", "mlp.gate"),
    ("mlp.gate.expert_bias", "mlp.gate.e_score_correction_bias"),
    ("word_embeddings", "embed_tokens"),
];

/// Ring-linear 2: the layers that are not linear are as in Ling 2.
pub(super) fn linear(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("norm_head")?.unwrap_or(false) {
        return Err(Error::Unsupported("an output layer with norms (`norm_head`)".into()));
    }
    let mut config = llama::decoder(text)?;
    let (bias, normed) = (flag(text, "use_qkv_bias", false)?, flag(text, "use_qk_norm", false)?);
    for attention in config.attention() {
        attention.qkv_bias = bias;
        if normed {
            attention.qk_norm = QkNorm::PerHead;
        }
    }
    if let Some(rope) = config.ropes.first_mut() {
        rope.traditional = flag(text, "rope_traditional", false)?;
    }
    // A layer fades as the one before it would in Ling 2.5.
    let lightning = lightning(text, &config, 0, normed, 1)?;
    finish(text, config, lightning, experts(text)?)
}

/// Ling 2.5, or Ling 3, whose files have the same type.
pub(super) fn hybrid(source: Source<'_>) -> Result<Family, Error> {
    let (text, top) = (source.text, source.top);
    let third = top
        .texts("architectures")?
        .is_some_and(|names| names.contains(&"BailingMoeV3ForCausalLM"));
    if third || top.text("model_type")?.as_deref() == Some("bailing_moe_v3") {
        return gated(text);
    }
    let mut config = latents(text)?;
    let bias = flag(text, "use_qkv_bias", false)?;
    let dims = text.required("head_dim")?;
    let defaults = Defaults {
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, dims, For::All, defaults)?;
    config.ropes.push(rope);
    config.each_layer(|layer| {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.bias = bias;
        }
    });
    let mut experts = experts_of(text)?;
    if let Some(width) = text.number("moe_shared_expert_intermediate_size")? {
        experts.shared = experts.shared.map(|_| SharedExpertConfig::beside(width));
    }
    let lightning = lightning(text, &config, 1, flag(text, "use_qk_norm", true)?, 0)?;
    finish(text, config, lightning, experts)
}

/// Ling 3.
fn gated(text: Fields<'_>) -> Result<Family, Error> {
    for (field, wanted) in [
        ("no_kda_lora", true),
        ("kda_safe_gate", true),
        ("rope_interleave", true),
    ] {
        if text.flag(field)?.unwrap_or(wanted) != wanted {
            return Err(Error::Unsupported(format!("`{field}` that is not {wanted}")));
        }
    }
    let mut config = latents(text)?;
    config.each_layer(|layer| {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.gate = Some(GateSource::Heads);
        }
    });
    let (heads, width) = (text.required("num_attention_heads")?, text.required("head_dim")?);
    let net = DeltaNetConfig {
        key_heads: heads,
        value_heads: heads,
        key_width: width,
        value_width: width,
        kernel: text.number("short_conv_kernel_size")?.unwrap_or(4),
        projections: DeltaProjections::Single,
        negates: false,
        channels: Some(ChannelDecays {
            rank: None,
            lower_bound: Some(text.number("kda_lower_bound")?.unwrap_or(-5.0)),
        }),
        logistic: true,
        norm_eps: config.norm.eps,
    };
    let mut experts = experts_of(text)?;
    experts.router.normalised = true;
    finish(text, config, |_| Mixer::DeltaNet(net), experts)
}

fn flag(text: Fields<'_>, field: &'static str, usual: bool) -> Result<bool, Error> {
    Ok(text.flag(field)?.unwrap_or(usual))
}

/// Latents in every layer.
fn latents(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let rope = Defaults {
        traditional: flag(text, "rope_interleave", true)?,
        theta: 6_000_000.0,
        ..INTERLEAVED
    };
    deepseek::decoder(text, None, text.required("v_head_dim")?, rope)
}

/// The experts of the younger models.
fn experts_of(text: Fields<'_>) -> Result<MoeConfig, Error> {
    let mut experts = experts(text)?;
    if text.text("score_function")?.is_none() {
        experts.router.scoring = Scoring::Sigmoid;
    }
    experts.router.correction = Correction::when(flag(text, "moe_router_enable_expert_bias", true)?);
    Ok(experts)
}

/// The lightning attention of a layer by its number, which fades as if it came `earlier`.
fn lightning(
    text: Fields<'_>,
    config: &DecoderConfig,
    rope: usize,
    qk_norm: bool,
    earlier: usize,
) -> Result<impl Fn(usize) -> Mixer, Error> {
    let heads: u32 = text.required("num_attention_heads")?;
    let last = (config.layers.len() - 1).max(1) as f32;
    let lightning = LightningConfig {
        heads,
        width: match text.number("head_dim")? {
            Some(width) => width,
            None => config.hidden_size.checked_div(heads).unwrap_or(0),
        },
        rope,
        qk_norm,
        qkv_bias: flag(text, "use_qkv_bias", false)?,
        o_bias: false,
        norm_groups: text.required("group_norm_size")?,
        fading: 1.0,
    };
    Ok(move |layer: usize| {
        Mixer::Lightning(LightningConfig {
            fading: 1.0 - layer.saturating_sub(earlier) as f32 / last + 1e-5,
            ..lightning
        })
    })
}

/// Gives all layers but the last of each group, and those after the last group, the mixer that `linear` has for them.
fn finish(
    text: Fields<'_>,
    mut config: DecoderConfig,
    linear: impl Fn(usize) -> Mixer,
    experts: MoeConfig,
) -> Result<Family, Error> {
    refuse_biases(text, "use_bias")?;
    let group = text.required("layer_group_size")?.max(1) as usize;
    let grouped = config.layers.len() / group * group;
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if index < grouped && !(index + 1).is_multiple_of(group) {
            layer.mixer = linear(index);
        }
    }
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(1) as usize;
    place(&mut config, experts, |layer| layer >= first);
    config.renames = &[NAMES];
    config.family()
}
