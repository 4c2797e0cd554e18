//! Models on a computer, found in a cache laid out as the hub's clients lay it out.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use hub::{Error, ModelFolder};
use protocol::{Code, ModelShelf, ThinkingControl};

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../pebble/model")
        .canonicalize()
        .unwrap()
}

/// A repository in the cache: blobs, a snapshot of links to them, and a ref.
fn cached(cache: &Path, id: &str, commit: &str, files: &[(&str, PathBuf)]) {
    let repository = cache.join(format!("models--{}", id.replace('/', "--")));
    let snapshot = repository.join("snapshots").join(commit);
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), commit).unwrap();
    for (name, from) in files {
        std::os::unix::fs::symlink(from, snapshot.join(name)).unwrap();
    }
}

fn all_of_pebble() -> Vec<(&'static str, PathBuf)> {
    [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
        "model.safetensors",
    ]
    .map(|name| (name, pebble().join(name)))
    .into()
}

#[test]
fn the_built_in_model_is_listed_first_with_all_its_facts() {
    let models = ModelFolder::at(Some(pebble()), None).list();
    assert_eq!(models.len(), 1);
    let model = &models[0];
    assert_eq!(
        (model.reference.as_str(), model.name.as_str(), model.built_in),
        ("pebble", "Pebble", true)
    );
    assert_eq!(
        (model.family.as_deref(), model.context, model.problem.as_deref()),
        (Some("gemma4"), Some(4096), None)
    );
    assert_eq!(model.thinking, Some(ThinkingControl::Switch { default_on: false }));
    assert!(model.quantization.as_deref() == Some("8 bit"), "{model:?}");
    assert!(model.bytes > 15_000_000);
}

#[test]
fn what_another_client_fetched_is_found_by_its_id() {
    let cache = tempfile::tempdir().unwrap();
    cached(cache.path(), "somebody/Small-Model", "abc123", &all_of_pebble());
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let models = folder.list();
    assert_eq!(
        models.iter().map(|model| model.reference.as_str()).collect::<Vec<_>>(),
        ["somebody/Small-Model"]
    );
    assert_eq!(models[0].name, "Small Model");
    let source = folder.find("somebody/Small-Model").unwrap();
    assert_eq!(source.revision.as_deref(), Some("abc123"));
    assert!(source.path.join("config.json").is_file());
}

#[test]
fn a_model_with_a_missing_file_is_never_offered() {
    let cache = tempfile::tempdir().unwrap();
    cached(cache.path(), "somebody/half", "abc", &all_of_pebble()[..5]);
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    assert!(folder.list()[0]
        .problem
        .as_deref()
        .is_some_and(|problem| problem.contains("model.safetensors")));
    assert!(matches!(folder.find("somebody/half"), Err(Error::Incomplete { .. })));
    assert_eq!(folder.resolve("somebody/half").unwrap_err().code, Code::ModelBroken);
}

#[test]
fn a_family_that_is_not_known_says_so_in_the_list() {
    let cache = tempfile::tempdir().unwrap();
    let config = cache.path().join("config.json");
    fs::write(&config, r#"{"model_type": "marvin9"}"#).unwrap();
    let mut files = all_of_pebble();
    files[0].1 = config;
    cached(cache.path(), "somebody/new", "abc", &files);
    let models = ModelFolder::at(None, Some(cache.path().into())).list();
    assert!(
        models[0].problem.as_deref().is_some_and(|problem| problem.contains("marvin9")),
        "{models:?}"
    );
}

#[test]
fn a_model_that_will_not_run_says_why_before_it_is_chosen() {
    let pebble_config = fs::read_to_string(pebble().join("config.json")).unwrap();
    let own_code = pebble_config.replacen('{', "{\"model_file\": \"mine.py\",", 1);
    let judge = pebble_config.replace("Gemma4ForConditionalGeneration", "Gemma4ForSequenceClassification");
    for (config, word) in [(own_code, "mine.py"), (judge, "Gemma4ForSequenceClassification")] {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("config.json");
        fs::write(&path, config).unwrap();
        let mut files = all_of_pebble();
        files[0].1 = path;
        cached(cache.path(), "somebody/odd", "abc", &files);
        let models = ModelFolder::at(None, Some(cache.path().into())).list();
        assert!(
            models[0].problem.as_deref().is_some_and(|problem| problem.contains(word)),
            "{models:?}"
        );
    }
}

#[test]
fn folders_and_unknown_names() {
    let folder = ModelFolder::at(Some(pebble()), None);
    assert_eq!(folder.find(pebble().to_str().unwrap()).unwrap().path, pebble());
    assert_eq!(folder.resolve("nobody/nothing").unwrap_err().code, Code::ModelNotFound);
    assert!(ModelFolder::at(None, None).list().is_empty());
}

#[test]
fn a_cache_full_of_other_things_is_no_trouble() {
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir_all(cache.path().join("datasets--a--b/snapshots/x")).unwrap();
    fs::create_dir_all(cache.path().join("models--broken")).unwrap();
    fs::write(cache.path().join("models--a--file"), "not a folder").unwrap();
    assert!(ModelFolder::at(None, Some(cache.path().into())).list().is_empty());
}
