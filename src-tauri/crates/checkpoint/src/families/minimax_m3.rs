//! MiniMax M3, its text part: norms of each head, gates clipped as in gpt-oss, experts after the first layers, and an
//! index that chooses the blocks of positions that a query looks at. Defaults are those of transformers'
//! `MiniMaxM3VLTextConfig`.

use super::experts::{place, scoring, sparse_layers};
use super::row::FamilyRow;
use super::shapes::{rotary_part, Shapes};
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, BlockIndexConfig, FeedForward, LayerConfig, Mixer, NormPlacement, QkNorm,
};
use crate::config::moe::{Balance, Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family. Published files have the second type; what they see is not read.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("MiniMax M3", &["minimax_m3", "minimax_m3_vl"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    (
        "block_sparse_moe.e_score_correction_bias",
        "mlp.gate.e_score_correction_bias",
    ),
    ("block_sparse_moe", "mlp"),
];

/// The slope and the limit that [`Activation::ClippedSilu`] has, and what it adds.
const GATE: [(&str, f32); 3] = [("swiglu_alpha", 1.702), ("swiglu_limit", 7.0), ("swiglu_beta", 1.0)];

/// MiniMax M3.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_unknown(text)?;
    let shapes = Shapes::with_width(text, text.number("dense_intermediate_size")?.unwrap_or(12_288))?;
    let normed = text.flag("use_qk_norm")?.unwrap_or(true);
    let rope = rope(text, shapes.head_dim)?;
    let attention = AttentionConfig {
        qk_norm: if normed { QkNorm::PerHead } else { QkNorm::None },
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let index = index(text)?;
    let sparse = indexed_layers(text, shapes.layers)?;
    let layers = sparse.into_iter().map(|sparse| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            block_index: sparse.then_some(index),
            ..attention.clone()
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::ClippedSilu),
    });
    let mut config = shapes.decoder(vec![rope.clone(), rope], layers.collect());
    let experts = experts(text)?;
    let with_experts = match sparse_layers(text, shapes.layers)? {
        Some(layers) => Some(layers),
        None => text.flags("moe_layer_freq", shapes.layers)?,
    };
    place(&mut config, experts, |layer| {
        with_experts.as_ref().is_none_or(|layers| layers[layer])
    });
    config.norm.offset = text.flag("use_gemma_norm")?.unwrap_or(true);
    config.renames = &[NAMES];
    config.family()
}

