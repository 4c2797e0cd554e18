//! The state of the disk after a quantization that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use checkpoint::conversion::Recipe;
use checkpoint::Mode;
use engine::{MlxEngine, Quantized};
use protocol::{CancelFlag, ErrorCode};
use serde_json::{json, Value};

use crate::common::files::{write_entries, Entry};

/// A small Llama with random weights.
pub fn model(folder: &Path) -> PathBuf {
    let path = folder.join("model");
    fs::create_dir(&path).unwrap();
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 192,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
        "vocab_size": 128, "max_position_embeddings": 512, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    });
    fs::write(path.join("config.json"), config.to_string()).unwrap();
    fs::write(path.join("tokenizer.json"), "{}").unwrap();
    let mut state = 7_u32;
    let mut numbers = |count: usize| -> Vec<f32> {
        let each = (0..count).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        });
        each.collect()
    };
    let mut entries = Vec::new();
    let mut add = |name: String, shape: &[usize]| {
        let numbers = numbers(shape.iter().product());
        entries.push(Entry::bf16(name, shape, numbers.into_iter()));
    };
    add("model.embed_tokens.weight".into(), &[128, 64]);
    add("model.norm.weight".into(), &[64]);
    for layer in 0..2 {
        for (name, shape) in [
            ("self_attn.q_proj", &[64, 64][..]),
            ("self_attn.k_proj", &[32, 64]),
            ("self_attn.v_proj", &[32, 64]),
            ("self_attn.o_proj", &[64, 64]),
            ("mlp.gate_proj", &[192, 64]),
            ("mlp.up_proj", &[192, 64]),
            ("mlp.down_proj", &[64, 192]),
            ("input_layernorm", &[64]),
            ("post_attention_layernorm", &[64]),
        ] {
            add(format!("model.layers.{layer}.{name}.weight"), shape);
        }
    }
    write_entries(&path.join("model.safetensors"), &entries);
    path
}

pub fn recipe(group: u32) -> Recipe {
    Recipe::new(Mode::Affine, Some(4), Some(group), None).unwrap()
}

fn quantize(source: &Path, target: &Path, group: u32) -> protocol::Result<Quantized> {
    MlxEngine::start().quantize(source, target, recipe(group), CancelFlag::default(), |_| {})
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_copy_has_all_files_and_the_original_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let before = fs::read(source.join("model.safetensors")).unwrap();
    let made = quantize(&source, &folder.path().join("copy"), 64).unwrap();
    assert!(
        made.bytes < made.source_bytes && (4.5..9.0).contains(&made.bits_per_weight),
        "{made:?}"
    );
    assert_eq!(
        names(&folder.path().join("copy")),
        [
            "config.json",
            "model.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json"
        ]
    );
    assert_eq!(names(folder.path()), ["copy", "model"]);
    assert_eq!(fs::read(source.join("model.safetensors")).unwrap(), before);
    // A copy is quantized, so it is no source.
    let error = quantize(&folder.path().join("copy"), &folder.path().join("again"), 64).unwrap_err();
    assert!(error.message.contains("quantized already"), "{error}");
    assert_eq!(error.code, ErrorCode::ModelUnsupported);
}

#[test]
fn every_failure_leaves_nothing_new() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let target = folder.path().join("copy");
    let fails = |group: u32, words: &str, code: ErrorCode| {
        let error = quantize(&source, &target, group).unwrap_err();
        assert!(error.message.contains(words) && error.code == code, "{error:?}");
        assert_eq!(names(folder.path()), ["model"]);
    };
    fails(128, "groups of 128 divide no matrix", ErrorCode::BadRequest);
    let weights = source.join("model.safetensors");
    let whole = fs::read(&weights).unwrap();
    fs::write(&weights, &whole[..whole.len() - 10]).unwrap();
    fails(64, "cut short", ErrorCode::ModelBroken);
    fs::write(&weights, b"nonsense").unwrap();
    fails(64, "model.safetensors", ErrorCode::ModelBroken);
    fs::remove_file(&weights).unwrap();
    fails(64, "model.safetensors", ErrorCode::ModelBroken);
    fs::write(&weights, &whole).unwrap();
    fs::create_dir(&target).unwrap();
    let error = quantize(&source, &target, 64).unwrap_err();
    assert!(error.message.contains("exists already"), "{error}");
    assert!(names(&target).is_empty());
}

#[test]
fn what_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let (stop, steps) = (CancelFlag::default(), Arc::new(AtomicU64::new(0)));
    let (flag, seen) = (stop.clone(), steps.clone());
    let made = MlxEngine::start().quantize(&source, &folder.path().join("copy"), recipe(32), stop, move |_| {
        if seen.fetch_add(1, Ordering::Relaxed) == 3 {
            flag.cancel();
        }
    });
    assert_eq!(made.unwrap_err().code, ErrorCode::Stopped);
    assert_eq!(steps.load(Ordering::Relaxed), 4);
    assert_eq!(names(folder.path()), ["model"]);
}

/// A disk that is too small, where this computer has one: a tmpfs of a test's own would need rights.
#[test]
fn a_disk_without_room_is_told_before_anything_is_written() {
    let Some(small) = std::env::var_os("PONDER_SMALL_DISK").map(PathBuf::from) else {
        println!("skipped: PONDER_SMALL_DISK names no folder on a disk with less than 64 MB");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let error = quantize(&source, &small.join("copy"), 64).unwrap_err();
    assert_eq!(error.code, ErrorCode::DiskFull, "{error}");
    assert!(error.message.contains("GB free"), "{error}");
    assert!(names(&small).is_empty());
}

#[test]
fn matrices_that_no_group_divides_are_named_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let target = folder.path().join("copy");
    // Rows of 192 numbers are no multiple of 128, those of 64 neither; with groups of 64 all are.
    let made = quantize(&source, &target, 64).unwrap();
    assert!(made.undivided.is_empty());
    let config: Value = serde_json::from_str(&fs::read_to_string(target.join("config.json")).unwrap()).unwrap();
    assert_eq!(
        config["quantization"],
        json!({"group_size": 64, "bits": 4, "mode": "affine"})
    );
    assert_eq!(config["quantization"], config["quantization_config"]);
}
