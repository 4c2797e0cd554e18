//! The headers of safetensors files, checked against the files' sizes before MLX reads them: MLX reads lazily and would
//! find a truncated file only in the middle of an evaluation.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};

/// The largest header that is believed, in bytes.
const MAX_HEADER: u64 = 100 << 20;

/// The weight files of a model's folder: those that the index names, or else every `model*.safetensors`.
pub fn shards(dir: &Path) -> Result<Vec<PathBuf>> {
    let index = dir.join("model.safetensors.index.json");
    let mut files: Vec<PathBuf> = if index.is_file() {
        let text = std::fs::read_to_string(&index).map_err(|error| unreadable(&index, &error))?;
        let json: Value = serde_json::from_str(&text).map_err(|error| broken(&index, format!("it is not JSON ({error})")))?;
        let map = json
            .get("weight_map")
            .and_then(Value::as_object)
            .ok_or_else(|| broken(&index, "it has no `weight_map`"))?;
        let names = map.values().filter_map(Value::as_str);
        // A name is a file in this folder; nothing that a download brings may lead out of it.
        let file = |name: &str| match Path::new(name).components().collect::<Vec<_>>()[..] {
            [Component::Normal(_)] => Ok(dir.join(name)),
            _ => Err(broken(&index, format!("it names `{name}`, which is no file beside it"))),
        };
        names.map(file).collect::<Result<_>>()?
    } else {
        let entries = std::fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
        let is_shard = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("model") && name.ends_with(".safetensors")
        };
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_shard).collect()
    };
    files.sort();
    files.dedup();
    if files.is_empty() {
        return Err(Error::Unreadable {
            file: "model.safetensors".into(),
            reason: "there is no such file".into(),
        });
    }
    Ok(files)
}

/// Checks one file's header and size; returns the bytes of each tensor.
pub fn check(path: &Path) -> Result<BTreeMap<String, u64>> {
    let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let size = file.metadata().map_err(|error| unreadable(path, &error))?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length)
        .map_err(|_| broken(path, "it ends before its header"))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length + 8 > size {
        return Err(broken(path, format!("its header claims {length} bytes and the file has {size}")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(|error| unreadable(path, &error))?;
    let header: Value = serde_json::from_slice(&header).map_err(|error| broken(path, format!("its header is not JSON ({error})")))?;
    let entries = header.as_object().ok_or_else(|| broken(path, "its header is not a JSON object"))?;
    let data = size - 8 - length;
    entries
        .iter()
        .filter(|(name, _)| *name != "__metadata__")
        .map(|(name, entry)| {
            let bytes = check_entry(entry, data).map_err(|reason| broken(path, format!("`{name}` {reason}")))?;
            Ok((name.clone(), bytes))
        })
        .collect()
}

fn check_entry(entry: &Value, data: u64) -> std::result::Result<u64, String> {
    let dtype = entry.get("dtype").and_then(Value::as_str).ok_or("has no type")?;
    let width: u64 = match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" => 1,
        "U16" | "I16" | "F16" | "BF16" => 2,
        "U32" | "I32" | "F32" => 4,
        "U64" | "I64" | "F64" => 8,
        other => return Err(format!("has the unknown type {other}")),
    };
    let numbers = |field: &str| -> Option<Vec<u64>> { entry.get(field)?.as_array()?.iter().map(Value::as_u64).collect() };
    let shape = numbers("shape").ok_or("has no shape")?;
    let offsets = numbers("data_offsets").ok_or("has no place in the file")?;
    let [start, end] = offsets[..] else {
        return Err("has no place in the file".into());
    };
    if start > end || end > data {
        return Err(format!("ends at byte {end} of {data}: the file is cut short"));
    }
    let elements = shape.iter().try_fold(1u64, |product, length| product.checked_mul(*length));
    let wanted = elements.and_then(|elements| elements.checked_mul(width));
    if wanted != Some(end - start) {
        return Err(format!("has {} bytes, which do not fit its shape {shape:?}", end - start));
    }
    Ok(end - start)
}

fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Unreadable {
        file: name(path),
        reason: error.to_string(),
    }
}

fn broken(path: &Path, reason: impl Into<String>) -> Error {
    Error::BrokenFile {
        file: name(path),
        reason: reason.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_index_leads_to_files_beside_it_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("model.safetensors.index.json");
        for (name, fine) in [
            ("model-1.safetensors", true),
            ("../secret.safetensors", false),
            ("/etc/passwd", false),
            ("..", false),
        ] {
            std::fs::write(&index, serde_json::json!({"weight_map": {"a": name}}).to_string()).unwrap();
            let found = shards(folder.path());
            assert_eq!(found.is_ok(), fine, "{name}: {found:?}");
        }
    }
}
