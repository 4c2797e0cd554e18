//! Drafts that were made for a model, and smaller models with the same vocabulary, are found for it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use hub::ModelFolder;
use protocol::ModelKind;
use serde_json::{json, Value};

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")
}

/// A copy of Pebble with so many bytes more.
fn model(folder: &Path, more: u64) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(pebble()).unwrap().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let file = fs::File::create(folder.join("notes.bin")).unwrap();
    file.set_len(more).unwrap();
}

#[test]
fn smaller_models_with_the_same_vocabulary_can_draft() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    model(&root.join("large"), 200 << 20);
    model(&root.join("middle"), 30 << 20);
    model(&root.join("small"), 0);
    model(&root.join("as-large"), 190 << 20);
    model(&root.join("others"), 0);
    let path = root.join("others/tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let words = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    let first = words.keys().next().unwrap().clone();
    let id = words.remove(&first).unwrap();
    words.insert("another token".into(), id);
    fs::write(&path, tokenizer.to_string()).unwrap();
    model(&root.join("broken"), 0);
    fs::write(root.join("broken/tokenizer.json"), "{").unwrap();

    let models = ModelFolder::at(None, None);
    models.add_folder(&root).unwrap();
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    assert_eq!(models.draft_models(&path("large")), [path("small"), path("middle")]);
    assert_eq!(models.draft_models(&path("small")), Vec::<String>::new());
    assert_eq!(models.draft_models(&path("broken")), Vec::<String>::new());
    assert_eq!(models.draft_models("nobody/nothing"), Vec::<String>::new());
}

/// A folder with a config and a weight file.
fn with_config(folder: &Path, config: &Value) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let header = json!({"norm.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).to_string();
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
    fs::write(folder.join("model.safetensors"), bytes).unwrap();
}

#[test]
fn a_head_is_found_for_the_model_that_it_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let text = |width: u32| {
        json!({"model_type": "qwen3_5_text", "hidden_size": width, "num_hidden_layers": 4, "intermediate_size": 192,
               "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 4096,
               "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32,
               "linear_value_head_dim": 32, "mtp_num_hidden_layers": 1})
    };
    model(&root.join("model"), 0);
    let config = json!({"model_type": "qwen3_5", "text_config": text(64)});
    fs::write(root.join("model/config.json"), config.to_string()).unwrap();
    let head = |width: u32| json!({"model_type": "qwen3_5_mtp", "block_size": 3, "text_config": text(width)});
    with_config(&root.join("head"), &head(64));
    with_config(&root.join("wider"), &head(128));
    with_config(
        &root.join("broken"),
        &json!({"model_type": "qwen3_5_mtp", "text_config": {"mtp_num_hidden_layers": 0}}),
    );

    let models = ModelFolder::at(None, None);
    models.add_folder(&root).unwrap();
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    assert_eq!(models.draft_models(&path("model")), [path("head")]);
    assert_eq!(models.draft_models(&path("head")), Vec::<String>::new());
    let listed = models.list();
    let told = |name: &str| {
        let model = listed.iter().find(|model| model.reference == path(name)).unwrap();
        (
            model.kind,
            model.problem.as_ref().map(|problem| problem.message.clone()),
        )
    };
    assert_eq!(told("head"), (ModelKind::Draft, None));
    let (_, problem) = told("broken");
    assert!(
        problem.as_ref().unwrap().contains("mtp_num_hidden_layers"),
        "{problem:?}"
    );
}
