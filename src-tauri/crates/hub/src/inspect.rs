//! What a model folder says about itself, without loading it.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use prompt::config::{fitness_of_folder, ModelConfig};
use prompt::Dialect;
use protocol::{LocalModel, ModelSource};
use serde_json::Value;

use crate::folder::BUILT_IN;

/// The first file that a usable model lacks: its config, its tokenizer or one of its weight files.
pub fn missing_file(folder: &Path) -> Option<String> {
    let named = ["config.json", "tokenizer.json"].map(str::to_owned);
    named.into_iter().chain(shards(folder)).find(|name| !folder.join(name).is_file())
}

/// The weight files that the index names, or `model.safetensors` where nothing else is there.
fn shards(folder: &Path) -> BTreeSet<String> {
    let index = fs::read_to_string(folder.join("model.safetensors.index.json")).ok();
    let indexed: BTreeSet<String> = index
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .and_then(|index| {
            index["weight_map"]
                .as_object()
                .map(|map| map.values().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        })
        .unwrap_or_default();
    if !indexed.is_empty() {
        return indexed;
    }
    let found: BTreeSet<String> = files(folder)
        .filter(|name| name.starts_with("model") && name.ends_with(".safetensors"))
        .collect();
    if found.is_empty() {
        BTreeSet::from(["model.safetensors".to_owned()])
    } else {
        found
    }
}

fn files(folder: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}

/// Bytes of all files, links followed, because the cache's snapshots are links to its blobs.
fn bytes(folder: &Path) -> u64 {
    files(folder)
        .filter_map(|name| fs::metadata(folder.join(name)).ok())
        .filter(|meta| meta.is_file())
        .map(|meta| meta.len())
        .sum()
}

/// Everything the list shows about a model.
pub fn inspect(model: &ModelSource, built_in: bool) -> LocalModel {
    let config = ModelConfig::read(&model.path);
    let missing = missing_file(&model.path).map(|name| format!("{name} is missing; fetch the model again"));
    // A tokenizer file that breaks the library that reads it is a broken model, not the end of the list.
    let path = model.path.clone();
    let thinking = catch_unwind(move || {
        Dialect::open(&path)
            .map(|dialect| (dialect.thinking_control(), dialect.thought_markers()))
            .map_err(|error| error.to_string())
    })
    .unwrap_or_else(|_| Err("tokenizer.json cannot be read; fetch the model again".into()));
    let problem = missing
        .or_else(|| fitness_of_folder(&model.path).err().map(|reason| reason.to_string()))
        .or_else(|| thinking.as_ref().err().cloned());
    let (thinking, thought) = thinking
        .ok()
        .filter(|_| problem.is_none())
        .map_or((None, None), |(control, thought)| (Some(control), thought));
    LocalModel {
        reference: model.reference.clone(),
        name: name(&model.reference),
        built_in,
        path: model.path.display().to_string(),
        revision: model.revision.clone(),
        family: config.as_ref().ok().map(|config| config.model_type.clone()),
        quantization: config.as_ref().ok().map(bits),
        bytes: bytes(&model.path),
        context: config.as_ref().ok().map(|config| config.context),
        thinking,
        thought,
        problem,
        incomplete: false,
        place: protocol::ModelPlace::Cache,
        last_used_at: None,
        revisions: Vec::new(),
    }
}

/// The quantisation without its grouping, which only says something to those who make models.
fn bits(config: &ModelConfig) -> String {
    let label = config.quantization_label();
    label.split(',').next().unwrap_or(&label).to_owned()
}

/// A short name for people: the last part of the id, with blanks for hyphens.
fn name(reference: &str) -> String {
    if reference == BUILT_IN {
        return "Pebble".into();
    }
    reference
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(reference)
        .replace(['-', '_'], " ")
}
