//! Plans of folders that have headers and no numbers.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde_json::{json, Map, Value};

use super::*;
use crate::config::Mode;

const BF16: &str = "BF16";

fn model(folder: &Path, config: &Value, tensors: &[(&str, &str, &[u64])]) {
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let (mut header, mut end) = (Map::new(), 0);
    for (name, dtype, shape) in tensors {
        let start = end;
        end += shape.iter().product::<u64>() * if *dtype == BF16 { 2 } else { 1 };
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]});
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = File::create(folder.join("model.safetensors")).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + end).unwrap();
}

fn config() -> Value {
    json!({
        "model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "num_experts": 2,
        "num_experts_per_tok": 1, "rms_norm_eps": 1e-6, "vocab_size": 128, "max_position_embeddings": 64,
        "tie_word_embeddings": true, "quantization_config": null, "_name_or_path": "x",
    })
}

fn plan(config: &Value, tensors: &[(&str, &str, &[u64])]) -> Result<Conversion> {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path(), config, tensors);
    Conversion::plan(folder.path(), &Recipe::new(Mode::Affine, None, None, None).unwrap())
}

#[test]
fn experts_are_stacked_and_what_drafts_or_is_the_embedding_is_left_out() {
    let (one, two) = (
        "model.layers.0.mlp.experts.0.up_proj.weight",
        "model.layers.0.mlp.experts.1.up_proj.weight",
    );
    let planned = plan(
        &config(),
        &[
            ("model.embed_tokens.weight", BF16, &[128, 64]),
            ("lm_head.weight", BF16, &[128, 64]),
            (two, BF16, &[64, 64]),
            (one, BF16, &[64, 64]),
            ("model.layers.0.mlp.gate.weight", BF16, &[2, 64]),
            ("model.layers.0.input_layernorm.weight", BF16, &[64]),
            ("model.layers.0.self_attn.rotary_emb.inv_freq", BF16, &[16]),
            ("model.layers.1.mlp.gate.weight", BF16, &[2, 64]),
        ],
    )
    .unwrap();
    let names: Vec<(&str, bool)> = planned
        .targets
        .iter()
        .map(|target| (target.name.as_str(), target.quantization.is_some()))
        .collect();
    assert_eq!(
        names,
        [
            ("model.embed_tokens.weight", true),
            ("model.layers.0.input_layernorm.weight", false),
            ("model.layers.0.mlp.gate.weight", true),
            ("model.layers.0.mlp.switch_mlp.up_proj.weight", true),
        ]
    );
    let stack = &planned.targets[3];
    assert_eq!((stack.shape.as_slice(), stack.pieces.len()), (&[2, 64, 64][..], 2));
    assert!(planned.config.get("_name_or_path").is_none());
    let four = json!({"group_size": 64, "bits": 4, "mode": "affine"});
    let mut named = four.clone();
    named["model.layers.0.mlp.gate"] = json!({"group_size": 64, "bits": 8, "mode": "affine"});
    assert_eq!(
        (&planned.config["quantization"], &planned.config["quantization_config"]),
        (&named, &named)
    );
}

#[test]
fn stacks_with_gaps_and_shapes_that_hold_nothing_are_refused() {
    let expert = |number: u64| format!("model.layers.0.mlp.experts.{number}.up_proj.weight");
    let (first, second, third) = (expert(0), expert(1), expert(2));
    let shape: &[u64] = &[64, 64];
    assert!(matches!(
        plan(&config(), &[(&first, BF16, shape), (&third, BF16, shape)]),
        Err(Error::Incomplete(what)) if what.contains("expert 1 of")
    ));
    for other in [&[64, 32][..], &[64, 64, 1]] {
        let found = plan(&config(), &[(&first, BF16, shape), (&second, BF16, other)]);
        assert!(matches!(found, Err(Error::Unsupported(_))), "{other:?}");
    }
    for joined in [&[2_147_483_647, 0, 64][..], &[63, 64], &[2, 63, 64]] {
        let found = plan(&config(), &[("model.layers.0.mlp.experts.gate_up_proj", BF16, joined)]);
        assert!(matches!(found, Err(Error::Unsupported(_))), "{joined:?}");
    }
}

#[test]
fn quantized_weights_are_told_by_config_and_by_tensors() {
    let matrix: &[u64] = &[64, 64];
    let mut quantized = config();
    quantized["quantization"] = json!({"group_size": 64, "bits": 4});
    for (config, name, dtype) in [
        (&quantized, "model.norm.weight", BF16),
        (&config(), "model.embed_tokens.scales", BF16),
        (&config(), "model.layers.0.mlp.up_proj.weight", "F8_E4M3"),
        (&config(), "model.layers.0.mlp.up_proj.weight_scale_inv", BF16),
    ] {
        let found = plan(config, &[(name, dtype, matrix)]);
        assert!(matches!(found, Err(Error::AlreadyQuantized(_))), "{name}: {found:?}");
    }
    let only_norms = plan(&config(), &[("model.norm.weight", BF16, &[64])]);
    assert!(matches!(only_norms, Err(Error::Recipe(_))));
}
