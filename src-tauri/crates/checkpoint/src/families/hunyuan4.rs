//! Hunyuan 4: latents as in DeepSeek V3.2, of which some layers look at what the index of an earlier one chose, with a
//! gate for what the heads found and sinks; streams that keep what they have. Defaults are those of transformers'
//! `HYV4Config`.

use super::deepseek::{self, LATENT_EPS};
use super::experts::{place, sparse_layers};
use super::glm4_moe;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{Activation, BetweenStreams, GateSource, HyperConfig, Mixer};
use crate::config::mla::IndexerConfig;
use crate::config::moe::SharedExpertConfig;
use crate::config::rope::Defaults;
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Hunyuan 4", &["hy_v4"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("hc_attn_layer.hc_pre", "attn_hc"),
    ("hc_mlp_layer.hc_pre", "ffn_hc"),
    ("self_attn.linear_gate", "self_attn.g_proj"),
    ("self_attn.learnable_sink_param", "self_attn.sinks"),
];

/// The rope of the family, in which halves turn against each other.
const ROPE: Defaults = Defaults {
    theta: 10_000_000.0,
    traditional: false,
    partial: 1.0,
    whole: true,
};

/// Hunyuan 4.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut shapes = Shapes::parse(text)?;
    shapes.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let (layers, eps) = (shapes.layers, shapes.eps);
    let mut config = deepseek::shaped(text, shapes, Some(LATENT_EPS), text.required("v_head_dim")?, ROPE)?;
    let indexer = IndexerConfig {
        heads: text.number("index_n_heads")?.unwrap_or(16),
        head_dim: text.number("index_head_dim")?.unwrap_or(128),
        top_k: text.number("index_topk")?.unwrap_or(2048),
        rope: 0,
        turns_last: true,
        eps,
        rms: false,
        first: 0,
        near: 0,
    };
    let own = indexes(text, layers)?;
    for (layer, own) in config.layers.iter_mut().zip(own) {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.indexer = own.then_some(indexer);
            latent.follows = !own;
            latent.sinks = true;
            latent.gate = Some(GateSource::Numbers);
        }
    }
    feed_forwards(text, &mut config, layers)?;
    config.hyper = Some(HyperConfig {
        streams: text.number("hc_mult")?.unwrap_or(4),
        eps: text.number("hc_eps")?.unwrap_or(1e-6),
        between: BetweenStreams::Kept {
            magnitude: text.number("hc_magnitude")?.unwrap_or(2.0),
        },
        head: true,
    });
    config.renames = &[NAMES];
    config.family()
}

/// Which layers have an index of their own; the first one has.
fn indexes(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    const FIELD: &str = "indexer_types";
    let listed = text.kinds(FIELD, layers, &[("full", true), ("shared", false)])?;
    let own = listed.unwrap_or_else(|| (0..layers).map(|layer| layer == 0 || layer % 4 == 1).collect());
    match own.first() {
        Some(false) => unusable(FIELD, "the first layer has nothing to share"),
        Some(true) | None => Ok(own),
    }
}

/// Experts after the first layer, whose gates are clipped; the network beside them is as all others.
fn feed_forwards(text: Fields<'_>, config: &mut crate::DecoderConfig, layers: u32) -> Result<(), Error> {
    let mut experts = glm4_moe::experts(text)?;
    let limit = text.number::<f32>("swiglu_limit")?.unwrap_or(10.0);
    if limit > 0.0 {
        experts.activation = Activation::ClampedSilu { limit };
    }
    experts.router.factor = text.number("routed_scaling_factor")?.unwrap_or(2.827);
    if text.number::<u32>("n_shared_experts")?.is_none() {
        experts.shared = Some(SharedExpertConfig::beside(experts.width));
    }
    match sparse_layers(text, layers)? {
        Some(sparse) => place(config, experts, |layer| sparse[layer]),
        None => {
            let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(1) as usize;
            place(config, experts, |layer| layer >= first);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::config::decoder::FeedForward;
    use crate::{DecoderConfig, ModelConfig};

    fn parse(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "hy_v4", "hidden_size": 6144, "num_hidden_layers": 78, "vocab_size": 120832,
            "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 64, "q_lora_rank": 2048,
            "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "index_n_heads": 32,
            "n_routed_experts": 256, "num_experts_per_tok": 8});
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
    fn every_fourth_layer_has_an_index_that_the_next_three_follow() {
        let config = parse(json!({})).unwrap();
        let own = |layer: usize| match &config.layers[layer].mixer {
            Mixer::Mla(latent) => {
                assert_eq!(latent.indexer.is_some(), !latent.follows);
                latent.indexer.is_some()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!((0..10).filter(|layer| own(*layer)).collect::<Vec<_>>(), [0, 1, 5, 9]);
        let FeedForward::Moe(experts) = config.layers[1].feed_forward else {
            panic!("no experts")
        };
        assert_eq!(experts.activation, Activation::ClampedSilu { limit: 10.0 });
        assert_eq!((experts.router.factor, experts.shared.unwrap().width), (2.827, 2048));
        assert!(!config.ropes[0].traditional && matches!(config.layers[0].feed_forward, FeedForward::Dense(_)));
    }

    #[test]
    fn impossible_streams_and_indexes_are_refused_by_name() {
        for (field, value) in [
            ("hc_mult", json!(1)),
            ("hc_mult", json!(17)),
            ("hc_magnitude", json!(0.0)),
            ("hc_eps", json!(-1.0)),
            ("indexer_types", json!(["full", "shared"])),
            ("indexer_types", json!(vec!["shared"; 78])),
            ("index_topk", json!(0)),
            ("index_head_dim", json!(32)),
        ] {
            let error = parse(json!({field: value.clone()})).unwrap_err().to_string();
            // The rope says what of an index's head would turn.
            let named = error.contains(field) || (field == "index_head_dim" && error.contains("qk_rope_head_dim"));
            assert!(named, "{field} {value}: {error}");
        }
    }
}
