//! Smaller models with the same vocabulary are found for a model.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use hub::ModelFolder;
use serde_json::Value;

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
