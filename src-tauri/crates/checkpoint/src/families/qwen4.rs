//! Qwen 4 as it was first shown: the layers of Qwen 3.5 with experts between several streams, an index that chooses the
//! blocks of positions that attention looks at, and tables of short runs of tokens. Defaults are those of mlx-vlm's
//! `TextConfig`.

use super::qwen;
use super::qwen_hybrid;
use super::qwen_moe::{experts, place_experts, SHARED};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{
    BetweenStreams, DecoderConfig, DeltaProjections, HyperConfig, LayerRunsConfig, MeanIndexConfig, Mixer,
    NormPlacement,
};
use crate::config::limits::check_nonzero;
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision("Qwen 4 Exp", &["qwen4_exp"], parse, qwen::VISION)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    SHARED[0],
    ("ple.ple_embedding.ngram_embedding.shards", "ple.tables"),
    ("ple.ple_embedding.ngram_embedding", "ple.tables"),
];

/// Layers by their names in `layer_types`, true for those that are attention.
const KINDS: [(&str, bool); 3] = [
    ("full_attention", true),
    ("qwen_sparse_attention", true),
    ("linear_attention", false),
];

/// Qwen 4 Exp.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = qwen_hybrid::decoder(text, 0, DeltaProjections::Apart, 10_000_000.0, &KINDS)?;
    place_experts(
        &mut config,
        text,
        experts(text, text.flag("norm_topk_prob")?.unwrap_or(true))?,
    )?;
    let logistic = match text.text("output_gate_type")?.as_deref() {
        None | Some("sigmoid") => true,
        Some("silu") => false,
        Some(other) => return Err(Error::Unsupported(format!("gates of the kind `{other}`"))),
    };
    let index = index(text)?;
    for layer in &mut config.layers {
        layer.norms = NormPlacement::Absent;
        match &mut layer.mixer {
            Mixer::Attention(attention) => attention.mean_index = Some(index),
            Mixer::DeltaNet(net) => net.logistic = logistic,
            _ => {}
        }
    }
    // An index turns as attention does, with narrower heads.
    config.ropes.extend(config.ropes.first().cloned());
    config.norm.offset = true;
    config.norm_offset_in_original = None;
    config.hyper = Some(HyperConfig {
        streams: text.number("hc_count")?.unwrap_or(4),
        eps: config.norm.eps,
        between: BetweenStreams::Gated {
            rank: text.number("hc_lowrank")?.unwrap_or(320),
        },
        head: false,
    });
    config.layer_runs = runs(source, &config)?;
    config.renames = &[NAMES];
    config.family()
}

/// The index of layers with attention.
fn index(text: Fields<'_>) -> Result<MeanIndexConfig, Error> {
    match text.number("indexer_kv_heads")?.unwrap_or(1u32) {
        1 => {}
        other => return Err(Error::Unsupported(format!("an index with {other} keys for a position"))),
    }
    let block = text.number("indexer_compress_ratio")?.unwrap_or(4u32);
    let budget = text.number("indexer_budget")?.unwrap_or(2048u32);
    check_nonzero("indexer_compress_ratio", block)?;
    if !budget.is_multiple_of(block) {
        return unusable("indexer_budget", format!("{budget} positions are no blocks of {block}"));
    }
    Ok(MeanIndexConfig {
        heads: text.number("indexer_n_heads")?.unwrap_or(4),
        head_dim: text.number("indexer_head_dim")?.unwrap_or(128),
        block,
        top_k: budget / block,
        rope: 1,
    })
}

