//! Whether the files of a model folder are what their names say, as far as that shows without hashes: nothing missing, nothing
//! cut short, nothing of a size or kind that no model has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::layout::FilePath;

const MIB: u64 = 1 << 20;
/// What the safetensors format itself allows for its header.
pub(crate) const LONGEST_HEADER: u64 = 100 * 1_000_000;
const INDEX: &str = "model.safetensors.index.json";

/// A file of a model that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file.
    pub path: String,
    /// What is wrong, for a person, such as `is missing`.
    pub reason: String,
}

impl Fault {
    fn new(path: &str, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }

    /// The sentence for the list of models.
    pub fn sentence(&self) -> String {
        format!(
            "{} {}; repair the model or fetch it again, what is right is kept",
            self.path, self.reason
        )
    }
}

/// Why a file of this name and size belongs to no model; `None` if it may. It is asked before a file is fetched and before one is
/// read as a whole.
pub fn oversize(path: &str, bytes: u64) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let most = if name == INDEX {
        64 * MIB
    } else if matches!(name, "tokenizer.json" | "vocab.json" | "merges.txt") || name.ends_with(".model") {
        256 * MIB
    } else if name.ends_with(".safetensors") {
        return None;
    } else {
        8 * MIB
    };
    (bytes > most).then(|| format!("is {} MB, and no model's is larger than {} MB", bytes / 1_000_000, most / 1_000_000))
}

/// The first thing that keeps the folder from being loaded: a missing or cut file among its config, tokenizer and weights.
/// It reads the headers of the weights, not the weights.
pub fn first_fault(folder: &Path) -> Option<Fault> {
    for name in ["config.json", "tokenizer.json"] {
        let Ok(meta) = fs::metadata(folder.join(name)) else {
            return Some(Fault::new(name, "is missing"));
        };
        if !meta.is_file() {
            return Some(Fault::new(name, "is no file"));
        }
        if let Some(reason) = oversize(name, meta.len()) {
            return Some(Fault::new(name, reason));
        }
    }
    match shards(folder) {
        Err(fault) => Some(fault),
        Ok(shards) => shards.iter().find_map(|shard| weights(folder, shard).err()),
    }
}

