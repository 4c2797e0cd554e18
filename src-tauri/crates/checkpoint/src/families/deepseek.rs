//! DeepSeek V2 and V3 and those that share their shape: attention over latents, experts after the first layers. In V3.2
//! and GLM 5 an index chooses the positions that are looked at. V1 has the experts and Llama's attention.

use super::glm4_moe::feed_forwards;
use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, LayerConfig, Mixer, NormPlacement};
use crate::config::mla::{IndexerConfig, MlaConfig};
use crate::config::moe::{RouterConfig, Scoring};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text(
        "DeepSeek V2, V3 and R1, Kimi K2, JoyAI-LLM Flash",
        &["deepseek_v2", "deepseek_v3", "joyai_llm_flash", "kimi_k2"],
        deepseek,
    ),
    FamilyRow::text("DeepSeek MoE 16B", &["deepseek"], deepseek_v1),
    FamilyRow::text("DeepSeek V3.2", &["deepseek_v32"], deepseek_v32),
    FamilyRow::text("GLM 4.7 Flash", &["glm4_moe_lite"], glm4_moe_lite),
    FamilyRow::text("GLM 5", &["glm_moe_dsa"], glm_moe_dsa),
    FamilyRow::text("Youtu-LLM", &["youtu", "youtu_llm"], youtu),
    FamilyRow::text("Youtu-VL", &["youtu_vl"], youtu_vl),
];

/// The epsilon of the norms of the latents, whatever the config says about the others.
pub(super) const LATENT_EPS: f32 = 1e-6;

/// The epsilon of the norm of an index's keys.
const INDEX_EPS: f32 = 1e-5;

/// DeepSeek V2, V2 Lite, V3, R1 and Kimi K2.
pub(super) fn deepseek(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    decoder(text, Some(LATENT_EPS), text.required("v_head_dim")?, INTERLEAVED)?.family()
}

/// DeepSeek V1 with experts; defaults are those of the `configuration_deepseek.py` beside the weights.
pub(super) fn deepseek_v1(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    feed_forwards(text, &mut config)?;
    let normalised = text.flag("norm_topk_prob")?.unwrap_or(false);
    config.each_layer(|layer| {
        if let FeedForward::Moe(experts) = &mut layer.feed_forward {
            experts.router = RouterConfig::new(Scoring::Softmax, normalised);
        }
    });
    config.family()
}

/// Youtu-LLM: attention over latents and networks without experts.
pub(super) fn youtu(source: Source<'_>) -> Result<Family, Error> {
    with_latents(source.text, 1_600_000.0)
}

/// The text part of Youtu-VL. What it sees with is not read.
pub(super) fn youtu_vl(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text
        .number::<u32>("n_routed_experts")?
        .is_some_and(|experts| experts > 0)
    {
        return Err(Error::Unsupported("experts in Youtu-VL".into()));
    }
    with_latents(text, 500_000.0)
}

/// Attention over latents, whose rope has this base if the config has none, and networks without experts.
fn with_latents(text: Fields<'_>, theta: f32) -> Result<Family, Error> {
    let defaults = Defaults { theta, ..INTERLEAVED };
    let mut config = decoder(
        text,
        Some(LATENT_EPS),
        text.number("v_head_dim")?.unwrap_or(128),
        defaults,
    )?;
    let bias = text.flag("mlp_bias")?.unwrap_or(false);
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    if let Some(rope) = config.ropes.first_mut() {
        rope.traditional = text.flag("rope_interleave")?.unwrap_or(rope.traditional);
    }
    config.family()
}

/// DeepSeek V3.2, in whose index the halves of a head turn against each other.
pub(super) fn deepseek_v32(source: Source<'_>) -> Result<Family, Error> {
    indexed(source.text, false)
}

/// GLM 5, in whose index neighbors do.
pub(super) fn glm_moe_dsa(source: Source<'_>) -> Result<Family, Error> {
    indexed(source.text, true)
}

/// Models whose queries look at the positions that an index chooses.
fn indexed(text: Fields<'_>, traditional: bool) -> Result<Family, Error> {
    let mut config = decoder(text, Some(LATENT_EPS), text.required("v_head_dim")?, INTERLEAVED)?;
    let indexer = IndexerConfig {
        heads: text.number("index_n_heads")?.unwrap_or(64),
        head_dim: text.number("index_head_dim")?.unwrap_or(128),
        top_k: text.number("index_topk")?.unwrap_or(2048),
        rope: config.ropes.len(),
        turns_last: false,
        eps: INDEX_EPS,
        rms: false,
        first: 0,
        near: 0,
    };
    let traditional = text.flag("indexer_rope_interleave")?.unwrap_or(traditional);
    let rope = config.ropes.first().cloned();
    config.ropes.extend(rope.map(|rope| RopeConfig { traditional, ..rope }));
    config.each_layer(|layer| {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.indexer = Some(indexer);
        }
    });
    config.family()
}

/// GLM 4.7 Flash.
pub(super) fn glm4_moe_lite(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    decoder(text, None, text.required("v_head_dim")?, INTERLEAVED)?.family()
}

/// The rope of the family.
pub(super) const INTERLEAVED: Defaults = Defaults {
    theta: 10_000.0,
    traditional: true,
    partial: 1.0,
    whole: true,
};

