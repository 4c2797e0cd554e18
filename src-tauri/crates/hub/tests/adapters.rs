//! Adapters on a computer: found with the models that they belong to, listed below them, removed without them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use hub::ModelFolder;
use protocol::Reason;
use serde_json::json;

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../pebble/model")
        .canonicalize()
        .unwrap()
}

/// A copy of Pebble under another name.
fn model(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(pebble()).unwrap().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

/// An adapter of one projection, as mlx-lm writes it.
fn adapter(folder: &Path, base: &str) {
    fs::create_dir_all(folder).unwrap();
    let config = json!({"fine_tune_type": "lora", "model": base, "lora_parameters": {"rank": 1, "scale": 2.0}});
    fs::write(folder.join("adapter_config.json"), config.to_string()).unwrap();
    let header = json!({
        "model.layers.0.self_attn.o_proj.lora_a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
        "model.layers.0.self_attn.o_proj.lora_b": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4, 8]},
    });
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 8]);
    fs::write(folder.join("adapters.safetensors"), bytes).unwrap();
}

#[test]
fn an_adapter_is_listed_below_its_model_and_found_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    model(&root.join("Zebra-4bit"));
    model(&root.join("Antelope"));
    adapter(&root.join("a-style"), "owner/Zebra");
    adapter(&root.join("b-path"), root.join("Antelope").to_str().unwrap());
    let models = ModelFolder::at(None, None);
    models.add_folder(&root).unwrap();

    let listed: Vec<(String, Option<String>)> = models
        .list()
        .into_iter()
        .map(|model| (model.name.clone(), model.adapter_of.filter(|_| model.problem.is_none())))
        .collect();
    let path = |name: &str| Some(root.join(name).to_str().unwrap().to_owned());
    let expected = [
        ("Antelope", None),
        ("b path", path("Antelope")),
        ("Zebra 4bit", None),
        ("a style", path("Zebra-4bit")),
    ];
    assert_eq!(listed, expected.map(|(name, of)| (name.to_owned(), of)));

    let adapted = models.find(path("a-style").unwrap().as_str()).unwrap();
    assert_eq!(adapted.path, root.join("Zebra-4bit"));
    assert_eq!(adapted.adapter, Some(root.join("a-style")));
    assert_eq!(adapted.reference, path("a-style").unwrap());
    let size = models.list().into_iter().find(|model| model.name == "a style").unwrap();
    assert!(size.bytes < 1000 && size.thinking.is_some() && size.context.is_some());
}

#[test]
fn any_model_and_an_adapter_can_be_named_together() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    adapter(&root.join("style"), "owner/Elsewhere");
    let models = ModelFolder::at(Some(pebble()), None);
    let alone = root.join("style").to_str().unwrap().to_owned();
    let refused = protocol::Error::from(models.find(&alone).unwrap_err());
    assert_eq!(refused.reason, Some(Reason::AdapterWithoutModel));
    assert!(refused.message.contains("owner/Elsewhere"), "{refused}");

    let both = format!("pebble:{alone}");
    let adapted = models.find(&both).unwrap();
    assert_eq!((adapted.reference, adapted.path), (both, pebble()));
    assert_eq!(adapted.adapter, Some(root.join("style")));
    for wrong in ["pebble:pebble", "pebble:", ":", "pebble:/nowhere", "gone:pebble"] {
        let error = models.find(wrong).unwrap_err().to_string();
        assert!(error.contains("no model called"), "{wrong}: {error}");
    }

    fs::write(root.join("style/adapter_config.json"), r#"{"fine_tune_type": "full"}"#).unwrap();
    models.add_folder(&root).unwrap();
    let broken = models.list().into_iter().find(|model| model.name == "style").unwrap();
    assert!(broken.problem.unwrap().message.contains("whole weights"));
}
