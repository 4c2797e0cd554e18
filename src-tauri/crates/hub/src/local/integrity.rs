//! The integrity of a model folder as far as it shows without hashes: no file missing, cut short, or of a size or kind
//! that no model has.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use api::FileFault;
use checkpoint::{weight_files, weight_map, Error, Header, ModelConfig, MAX_INDEX_BYTES, WEIGHT_INDEX};
use protocol::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cache::entries;
use crate::local::adapters::is_adapter;

const MIB: u64 = 1 << 20;

/// A file of a model that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file.
    pub path: String,
    /// Its kind, for which windows have words.
    pub kind: FileFault,
    /// The fault in words that follow the file's name, such as `is missing`.
    pub reason: String,
}

impl Fault {
    pub(crate) fn new(path: &str, kind: FileFault, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind,
            reason: reason.into(),
        }
    }

    /// The error for the list of models.
    pub fn error(&self) -> protocol::Error {
        let Self { path, reason, .. } = self;
        let message = format!("{path} {reason}; repair the model or fetch it again, what is right is kept");
        protocol::Error::new(ErrorCode::ModelBroken, message)
            .with("file", path.as_str())
            .with("reason", format!("{path} {reason}"))
    }
}

/// The reason why a file of this name and size belongs to no model; `None` if it may. Checked before a file is fetched
/// and before one is read as a whole.
pub fn oversize(path: &str, bytes: u64) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let most = if name == WEIGHT_INDEX {
        MAX_INDEX_BYTES
    } else if matches!(name, "tokenizer.json" | "vocab.json" | "merges.txt") || name.ends_with(".model") {
        256 * MIB
    } else if name.ends_with(".safetensors") {
        return None;
    } else {
        8 * MIB
    };
    let (size, limit) = (bytes / 1_000_000, most / 1_000_000);
    (bytes > most).then(|| format!("is {size} MB, and no model's is larger than {limit} MB"))
}

/// The first fault that keeps the folder from being loaded: a missing or cut file among its config, tokenizer and
/// weights. Reads the headers of the weights, not the weights.
pub fn first_fault(folder: &Path) -> Option<Fault> {
    if is_adapter(folder) {
        // Its file is small, and the list reads it.
        return None;
    }
    for name in ["config.json", "tokenizer.json"] {
        if name == "tokenizer.json" && is_draft(folder) {
            break;
        }
        let Ok(meta) = fs::metadata(folder.join(name)) else {
            return Some(Fault::new(name, FileFault::Missing, "is missing"));
        };
        if !meta.is_file() {
            return Some(Fault::new(name, FileFault::Invalid, "is no file"));
        }
        if let Some(reason) = oversize(name, meta.len()) {
            return Some(Fault::new(name, FileFault::Invalid, reason));
        }
    }
    match shards(folder) {
        Err(fault) => Some(fault),
        Ok(shards) => shards.iter().find_map(|shard| weights(folder, shard).err()),
    }
}

/// True for a head that drafts for a model, whose tokenizer it shares.
fn is_draft(folder: &Path) -> bool {
    let size = fs::metadata(folder.join("config.json")).map(|meta| meta.len());
    let readable = size.is_ok_and(|bytes| oversize("config.json", bytes).is_none());
    readable && ModelConfig::read(folder).is_ok_and(|config| config.head().is_some())
}