/// Attention over latents; `eps` is that of their norms if it is not that of all, and `rope` has the rope's defaults.
pub(super) fn decoder(
    text: Fields<'_>,
    eps: Option<f32>,
    v_head_dim: u32,
    rope: Defaults,
) -> Result<DecoderConfig, Error> {
    let mut config = shaped(text, Shapes::parse(text)?, eps, v_head_dim, rope)?;
    feed_forwards(text, &mut config)?;
    Ok(config)
}

/// The same with these shapes and without experts.
pub(super) fn shaped(
    text: Fields<'_>,
    shapes: Shapes,
    eps: Option<f32>,
    v_head_dim: u32,
    rope: Defaults,
) -> Result<DecoderConfig, Error> {
    let (qk_nope_head_dim, qk_rope_head_dim) = (text.required("qk_nope_head_dim")?, text.required("qk_rope_head_dim")?);
    // The rope would call it a head's width.
    if qk_rope_head_dim == 0 || !qk_rope_head_dim.is_multiple_of(2) {
        let reason = format!("{qk_rope_head_dim} is not an even number above 0");
        return unusable("qk_rope_head_dim", reason);
    }
    let latent = MlaConfig {
        heads: shapes.heads,
        q_lora_rank: text.number("q_lora_rank")?,
        kv_lora_rank: text.required("kv_lora_rank")?,
        qk_nope_head_dim,
        qk_rope_head_dim,
        v_head_dim,
        rope: Some(0),
        scale: (qk_nope_head_dim as f32 + qk_rope_head_dim as f32).powf(-0.5) * loudness(text)?,
        bias: text.flag("attention_bias")?.unwrap_or(false),
        query_scaling: None,
        indexer: None,
        follows: false,
        sinks: false,
        gate: None,
        latent_factor: 1.0,
        eps: eps.unwrap_or(shapes.eps),
    };
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Mla(latent),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let rope = RopeConfig::parse(text, qk_rope_head_dim, For::All, rope)?;
    Ok(shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]))
}

/// The factor of all scores for a stretched context (`mscale_all_dim`).
fn loudness(text: Fields<'_>) -> Result<f32, Error> {
    let Some(scaling) = text.object("rope_scaling")?.or(text.object("rope_parameters")?) else {
        return Ok(1.0);
    };
    Ok(
        match (
            scaling.number::<f32>("mscale_all_dim")?,
            scaling.number::<f32>("factor")?,
        ) {
            (Some(all), Some(factor)) if all != 0.0 && factor > 1.0 => (0.1 * all * factor.ln() + 1.0).powi(2),
            _ => 1.0,
        },
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::config::moe::{Correction, GroupScore};
    use crate::ModelConfig;

    /// DeepSeek V2 Lite.
    fn parse(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
            "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_attention_heads": 16, "num_key_value_heads": 16,
            "vocab_size": 102400, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
            "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
            "scoring_func": "softmax", "norm_topk_prob": false, "routed_scaling_factor": 1.0, "rope_theta": 10000,
            "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
                             "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096}});
        config
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn the_lite_model_scales_its_scores_by_the_stretched_context() {
        let config = parse(json!({})).unwrap();
        let Mixer::Mla(latent) = &config.layers[0].mixer else {
            panic!("no latents")
        };
        let loudness = 0.1 * 0.707 * 40f32.ln() + 1.0;
        assert!((latent.scale - loudness * loudness / 192f32.sqrt()).abs() < 1e-6);
        assert_eq!(
            (
                latent.q_lora_rank,
                config.ropes[0].amplitude,
                config.ropes[0].traditional
            ),
            (None, 1.0, true)
        );
        let feed_forwards: Vec<bool> = config
            .layers
            .iter()
            .map(|layer| matches!(layer.feed_forward, FeedForward::Moe(_)))
            .collect();
        assert!(!feed_forwards[0] && feed_forwards[1..].iter().all(|experts| *experts));
    }

    #[test]
    fn the_large_models_choose_from_groups() {
        let router = |changes: Value| match parse(changes).unwrap().layers[5].feed_forward {
            FeedForward::Moe(experts) => experts.router,
            FeedForward::Dense(_)
            | FeedForward::Plain(_)
            | FeedForward::Linear(_)
            | FeedForward::LatentMoe(_)
            | FeedForward::ModalMoe(_)
            | FeedForward::Shortcut(_)
            | FeedForward::Absent => {
                panic!("no experts")
            }
        };
        let v2 = router(json!({"topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3}));
        assert_eq!(
            (v2.scoring, v2.correction, v2.groups.unwrap().score),
            (Scoring::Softmax, Correction::None, GroupScore::Best)
        );
        let v3 = json!({"model_type": "deepseek_v3", "topk_method": "noaux_tc", "scoring_func": "sigmoid", "n_group": 8, "topk_group": 4});
        let v3 = router(v3);
        assert_eq!(
            (v3.scoring, v3.correction, v3.groups.unwrap().score),
            (Scoring::Sigmoid, Correction::Always, GroupScore::TwoBest)
        );
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (field, value) in [
            ("kv_lora_rank", json!(0)),
            ("q_lora_rank", json!(0)),
            ("q_lora_rank", json!(u32::MAX)),
            ("qk_rope_head_dim", json!(63)),
            ("qk_nope_head_dim", json!(u32::MAX)),
            ("v_head_dim", json!(0)),
        ] {
            let error = parse(json!({field: value.clone()})).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
    }
}