/// Everything that is wrong with the folder as far as that shows without hashes.
pub fn faults(folder: &Path) -> Vec<Fault> {
    let mut found: Vec<Fault> = Vec::new();
    let mut names: BTreeSet<String> = files(folder).collect();
    names.extend(["config.json", "tokenizer.json"].map(str::to_owned));
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

/// Tensors that the index promises and a shard does not hold.
fn index_faults(folder: &Path, headers: &[(&String, Result<BTreeSet<String>, Fault>)]) -> Vec<Fault> {
    let Ok(Some(map)) = index(folder) else {
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
        .map(|(tensor, shard)| Fault::new(shard, format!("lacks the tensor {tensor}, which the index promises")))
        .into_iter()
        .collect()
}

fn small_file(folder: &Path, name: &str) -> Result<(), Fault> {
    let path = folder.join(name);
    let meta = fs::metadata(&path).map_err(|_| Fault::new(name, "is missing"))?;
    if !meta.is_file() {
        return Ok(());
    }
    let is_json = name.ends_with(".json");
    if !is_json && !name.ends_with(".jinja") {
        return Ok(());
    }
    if let Some(reason) = oversize(name, meta.len()) {
        return Err(Fault::new(name, reason));
    }
    let text = fs::read(&path).map_err(|error| Fault::new(name, format!("cannot be read ({error})")))?;
    let text = String::from_utf8(text).map_err(|_| Fault::new(name, "is not text"))?;
    if !is_json {
        return Ok(());
    }
    let value: Value = serde_json::from_str(&text).map_err(|error| Fault::new(name, format!("is not JSON ({error})")))?;
    match name {
        "tokenizer.json" if !value["model"].is_object() => Err(Fault::new(name, "describes no tokenizer")),
        "config.json" | "tokenizer_config.json" | "generation_config.json" if !value.is_object() => {
            Err(Fault::new(name, "is not a JSON object"))
        }
        _ => Ok(()),
    }
}

fn index(folder: &Path) -> Result<Option<BTreeMap<String, String>>, Fault> {
    let path = folder.join(INDEX);
    // A link to nothing is a file that is missing, not one that was never there.
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let meta = fs::metadata(&path).map_err(|_| Fault::new(INDEX, "is missing"))?;
    if let Some(reason) = oversize(INDEX, meta.len()) {
        return Err(Fault::new(INDEX, reason));
    }
    let text = fs::read_to_string(&path).map_err(|error| Fault::new(INDEX, format!("cannot be read ({error})")))?;
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    match serde_json::from_str::<Index>(&text) {
        Ok(index) if !index.weight_map.is_empty() => Ok(Some(index.weight_map)),
        Ok(_) => Ok(None),
        Err(_) => Err(Fault::new(INDEX, "is no index of weights")),
    }
}

/// The weight files: those that the index names, else those in the folder, else `model.safetensors`.
pub(crate) fn shards(folder: &Path) -> Result<BTreeSet<String>, Fault> {
    if let Some(map) = index(folder)? {
        let shards: BTreeSet<String> = map.into_values().collect();
        // A name from a file must not lead the loader out of the folder.
        let hostile = shards
            .iter()
            .any(|name| FilePath::new(name).is_err() || name.contains('/') || !name.ends_with(".safetensors"));
        return if hostile {
            Err(Fault::new(INDEX, "names files that are no weights of this model"))
        } else {
            Ok(shards)
        };
    }
    let found: BTreeSet<String> = files(folder)
        .filter(|name| name.starts_with("model") && name.ends_with(".safetensors"))
        .collect();
    // Without the index, the name of one shard tells how many there are.
    if let Some((stem, count)) = found.iter().find_map(|name| numbered(name)) {
        return Ok((1..=count)
            .map(|number| format!("{stem}-{number:05}-of-{count:05}.safetensors"))
            .collect());
    }
    Ok(if found.is_empty() {
        BTreeSet::from(["model.safetensors".to_owned()])
    } else {
        found
    })
}

/// `model` and 4 of `model-00002-of-00004.safetensors`.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let (rest, count) = name.strip_suffix(".safetensors")?.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = (digits(number) && digits(count)).then(|| count.parse().ok()).flatten()?;
    (1..=10_000).contains(&count).then_some((stem, count))
}

/// The names of the tensors of a weight file, once its header is whole and the file as long as the header says.
fn weights(folder: &Path, name: &str) -> Result<BTreeSet<String>, Fault> {
    let wrong = |reason: &str| Fault::new(name, reason);
    let mut file = File::open(folder.join(name)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong("is missing"),
        _ => Fault::new(name, format!("cannot be read ({error})")),
    })?;
    let length = file.metadata().map_err(|_| wrong("cannot be read"))?.len();
    let mut first = [0u8; 8];
    file.read_exact(&mut first).map_err(|_| wrong("is cut short"))?;
    let header = u64::from_le_bytes(first);
    if header > LONGEST_HEADER {
        return Err(wrong("is no safetensors file"));
    }
    if length < 8 + header {
        return Err(wrong("is cut short"));
    }
    let mut text = Vec::new();
    file.take(header).read_to_end(&mut text).map_err(|_| wrong("cannot be read"))?;
    let entries: BTreeMap<String, Value> = serde_json::from_slice(&text).map_err(|_| wrong("is no safetensors file"))?;
    let mut end = 0;
    let mut tensors = BTreeSet::new();
    for (tensor, entry) in entries.into_iter().filter(|(tensor, _)| tensor != "__metadata__") {
        let offsets = [&entry["data_offsets"][0], &entry["data_offsets"][1]].map(Value::as_u64);
        let [Some(from), Some(to)] = offsets else {
            return Err(wrong("is no safetensors file"));
        };
        if from > to {
            return Err(wrong("is no safetensors file"));
        }
        end = end.max(to);
        tensors.insert(tensor);
    }
    match length.cmp(&end.saturating_add(8 + header)) {
        std::cmp::Ordering::Less => Err(wrong("is cut short")),
        std::cmp::Ordering::Greater => Err(wrong("is longer than its header says")),
        std::cmp::Ordering::Equal => Ok(tensors),
    }
}

/// The names that lie directly in a folder.
pub(crate) fn files(folder: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}