/// The tables of short runs, if layers have some.
fn runs(source: Source<'_>, config: &DecoderConfig) -> Result<Option<LayerRunsConfig>, Error> {
    const LAYERS: &str = "ple_layer_ids";
    const END: &str = "eos_token_id";
    let text = source.text;
    if let Some(storage) = text.object("ple_storage")? {
        if storage.count() > 0 {
            return Err(Error::Unsupported("tables of runs in files of their own".into()));
        }
    }
    let mut layers: Vec<u32> = Vec::new();
    for number in text.numbers(LAYERS)?.unwrap_or_default() {
        let layer = number as u32;
        let mixer = layer.checked_sub(1).and_then(|layer| config.layers.get(layer as usize));
        match mixer.map(|layer| &layer.mixer) {
            Some(Mixer::DeltaNet(_)) => layers.push(layer - 1),
            _ => return unusable(LAYERS, format!("layer {number} has no state that could carry them")),
        }
    }
    layers.sort_unstable();
    layers.dedup();
    if layers.is_empty() {
        return Ok(None);
    }
    let ends = |fields: Fields<'_>| -> Result<Option<f32>, Error> {
        Ok(fields.numbers(END)?.and_then(|ends| ends.first().copied()))
    };
    let end = match ends(text)? {
        Some(end) => Some(end),
        None => ends(source.top)?,
    };
    let end = end.filter(|end| *end >= 0.0).ok_or(Error::MissingField(END))?;
    Ok(Some(LayerRunsConfig {
        layers,
        width: text.number("ple_embed_dim")?.unwrap_or(config.hidden_size),
        longest: text.number("ngram_size")?.unwrap_or(3),
        heads: text.number("heads_per_ngram")?.unwrap_or(8),
        rows: text.number("ngram_vocab_size_base")?.unwrap_or(20_000_000),
        multiple: text.number("make_ngram_vocab_size_divisible_by")?.unwrap_or(128),
        parts: text.number("split_ngram_parts")?.unwrap_or(128),
        seed: text.number::<u32>("seed")?.unwrap_or(1234).into(),
        kernel: text.number("ple_conv_kernel_size")?.unwrap_or(4),
        end: end as u32,
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    fn parse(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut text = json!({"hidden_size": 2560, "num_hidden_layers": 8, "num_attention_heads": 16,
            "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320, "linear_num_key_heads": 16,
            "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4, "num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "rms_norm_eps": 1e-6, "ple_layer_ids": [2, 1], "eos_token_id": 7,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25,
                                "mrope_section": [11, 11, 10], "mrope_interleaved": true}});
        text[field] = value;
        let config = json!({"model_type": "qwen4_exp", "text_config": text}).to_string();
        match ModelConfig::parse(&config)?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn defaults_are_those_of_the_published_config() {
        let config = parse("attention_bias", json!(false)).unwrap();
        let runs = config.layer_runs.as_ref().unwrap();
        assert_eq!((runs.layers.as_slice(), runs.width, runs.end), (&[0, 1][..], 2560, 7));
        assert_eq!(runs.tables(0)[0], 20_000_003);
        let index = config.layers[3].mixer.attention().unwrap().mean_index.unwrap();
        assert_eq!((index.top_k, index.heads, config.ropes[1].dims), (512, 4, 64));
    }

    #[test]
    fn impossible_numbers_are_refused_by_name() {
        for (field, value) in [
            ("indexer_kv_heads", json!(2)),
            ("indexer_budget", json!(2047)),
            ("indexer_compress_ratio", json!(0)),
            ("indexer_n_heads", json!(0)),
            ("indexer_head_dim", json!(32)),
            ("hc_count", json!(1)),
            ("hc_lowrank", json!(0)),
            ("ple_layer_ids", json!([4])),
            ("ple_layer_ids", json!([0])),
            ("ple_layer_ids", json!([9])),
            ("ple_embed_dim", json!(2561)),
            ("ngram_size", json!(1)),
            ("heads_per_ngram", json!(0)),
            ("split_ngram_parts", json!(0)),
            ("ngram_vocab_size_base", json!(u32::MAX)),
            ("make_ngram_vocab_size_divisible_by", json!(0)),
            ("eos_token_id", json!(null)),
            ("output_gate_type", json!("tanh")),
        ] {
            let error = parse(field, value.clone()).unwrap_err().to_string();
            let named = match field {
                "indexer_kv_heads" => "2 keys",
                "output_gate_type" => "tanh",
                "hc_count" => "hc_mult",
                field => field,
            };
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