/// All faults of the folder that show without hashes.
pub fn faults(folder: &Path) -> Vec<Fault> {
    let mut found: Vec<Fault> = Vec::new();
    let mut names: BTreeSet<String> = files(folder).collect();
    if is_adapter(folder) {
        let small = names.iter().filter(|name| !name.ends_with(".safetensors"));
        found.extend(small.filter_map(|name| small_file(folder, name).err()));
        return found;
    }
    names.insert("config.json".to_owned());
    if !is_draft(folder) {
        names.insert("tokenizer.json".to_owned());
    }
    for name in names.iter().filter(|name| !name.ends_with(".safetensors")) {
        found.extend(small_file(folder, name).err());
    }
    match shards(folder) {
        Err(fault) => found.push(fault),
        Ok(shards) => {
            let headers: Vec<_> = shards.iter().map(|shard| (shard, weights(folder, shard))).collect();
            found.extend(headers.iter().filter_map(|(_, header)| header.as_ref().err().cloned()));
            found.extend(index_faults(folder, &headers));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// The first tensor that the index promises and its shard lacks.
fn index_faults(folder: &Path, headers: &[(&String, Result<BTreeSet<String>, Fault>)]) -> Vec<Fault> {
    let Ok(Some(map)) = weight_map(folder) else {
        return Vec::new();
    };
    let held: BTreeMap<&str, &BTreeSet<String>> = headers
        .iter()
        .filter_map(|(shard, header)| Some((shard.as_str(), header.as_ref().ok()?)))
        .collect();
    let lacking = map
        .iter()
        .find(|(tensor, shard)| held.get(shard.as_str()).is_some_and(|held| !held.contains(*tensor)));
    lacking
        .map(|(tensor, shard)| {
            Fault::new(
                shard,
                FileFault::Invalid,
                format!("lacks the tensor {tensor}, which the index promises"),
            )
        })
        .into_iter()
        .collect()
}

fn small_file(folder: &Path, name: &str) -> Result<(), Fault> {
    let path = folder.join(name);
    let meta = fs::metadata(&path).map_err(|_| Fault::new(name, FileFault::Missing, "is missing"))?;
    if !meta.is_file() {
        return Ok(());
    }
    let is_json = name.ends_with(".json");
    if !is_json && !name.ends_with(".jinja") {
        return Ok(());
    }
    if let Some(reason) = oversize(name, meta.len()) {
        return Err(Fault::new(name, FileFault::Invalid, reason));
    }
    let text = fs::read(&path)
        .map_err(|error| Fault::new(name, FileFault::Unreadable, format!("cannot be read ({error})")))?;
    let text = String::from_utf8(text).map_err(|_| Fault::new(name, FileFault::Invalid, "is not text"))?;
    if !is_json {
        return Ok(());
    }
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Fault::new(name, FileFault::Invalid, format!("is not JSON ({error})")))?;
    match name {
        "tokenizer.json" if !value["model"].is_object() => {
            Err(Fault::new(name, FileFault::Invalid, "describes no tokenizer"))
        }
        "config.json" | "tokenizer_config.json" | "generation_config.json" if !value.is_object() => {
            Err(Fault::new(name, FileFault::Invalid, "is not a JSON object"))
        }
        _ => Ok(()),
    }
}

/// The weight files of a folder; `model.safetensors` if there are none.
pub(crate) fn shards(folder: &Path) -> Result<BTreeSet<String>, Fault> {
    match weight_files(folder) {
        Ok(files) => Ok(files),
        Err(Error::MissingFile(name)) => Ok(BTreeSet::from([name.to_owned()])),
        Err(error) => Err(fault(WEIGHT_INDEX, error)),
    }
}

/// The names of the tensors of a weight file whose header is complete and matches the file's length.
fn weights(folder: &Path, name: &str) -> Result<BTreeSet<String>, Fault> {
    let (header, data) = Header::read(&folder.join(name)).map_err(|error| fault(name, error))?;
    match data.cmp(&header.end()) {
        Ordering::Less => Err(Fault::new(name, FileFault::CutShort, "is cut short")),
        Ordering::Greater => Err(Fault::new(name, FileFault::Changed, "is longer than its header says")),
        Ordering::Equal => Ok(header.names().map(str::to_owned).collect()),
    }
}

/// The fault of a weight file or the index, as the list of models shows it.
fn fault(name: &str, error: Error) -> Fault {
    match error {
        Error::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => {
            Fault::new(name, FileFault::Missing, "is missing")
        }
        Error::Unreadable { source, .. } => {
            Fault::new(name, FileFault::Unreadable, format!("cannot be read ({source})"))
        }
        Error::InvalidIndex(reason) => Fault::new(name, FileFault::Invalid, reason),
        Error::Truncated { .. } => Fault::new(name, FileFault::CutShort, "is cut short"),
        _ => Fault::new(name, FileFault::Invalid, "is no safetensors file"),
    }
}

/// The names directly in a folder.
pub(crate) fn files(folder: &Path) -> impl Iterator<Item = String> {
    entries(folder).filter_map(|entry| entry.file_name().into_string().ok())
}
