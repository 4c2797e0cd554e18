//! The files of a model that are neither weights nor config.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use checkpoint::WEIGHT_INDEX;
use serde_json::Value;

/// Ends of the names of weights, in every format; of the originals, none is copied.
const WEIGHTS: [&str; 12] = [
    ".safetensors",
    ".bin",
    ".pth",
    ".pt",
    ".gguf",
    ".onnx",
    ".onnx_data",
    ".h5",
    ".msgpack",
    ".ckpt",
    ".npz",
    ".index.json",
];

/// How many folders below each other are looked into.
const MOST_DEPTH: u32 = 4;

/// The most files that are copied.
const MOST_FILES: usize = 10_000;

/// A file beside the weights, by its path in the folder.
pub struct OtherFile {
    pub path: PathBuf,
    pub bytes: u64,
}

/// The files of a model's folder that its copy has too, links followed: all but weights, `config.json`, and hidden
/// ones. Layers of embedding models, which `modules.json` names, are no weights of the model itself and are copied.
pub fn other_files(folder: &Path) -> io::Result<Vec<OtherFile>> {
    let mut found = Vec::new();
    collect(folder, Path::new(""), &modules(folder), &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn collect(folder: &Path, inside: &Path, modules: &[PathBuf], found: &mut Vec<OtherFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(inside))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = inside.join(&name);
        let name = name.to_string_lossy().to_lowercase();
        if name.starts_with('.') || (inside.as_os_str().is_empty() && name == "config.json") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if inside.components().count() < MOST_DEPTH as usize {
                collect(folder, &path, modules, found)?;
            }
            continue;
        }
        let is_weight = WEIGHTS.iter().any(|end| name.ends_with(end)) || name == WEIGHT_INDEX;
        let is_module = !inside.as_os_str().is_empty() && modules.iter().any(|module| module == inside);
        let meta = fs::metadata(folder.join(&path))?;
        if meta.is_file() && (!is_weight || is_module) {
            let bytes = meta.len();
            found.push(OtherFile { path, bytes });
        }
        if found.len() > MOST_FILES {
            return Err(io::Error::other(format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// The folders that `modules.json` names.
fn modules(folder: &Path) -> Vec<PathBuf> {
    let named = fs::read(folder.join("modules.json"))
        .ok()
        .and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let entries = named.as_ref().and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.get("path")?.as_str()?.into()))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_weights_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "[{\"path\": \"2_Dense\"}]").unwrap();
        };
        for path in [
            "config.json",
            "model.safetensors",
            "model-00001-of-00002.safetensors",
            "model.safetensors.index.json",
            "pytorch_model.bin.index.json",
            "original/consolidated.00.pth",
            ".complete",
            ".git/config",
            "onnx/model.onnx",
        ] {
            write(path);
        }
        let copied = [
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "README.md",
            "chat_template.jinja",
            "modules.json",
            "original/params.json",
            "tokenizer.json",
        ];
        copied.iter().for_each(|path| write(path));
        let found = other_files(folder.path()).unwrap();
        let paths: Vec<&str> = found.iter().map(|file| file.path.to_str().unwrap()).collect();
        assert_eq!(paths, copied);
    }
}
