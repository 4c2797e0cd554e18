//! GGUF files that Ollama and LM Studio have on this computer. Nothing of theirs is written.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use checkpoint::gguf::{check_gguf, split_of};
use directories::BaseDirs;
use serde::Deserialize;

/// The longest manifest of Ollama that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// How many folders below each other are looked into: a host, an owner, a model and a tag.
const DEPTH: u32 = 4;

/// The most files of a program that are listed.
const MOST: usize = 2000;

/// The host that Ollama does not write, and the owner.
const OLLAMA_HOST: &str = "registry.ollama.ai";
const OLLAMA_OWNER: &str = "library";

/// A model of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufModel {
    /// Its name here: `ollama:NAME:TAG`, or `lmstudio:` and its path in LM Studio's folder.
    pub reference: String,
    /// A name for its folder.
    pub name: String,
    /// The file, or the first of its parts.
    pub path: PathBuf,
    /// Bytes of all its parts.
    pub bytes: u64,
    /// The reason why it cannot be imported.
    pub problem: Option<String>,
}

/// The folders of other programs.
#[derive(Debug, Clone, Default)]
pub struct OtherPrograms {
    /// Folders with `manifests` and `blobs`.
    pub ollama: Vec<PathBuf>,
    /// Folders of LM Studio's models.
    pub lm_studio: Vec<PathBuf>,
}

impl OtherPrograms {
    /// The folders of this computer, whether they are there or not.
    pub fn of_this_computer() -> Self {
        let home = BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
        let below = |path: &str| home.as_ref().map(|home| home.join(path));
        let set = env::var_os("OLLAMA_MODELS").filter(|folder| !folder.is_empty());
        // Linux packages of Ollama run as a user of their own.
        let shared = cfg!(target_os = "linux").then(|| PathBuf::from("/usr/share/ollama/.ollama/models"));
        let ollama = [set.map(PathBuf::from), below(".ollama/models"), shared];
        let lm_studio = [".lmstudio/models", ".cache/lm-studio/models"].map(below);
        Self {
            ollama: ollama.into_iter().flatten().collect(),
            lm_studio: lm_studio.into_iter().flatten().collect(),
        }
    }

    /// All models, by their references. Headers are read, weights are not, and tokens are not looked at.
    pub fn models(&self) -> Vec<GgufModel> {
        let mut models: Vec<GgufModel> = self.ollama.iter().flat_map(|folder| ollama(folder)).collect();
        models.extend(self.lm_studio.iter().flat_map(|folder| lm_studio(folder)));
        models.sort_by(|one, other| one.reference.cmp(&other.reference));
        models.dedup_by(|one, other| one.reference == other.reference);
        models
    }

    /// The model of this reference; the tag `latest` may be left out.
    pub fn find(&self, reference: &str) -> Option<GgufModel> {
        let latest = format!("{reference}:latest");
        let mut models = self.models();
        models.retain(|model| model.reference == reference || model.reference == latest);
        models.into_iter().next()
    }
}

/// Ollama's description of a model.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

fn ollama(folder: &Path) -> Vec<GgufModel> {
    let mut manifests = Vec::new();
    files_below(&folder.join("manifests"), DEPTH, &mut manifests);
    manifests
        .iter()
        .filter_map(|manifest| ollama_model(folder, manifest))
        .collect()
}

fn ollama_model(folder: &Path, manifest: &Path) -> Option<GgufModel> {
    let inside = manifest.strip_prefix(folder.join("manifests")).ok()?;
    let parts: Option<Vec<&str>> = inside.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let (tag, path) = parts.split_last()?;
    let path = match path {
        [OLLAMA_HOST, OLLAMA_OWNER, rest @ ..] | [OLLAMA_HOST, rest @ ..] | rest => rest.join("/"),
    };
    let mut text = String::new();
    File::open(manifest)
        .ok()?
        .take(LONGEST)
        .read_to_string(&mut text)
        .ok()?;
    let manifest: Manifest = serde_json::from_str(&text).ok()?;
    let of = |kind: &str| {
        let end = format!("image.{kind}");
        manifest
            .layers
            .iter()
            .filter(move |layer| layer.media_type.ends_with(&end))
    };
    let (reference, name) = (format!("ollama:{path}:{tag}"), format!("{path}-{tag}"));
    let broken = |problem: &str| GgufModel {
        reference: reference.clone(),
        name: folder_name(&name),
        path: PathBuf::new(),
        bytes: 0,
        problem: Some(problem.to_owned()),
    };
    let Some(layer) = of("model").next() else {
        return Some(broken("it has no weights on this computer"));
    };
    let Some(hash) = layer.digest.strip_prefix("sha256:").filter(|hash| is_hash(hash)) else {
        return Some(broken("its description names no file"));
    };
    let blob = folder.join("blobs").join(format!("sha256-{hash}"));
    let mut model = described(reference.clone(), &name, blob);
    if of("adapter").next().is_some() {
        model.problem = Some("it is a model with an adapter, which cannot be imported".to_owned());
    }
    Some(model)
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn lm_studio(folder: &Path) -> Vec<GgufModel> {
    let mut found = Vec::new();
    files_below(folder, DEPTH, &mut found);
    let models = found.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let stem = name.strip_suffix(".gguf").filter(|stem| !stem.starts_with("mmproj"))?;
        let split = split_of(&path);
        // The first part stands for all.
        if split.is_some() && !name.contains("-00001-of-") {
            return None;
        }
        let stem = split.map_or_else(|| stem.to_owned(), |(stem, _)| stem);
        let inside = path.strip_prefix(folder).ok()?.with_file_name(&stem);
        Some(described(format!("lmstudio:{}", inside.to_str()?), &stem, path.clone()))
    });
    models.collect()
}

/// A name for the folder of a file, or of the parts of one.
pub fn gguf_name(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = split_of(path).map(|(stem, _)| stem).or(stem);
    folder_name(&stem.unwrap_or_default())
}

fn described(reference: String, name: &str, path: PathBuf) -> GgufModel {
    let (bytes, problem) = match check_gguf(&path) {
        Ok(file) => (file.bytes, None),
        Err(reason) => (
            fs::metadata(&path).map_or(0, |meta| meta.len()),
            Some(reason.to_string()),
        ),
    };
    GgufModel {
        reference,
        name: folder_name(name),
        path,
        bytes,
        problem,
    }
}

/// The name of a model as one of a folder.
fn folder_name(name: &str) -> String {
    let kept = |c: char| {
        if c.is_alphanumeric() || "-_. ".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_matches(|c: char| c == '.' || c == ' ');
    match name.is_empty() {
        true => "model".to_owned(),
        false => name.to_owned(),
    }
}

/// Files in a folder and those below it. Links to folders are not followed.
fn files_below(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let Some(kind) = entry.file_type().ok().filter(|_| !hidden && found.len() < MOST) else {
            continue;
        };
        match kind.is_dir() {
            true if depth > 0 => files_below(&entry.path(), depth - 1, found),
            true => {}
            false => found.push(entry.path()),
        }
    }
}
