//! Which files of a model are its weights.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use serde::Deserialize;

use crate::error::{Error, Result};

/// The file that says which weight file holds which tensor.
pub const WEIGHT_INDEX: &str = "model.safetensors.index.json";

/// The largest index that is read, in bytes.
pub const MAX_INDEX_BYTES: u64 = 64 << 20;

/// The most files that the name of one shard is believed to speak of.
const MAX_SHARDS: u32 = 10_000;

/// True if a file of this name, at the top of a repository or folder, holds weights that are loaded:
/// `model*.safetensors`, as in mlx-lm.
pub fn is_weight_file(name: &str) -> bool {
    name.starts_with("model") && name.ends_with(".safetensors") && !name.contains('/')
}

/// The weight files among the paths of a repository: those that mlx-lm would load, one copy of them.
pub fn weight_files_of_repository<'a>(paths: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let models: Vec<&str> = paths.iter().copied().filter(|path| is_weight_file(path)).collect();
    let shards: BTreeSet<&str> = models.iter().copied().filter(|path| is_shard(path)).collect();
    if paths.contains(WEIGHT_INDEX) && !shards.is_empty() {
        return shards;
    }
    if models.contains(&"model.safetensors") {
        // Shards without an index belong to nothing; a loader takes the one file.
        return models
            .into_iter()
            .filter(|path| !is_shard(path) && !is_variant(path))
            .collect();
    }
    if !models.is_empty() {
        return models.into_iter().collect();
    }
    let all = paths
        .iter()
        .copied()
        .filter(|path| path.ends_with(".safetensors") && !path.contains('/') && !path.starts_with('.'));
    all.filter(|path| !path.starts_with("consolidated") && !path.starts_with("adapter"))
        .collect()
}

/// The names of a folder's weight files: those that its index names, else those that are there; if one of these is a
/// numbered shard, all that its name speaks of.
///
/// # Errors
/// [`Error::MissingFile`] if there are none, [`Error::InvalidIndex`], [`Error::Unreadable`]. The files' existence is
/// not checked.
pub fn weight_files(folder: &Path) -> Result<BTreeSet<String>> {
    if let Some(map) = weight_map(folder)? {
        let files: BTreeSet<String> = map.into_values().collect();
        // A name from a file must not lead out of the folder.
        return match files.iter().find(|name| !is_file_beside(name)) {
            Some(name) => Err(Error::InvalidIndex(format!(
                "names `{name}`, which is no file beside it"
            ))),
            None => Ok(files),
        };
    }
    let entries = fs::read_dir(folder).map_err(|source| Error::Unreadable {
        path: folder.to_owned(),
        source,
    })?;
    let found: BTreeSet<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_weight_file(name))
        .collect();
    if found.is_empty() {
        return Err(Error::MissingFile("model.safetensors"));
    }
    Ok(match found.iter().find_map(|name| numbered(name)) {
        Some((stem, count)) => (1..=count)
            .map(|number| format!("{stem}-{number:05}-of-{count:05}.safetensors"))
            .collect(),
        None => found,
    })
}

/// The file of every tensor by the index of a folder; `None` if it has no index, or an empty one.
///
/// # Errors
/// [`Error::InvalidIndex`], [`Error::Unreadable`].
pub fn weight_map(folder: &Path) -> Result<Option<BTreeMap<String, String>>> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let path = folder.join(WEIGHT_INDEX);
    // A link to nothing is a file that is missing, not one that was never there.
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let unreadable = |source| Error::Unreadable {
        path: path.clone(),
        source,
    };
    let bytes = fs::metadata(&path).map_err(unreadable)?.len();
    if bytes > MAX_INDEX_BYTES {
        return Err(Error::InvalidIndex(format!(
            "is {} MB, and no model's is larger than {} MB",
            bytes / 1_000_000,
            MAX_INDEX_BYTES / 1_000_000
        )));
    }
    let text = fs::read(&path).map_err(unreadable)?;
    match serde_json::from_slice::<Index>(&text) {
        Ok(index) => Ok(Some(index.weight_map).filter(|map| !map.is_empty())),
        Err(_) => Err(Error::InvalidIndex("is no index of weights".into())),
    }
}

fn is_file_beside(name: &str) -> bool {
    let plain = matches!(
        Path::new(name).components().collect::<Vec<_>>()[..],
        [Component::Normal(_)]
    );
    plain && name.ends_with(".safetensors") && !name.contains(['/', '\\', '\0', ':'])
}

/// `model` and 4 of `model-00002-of-00004.safetensors`.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let (rest, count) = name.strip_suffix(".safetensors")?.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = (digits(number) && digits(count))
        .then(|| count.parse().ok())
        .flatten()?;
    (1..=MAX_SHARDS).contains(&count).then_some((stem, count))
}

/// `model-00001-of-00004.safetensors`.
fn is_shard(path: &str) -> bool {
    path.strip_suffix(".safetensors")
        .and_then(|stem| stem.strip_prefix("model-"))
        .and_then(|numbers| numbers.split_once("-of-"))
        .is_some_and(|(number, of)| {
            [number, of]
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        })
}

/// `model.fp16.safetensors`: the same weights in another precision.
fn is_variant(path: &str) -> bool {
    path.strip_suffix(".safetensors")
        .is_some_and(|stem| stem.starts_with("model."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_index_leads_to_files_beside_it_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join(WEIGHT_INDEX);
        for (name, fine) in [
            ("model-1.safetensors", true),
            ("../secret.safetensors", false),
            ("/etc/secret.safetensors", false),
            ("a/b.safetensors", false),
            ("..", false),
            ("model.bin", false),
        ] {
            fs::write(&index, serde_json::json!({"weight_map": {"a": name}}).to_string()).unwrap();
            let found = weight_files(folder.path());
            assert_eq!(found.is_ok(), fine, "{name}: {found:?}");
        }
        for broken in ["", "[]", "{}", r#"{"weight_map": {"a": 1}}"#] {
            fs::write(&index, broken).unwrap();
            assert!(
                matches!(weight_files(folder.path()), Err(Error::InvalidIndex(_))),
                "{broken}"
            );
        }
    }

    #[test]
    fn without_an_index_one_shard_tells_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(weight_files(folder.path()), Err(Error::MissingFile(_))));
        fs::write(folder.path().join("adapters.safetensors"), "").unwrap();
        assert!(matches!(weight_files(folder.path()), Err(Error::MissingFile(_))));
        fs::write(folder.path().join("model.safetensors"), "").unwrap();
        assert_eq!(
            weight_files(folder.path()).unwrap(),
            BTreeSet::from(["model.safetensors".to_owned()])
        );
        fs::rename(
            folder.path().join("model.safetensors"),
            folder.path().join("model-00002-of-00003.safetensors"),
        )
        .unwrap();
        let all = weight_files(folder.path()).unwrap();
        assert_eq!(all.len(), 3);
        assert!(all.contains("model-00003-of-00003.safetensors"));
    }
}
