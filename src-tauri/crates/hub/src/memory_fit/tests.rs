#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::json;

use super::*;

const GIB: u64 = 1 << 30;

fn llama() -> ModelConfig {
    let config = json!({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128_256, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 131_072, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "quantization": {"group_size": 64, "bits": 4}});
    ModelConfig::parse(&config.to_string()).unwrap()
}

fn memory(total: u64, free: u64) -> Memory {
    Memory {
        total: total * GIB,
        free: free * GIB,
        swap: 0,
    }
}

fn question(context: Option<u32>) -> Question {
    Question {
        context,
        backend: Backend::Metal,
        ..Question::new()
    }
}

#[test]
fn the_three_words_follow_the_memory() {
    let of = |memory| memory_fit(&llama(), 4_517_000_000, &question(None), &memory, None);
    assert_eq!(of(memory(48, 40)).word, FitVerdict::Comfortable);
    assert_eq!(
        of(memory(48, 4)).word,
        FitVerdict::Tight,
        "other programs use what it needs"
    );
    assert_eq!(of(memory(11, 11)).word, FitVerdict::Tight);
    assert_eq!(of(memory(5, 5)).word, FitVerdict::WillNotFit);
    let sum = of(memory(48, 40));
    assert_eq!(sum.needed, sum.weights + sum.kv + sum.working);
    assert_eq!(
        (sum.context, sum.most_context, sum.weights),
        (DEFAULT_CONTEXT, 131_072, 4_517_000_000)
    );
    // 32 layers, 8 heads of 128 values of 16 bits, keys and values, twice because of the prefix cache.
    assert_eq!(sum.kv, 2 * 32 * 8 * 128 * 2 * 2 * 16_384);
}

#[test]
fn the_context_moves_the_sum_and_the_comfortable_one_is_comfortable() {
    let (memory, model) = (memory(16, 14), llama());
    let of = |context| memory_fit(&model, 4_517_000_000, &question(Some(context)), &memory, None);
    assert!(of(4096).needed < of(32_768).needed);
    let most = of(4096).comfortable_context.unwrap();
    assert_eq!(of(most).word, FitVerdict::Comfortable);
    assert_ne!(of(most + 256).word, FitVerdict::Comfortable);
    assert_eq!(
        of(u32::MAX).context,
        131_072,
        "a model has no more than its own context"
    );
    let four = Question {
        kv_bits: Some(KvBits::Four),
        ..question(Some(32_768))
    };
    assert!(memory_fit(&model, 4_517_000_000, &four, &memory, None).kv * 3 < of(32_768).kv);
}

#[test]
fn vision_is_left_out_of_the_weights_and_broken_headers_count_whole() {
    let folder = tempfile::tempdir().unwrap();
    let header = json!({"__metadata__": {"format": "mlx"},
        "language_model.model.embed_tokens.weight": {"dtype": "BF16", "shape": [10, 10], "data_offsets": [0, 200]},
        "vision_tower.patch.weight": {"dtype": "BF16", "shape": [50], "data_offsets": [200, 300]}})
    .to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend([0; 300]);
    fs::write(folder.path().join("model.safetensors"), &file).unwrap();
    assert_eq!(stored_bytes(folder.path()).unwrap(), 200);
    for broken in [
        &b"12"[..],
        &u64::MAX.to_le_bytes(),
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x30\0\0\0\0\0\0\0{}",
    ] {
        fs::write(folder.path().join("model.safetensors"), broken).unwrap();
        assert_eq!(stored_bytes(folder.path()).unwrap(), broken.len() as u64, "{broken:?}");
    }
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    assert!(matches!(stored_bytes(folder.path()), Err(Error::Read { .. })));
}

#[test]
fn what_was_measured_is_kept_by_revision_and_only_grows() {
    let folder = tempfile::tempdir().unwrap();
    let measured = Measured::in_folder(folder.path());
    assert_eq!(measured.of("a/b", Some("1")), None);
    measured.record("a/b", Some("1"), 100).unwrap();
    measured.record("a/b", Some("1"), 50).unwrap();
    measured.record("a/b", None, 7).unwrap();
    assert_eq!(
        (measured.of("a/b", Some("1")), measured.of("a/b", None)),
        (Some(100), Some(7))
    );
    assert_eq!(measured.of("a/b", Some("2")), None);
    fs::write(folder.path().join("measured.json"), "{broken").unwrap();
    assert_eq!(measured.of("a/b", Some("1")), None);
    measured.record("a/b", Some("1"), 10).unwrap();
    assert_eq!(measured.of("a/b", Some("1")), Some(10));
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    let blocked = Measured::in_folder(&folder.path().join("measured.json"));
    assert!(matches!(blocked.record("a", None, 1), Err(Error::Write { .. })));
}

#[test]
fn a_model_that_clearly_does_not_fit_is_refused_with_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model");
    for entry in fs::read_dir(pebble).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let check = |memory| check_before_load(folder.path(), None, Backend::Cpu, &memory);
    assert_eq!(check(memory(8, 8)), Ok(()));
    let small = Memory {
        total: 40_000_000,
        free: 30_000_000,
        swap: 0,
    };
    let error = check(small).unwrap_err();
    assert_eq!(error.reason, Some(Reason::ModelMemory));
    assert!(
        error.message.contains("40 MB") && error.message.contains(LOAD_ANYWAY),
        "{error}"
    );
    // Next to others there must be room for a long chat, and a fifth of the memory stays with other programs.
    let beside = |kept| check_beside_others(folder.path(), Backend::Cpu, &memory(8, 8), kept);
    assert_eq!(beside(6 * GIB), Ok(()));
    assert_eq!(
        beside(6 * GIB + GIB / 2).unwrap_err().reason,
        Some(Reason::MemoryBesideLoaded)
    );
    // A file that cannot be read is left to the loader.
    fs::remove_file(folder.path().join("config.json")).unwrap();
    assert_eq!(check(small), Ok(()));
}