/// Refuses what no published model has, by its name.
fn refuse_unknown(text: Fields<'_>) -> Result<(), Error> {
    match text.text("hidden_act")?.as_deref() {
        // Transformers writes the second one, and means the same.
        None | Some("swigluoai" | "silu") => {}
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
    for (field, known) in GATE {
        if let Some(other) = text.number::<f32>(field)?.filter(|number| *number != known) {
            return Err(Error::Unsupported(format!("gates with a `{field}` of {other}")));
        }
    }
    match text.text("qk_norm_type")?.as_deref() {
        None | Some("per_head") => {}
        Some(other) => return Err(Error::Unsupported(format!("norms of queries of the kind `{other}`"))),
    }
    match text.flag("attention_output_gate")? {
        Some(true) => Err(Error::Unsupported("gates of what the heads found".into())),
        Some(false) | None => Ok(()),
    }
}

/// The positions; a part of each head turns.
fn rope(text: Fields<'_>, head_dim: u32) -> Result<RopeConfig, Error> {
    const FIELD: &str = "rotary_dim";
    let turning = text.number::<u32>(FIELD)?;
    let partial = match turning {
        Some(_) => rotary_part(text, head_dim)?,
        None => 0.5,
    };
    let defaults = Defaults {
        partial,
        ..Defaults::new(5_000_000.0)
    };
    let rope = RopeConfig::parse(text, head_dim, For::All, defaults)?;
    match turning {
        Some(turning) if turning != rope.dims => unusable(
            FIELD,
            format!("{turning} numbers turn by it, and {} by the rope", rope.dims),
        ),
        Some(_) | None => Ok(rope),
    }
}

/// The index of the layers that have one.
fn index(text: Fields<'_>) -> Result<BlockIndexConfig, Error> {
    let nested = text.object("sparse_attention_config")?;
    if let Some(nested) = nested {
        if nested.number::<u32>("sparse_init_block")?.unwrap_or(0) != 0 {
            return Err(Error::Unsupported("first blocks that are always looked at".into()));
        }
        match nested.text("sparse_score_type")?.as_deref() {
            None | Some("max") => {}
            Some(other) => return Err(Error::Unsupported(format!("blocks scored by `{other}`"))),
        }
    }
    let number = |old: &'static str, flat: &'static str, usual: u32| -> Result<u32, Error> {
        let own = nested.map(|nested| nested.number(old)).transpose()?.flatten();
        Ok(own.or(text.number(flat)?).unwrap_or(usual))
    };
    Ok(BlockIndexConfig {
        heads: number("sparse_num_index_heads", "index_n_heads", 4)?,
        head_dim: number("sparse_index_dim", "index_head_dim", 128)?,
        block: number("sparse_block_size", "index_block_size", 128)?,
        top_k: number("sparse_topk_blocks", "index_topk_blocks", 16)?,
        local: number("sparse_local_block", "index_local_blocks", 1)?,
        rope: 1,
    })
}

/// Which layers have an index.
fn indexed_layers(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    const KINDS: [(&str, bool); 2] = [("full_attention", false), ("minimax_m3_sparse", true)];
    let none = vec![false; layers as usize];
    let nested = text.object("sparse_attention_config")?;
    if nested.map(|nested| nested.flag("use_sparse_attention")).transpose()? == Some(Some(false)) {
        return Ok(none);
    }
    if let Some(kinds) = text.layer_types(layers, &KINDS)? {
        return Ok(kinds);
    }
    let Some(nested) = nested else { return Ok(none) };
    let Some(sparse) = nested.flags("sparse_attention_freq", layers)? else {
        return Ok(none);
    };
    // An index that is not disabled there adds values of its own.
    match nested.flags("sparse_disable_index_value", layers)? {
        Some(disabled)
            if sparse
                .iter()
                .zip(&disabled)
                .any(|(sparse, disabled)| *sparse && !disabled) =>
        {
            Err(Error::Unsupported("an index with values".into()))
        }
        Some(_) | None => Ok(sparse),
    }
}

fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    let scoring = scoring(text, "scoring_func", Scoring::Sigmoid)?;
    if scoring != Scoring::Sigmoid {
        return Err(Error::Unsupported("experts that are not scored by `sigmoid`".into()));
    }
    let shared = match text.number::<u32>("n_shared_experts")?.unwrap_or(1) {
        0 => None,
        1 => Some(SharedExpertConfig {
            width: text.number("shared_intermediate_size")?.unwrap_or(3072),
            activation: Activation::ClippedSilu,
            balance: Balance::Sum,
        }),
        other => return Err(Error::Unsupported(format!("{other} networks beside the experts"))),
    };
    Ok(MoeConfig {
        num_experts: text.number("num_local_experts")?.unwrap_or(128),
        top_k: text.number("num_experts_per_tok")?.unwrap_or(4),
        width: text.required("intermediate_size")?,
        activation: Activation::ClippedSilu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(2.0),
            correction: Correction::when(text.flag("use_routing_bias")?.unwrap_or(true)),
            ..RouterConfig::new(scoring, true)
        },
        shared,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::{DecoderConfig, ModelConfig};

    /// MiniMax M3 as published.
    fn parse(changes: Value, of_index: Value) -> Result<Box<DecoderConfig>, Error> {
        let frequencies: Vec<u32> = (0..60).map(|layer| u32::from(layer >= 3)).collect();
        let mut text = json!({"model_type": "minimax_m3_vl_text", "hidden_size": 6144, "intermediate_size": 3072,
            "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "rotary_dim": 64,
            "vocab_size": 200064, "rope_theta": 5000000, "hidden_act": "swigluoai", "moe_layer_freq": frequencies,
            "num_local_experts": 128, "num_experts_per_tok": 4, "sparse_attention_config": {
                "use_sparse_attention": true, "sparse_index_dim": 128, "sparse_num_index_heads": 4,
                "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_local_block": 1,
                "sparse_attention_freq": frequencies, "sparse_disable_index_value": frequencies}});
        let extend = |to: &mut Value, changes: &Value| {
            to.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        };
        extend(&mut text, &changes);
        extend(&mut text["sparse_attention_config"], &of_index);
        let config = json!({"model_type": "minimax_m3_vl", "text_config": text});
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    fn index_of(config: &DecoderConfig, layer: usize) -> Option<BlockIndexConfig> {
        config.layers[layer].mixer.attention().unwrap().block_index
    }

    #[test]
    fn the_layers_after_the_third_have_an_index_and_experts() {
        let config = parse(json!({}), json!({})).unwrap();
        let has = |layer: usize| {
            let experts = matches!(config.layers[layer].feed_forward, FeedForward::Moe(_));
            (index_of(&config, layer).is_some(), experts)
        };
        assert_eq!(
            [has(0), has(2), has(3), has(59)],
            [(false, false), (false, false), (true, true), (true, true)]
        );
        assert_eq!((config.ropes[0].dims, config.norm.offset), (64, true));
        let dense = parse(json!({}), json!({"use_sparse_attention": false})).unwrap();
        assert!((0..60).all(|layer| index_of(&dense, layer).is_none()));
    }

    #[test]
    fn impossible_indexes_and_those_of_other_kinds_are_refused_by_name() {
        for (field, value) in [
            ("sparse_num_index_heads", json!(3)),
            ("sparse_num_index_heads", json!(0)),
            ("sparse_index_dim", json!(63)),
            ("sparse_index_dim", json!(32)),
            ("sparse_block_size", json!(0)),
            ("sparse_topk_blocks", json!(u32::MAX)),
            ("sparse_local_block", json!(0)),
            ("sparse_local_block", json!(16)),
            ("sparse_attention_freq", json!([1, 0])),
        ] {
            let error = parse(json!({}), json!({field: value.clone()})).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
        for (changes, of_index, named) in [
            (json!({}), json!({"sparse_init_block": 1}), "first blocks"),
            (json!({}), json!({"sparse_score_type": "lse"}), "lse"),
            (json!({}), json!({"sparse_disable_index_value": vec![0; 60]}), "values"),
            (json!({"swiglu_limit": 5.0}), json!({}), "swiglu_limit"),
            (json!({"hidden_act": "relu"}), json!({}), "relu"),
            (json!({"scoring_func": "softmax"}), json!({}), "sigmoid"),
            (json!({"n_shared_experts": 2}), json!({}), "2 networks"),
            (
                json!({"rope_parameters": {"partial_rotary_factor": 0.25}}),
                json!({}),
                "rotary_dim",
            ),
        ] {
            let error = parse(changes.clone(), of_index.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{changes} {of_index}: {error}");
        }
    }
}
