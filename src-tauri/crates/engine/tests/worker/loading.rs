//! Whatever the form of a model's files, the same numbers give the same model; and what cannot run is refused by name.

use std::path::Path;

use crate::common::files::{copy_words, edit_config, read_entries, write_entries, Entry};
use crate::common::{pebble_dir, source};
use engine::{bench_prompt, MlxEngine};
use protocol::ErrorCode;
use serde_json::json;

/// Pebble's tensors under names made of its own; `None` leaves one out.
fn renamed(name: impl Fn(&str) -> String) -> Vec<Entry> {
    let entries = read_entries(&pebble_dir().join("model.safetensors"));
    entries
        .into_iter()
        .map(|entry| Entry {
            name: name(&entry.name),
            ..entry
        })
        .collect()
}

/// Pebble's logits with its weights in other files.
fn logits_of(engine: &MlxEngine, write: impl FnOnce(&Path)) -> protocol::Result<Vec<Vec<f32>>> {
    let folder = tempfile::tempdir().unwrap();
    copy_words(&pebble_dir(), folder.path());
    write(folder.path());
    engine.logits(source(folder.path()), bench_prompt(20, 4096), true, None)
}

fn write_shards(folder: &Path, entries: &[Entry], index: bool) {
    let mut places = serde_json::Map::new();
    for shard in 0..3 {
        let file = format!("model-{:05}-of-00003.safetensors", shard + 1);
        let part: Vec<Entry> = entries.iter().skip(shard).step_by(3).cloned().collect();
        places.extend(part.iter().map(|entry| (entry.name.clone(), json!(file))));
        write_entries(&folder.join(file), &part);
    }
    if index {
        let index = json!({"metadata": {}, "weight_map": places}).to_string();
        std::fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
    }
}

fn single(folder: &Path, entries: &[Entry]) {
    write_entries(&folder.join("model.safetensors"), entries);
}

#[test]
fn every_form_of_the_same_weights_is_the_same_model() {
    let engine = MlxEngine::start();
    let expected = engine
        .logits(source(&pebble_dir()), bench_prompt(20, 4096), true, None)
        .unwrap();
    let assert_same = |form: &str, write: &dyn Fn(&Path)| {
        assert_eq!(logits_of(&engine, write).unwrap(), expected, "{form}");
    };
    let own = renamed(str::to_owned);
    assert_same("one file without an index", &|folder| single(folder, &own));
    assert_same("shards with an index", &|folder| write_shards(folder, &own, true));
    assert_same("shards without an index", &|folder| write_shards(folder, &own, false));
    for prefix in ["model.language_model.", "language_model.", "model.", ""] {
        let entries = renamed(|name| name.replacen("language_model.model.", prefix, 1));
        assert_same(prefix, &|folder| single(folder, &entries));
    }
    let mut towers = own.clone();
    for name in [
        "vision_tower.encoder.layers.0.mlp.up_proj.weight",
        "model.audio_tower.layers.0.norm.weight",
        "model.multi_modal_projector.linear.weight",
        "embed_vision.embedding_projection.weight",
        "model.visual.blocks.0.attn.qkv.weight",
    ] {
        towers.push(Entry::bf16(name, &[3, 5], std::iter::repeat_n(f32::NAN, 15)));
    }
    assert_same("towers for images and sound", &|folder| {
        write_shards(folder, &towers, true)
    });
    assert_same("weights that are another model's", &|folder| {
        single(folder, &own);
        write_entries(
            &folder.join("consolidated.safetensors"),
            &[Entry::bf16("norm.weight", &[1], [1.0].into_iter())],
        );
    });
    assert_same("a config that is wrong about single layers", &|folder| {
        single(folder, &own);
        edit_config(folder, |config| {
            config["quantization"]["language_model.model.layers.1.mlp.up_proj"] = json!({"group_size": 64, "bits": 8});
            config["quantization"]["language_model.model.norm"] = json!(false);
        });
    });
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let engine = MlxEngine::start();
    let refused = |change: &dyn Fn(&mut serde_json::Value), words: &[&str]| {
        let loaded = logits_of(&engine, |folder| {
            single(folder, &renamed(str::to_owned));
            edit_config(folder, change);
        });
        let Err(error) = loaded else {
            panic!("{words:?} was loaded")
        };
        assert_eq!(error.code, ErrorCode::ModelUnsupported, "{error}");
        assert!(
            words.iter().all(|word| error.message.contains(word)),
            "{words:?}: {error}"
        );
    };
    refused(
        &|config| config["model_type"] = json!("mamba9"),
        &["mamba9", "gemma4", "llama", "qwen3"],
    );
    for method in ["gptq", "awq", "bitsandbytes"] {
        refused(
            &|config| {
                let config = config.as_object_mut().unwrap();
                config.remove("quantization");
                config.insert(
                    "quantization_config".into(),
                    json!({"quant_method": method, "bits": 4, "group_size": 128}),
                );
            },
            &[method],
        );
    }
    refused(&|config| config["quantization"]["mode"] = json!("q9_k"), &["q9_k"]);
    refused(
        &|config| config["model_file"] = json!("own_architecture.py"),
        &["own_architecture.py"],
    );
    assert!(engine.inspect().unwrap().living == 0);
}
