//! Kimi Linear: delta nets with a decay for each number of a key in most layers, attention over latents without
//! positions in the others, experts (arXiv:2510.26692).

use super::deepseek::{self, INTERLEAVED};
use super::experts::{place, scoring};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, ChannelDecays, DeltaNetConfig, DeltaProjections, Mixer};
use crate::config::moe::{Correction, ExpertGroups, GroupScore, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Kimi Linear", &["kimi_linear"], parse)];

/// Names in the checkpoints, and in mlx-lm's.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.q_conv.conv", "self_attn.q_conv1d"),
    ("self_attn.k_conv.conv", "self_attn.k_conv1d"),
    ("self_attn.v_conv.conv", "self_attn.v_conv1d"),
    ("block_sparse_moe", "mlp"),
    ("mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),
];

/// Kimi Linear.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    const LINEAR: &str = "linear_attn_config";
    let text = source.text;
    if !text.flag("mla_use_nope")?.unwrap_or(false) {
        return Err(Error::Unsupported("latents that turn (`mla_use_nope`)".into()));
    }
    let mut config = deepseek::decoder(text, None, text.required("v_head_dim")?, INTERLEAVED)?;
    let linear = text.object(LINEAR)?.ok_or(Error::MissingField(LINEAR))?;
    let (heads, width) = (linear.required("num_heads")?, linear.required("head_dim")?);
    let net = DeltaNetConfig {
        key_heads: heads,
        value_heads: heads,
        key_width: width,
        value_width: width,
        kernel: linear.number("short_conv_kernel_size")?.unwrap_or(4),
        projections: DeltaProjections::Single,
        negates: false,
        channels: Some(ChannelDecays {
            rank: Some(width),
            lower_bound: None,
        }),
        logistic: true,
        norm_eps: config.norm.eps,
    };
    let numbers = linear.numbers("kda_layers")?.ok_or(Error::MissingField("kda_layers"))?;
    config.ropes.clear();
    for (number, layer) in (1u32..).zip(&mut config.layers) {
        if numbers.contains(&(number as f32)) {
            layer.mixer = Mixer::DeltaNet(net);
        } else if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.rope = None;
        }
    }
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    let step = text.number::<u32>("moe_layer_freq")?.unwrap_or(1).max(1) as usize;
    if text.number::<u32>("num_experts")?.is_some_and(|count| count > 0) {
        place(&mut config, experts(text)?, |layer| {
            layer >= first && layer.is_multiple_of(step)
        });
    }
    config.renames = &[NAMES];
    config.family()
}

fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    let (top_k, width) = (
        text.number("num_experts_per_token")?.unwrap_or(1),
        text.required("moe_intermediate_size")?,
    );
    let groups = text.number("num_expert_group")?.filter(|count| *count > 1);
    let best = text.number("topk_group")?.unwrap_or(1);
    let shared = text.number::<u32>("num_shared_experts")?.filter(|count| *count > 0);
    Ok(MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::Always,
            groups: groups.map(|count| ExpertGroups {
                count,
                top_k: best,
                score: GroupScore::TwoBest,
            }),
            ..RouterConfig::new(
                scoring(text, "moe_router_activation_func", Scoring::Sigmoid)?,
                top_k > 1 && text.flag("moe_renormalize")?.unwrap_or(true),
            )
        },
        shared: shared.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    })
}
