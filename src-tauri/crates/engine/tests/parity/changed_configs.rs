//! A config.json with any number changed gives a model or an error, never a panic.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::common::oracle::{python, seed, Written};
use crate::common::source;
use checkpoint::{parse_json, ModelConfig};
use engine::MlxEngine;
use protocol::{ErrorCode, FolderSource};
use serde_json::{json, Value};

/// Values in place of a number, a text or a list.
fn hostile() -> Vec<Value> {
    vec![
        json!(null),
        json!(0),
        json!(1),
        json!(3),
        json!(-1),
        json!(0.5),
        json!(2_147_483_647),
        json!(4_294_967_295_u64),
        json!(1e30),
        json!({"__float__": "NaN"}),
        json!({"__float__": "Infinity"}),
        json!("text"),
        json!([]),
        json!([1, 2, 3]),
        json!({}),
        json!(true),
    ]
}

/// The places of all values of an object, one inside another.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    if let Value::Object(object) = value {
        for (name, inner) in object {
            let path = format!("{path}/{name}");
            places(inner, &path, found);
            found.push(path);
        }
    }
}

#[test]
fn no_number_of_a_config_makes_a_panic() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &[], true);
    let engine = MlxEngine::start();
    let (mut parsed, mut loaded, mut panics) = (0, 0, Vec::new());
    for (index, variant) in written.variants.iter().enumerate() {
        // Other tests read the models meanwhile.
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(written.model(&variant.name)).unwrap().flatten() {
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let path = folder.path().join("config.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let config: Value = parse_json(&text).unwrap();
        let mut all = Vec::new();
        places(&config, "", &mut all);
        for (place, name) in all.iter().enumerate() {
            for (kind, value) in hostile().into_iter().enumerate() {
                let mut changed = config.clone();
                *changed.pointer_mut(name).unwrap() = value.clone();
                let changed = changed.to_string();
                parsed += 1;
                let Ok(read) = catch_unwind(AssertUnwindSafe(|| ModelConfig::parse(&changed))) else {
                    panics.push(format!("{}: {name} = {value} when read", variant.name));
                    continue;
                };
                // Loading takes longer, so a part of what was read is tried, another one with each seed.
                let every = if std::env::var_os("PONDER_FULL").is_some() {
                    5
                } else {
                    40
                };
                if read.is_err() || (index + place + kind) as u64 % every != seed() % every {
                    continue;
                }
                loaded += 1;
                std::fs::write(&path, &changed).unwrap();
                // Another revision, so that the engine does not take it for what it has loaded.
                let model = FolderSource {
                    revision: Some(loaded.to_string()),
                    ..source(folder.path())
                };
                let answered = engine.logits(model, vec![1, 2, 3], false, None);
                if let Err(error) = answered {
                    if error.code == ErrorCode::Engine {
                        panics.push(format!("{}: {name} = {value} when loaded: {error}", variant.name));
                    }
                }
            }
        }
    }
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
    println!("report: {parsed} configs with one value changed were read, {loaded} of them loaded, without a panic");
}
