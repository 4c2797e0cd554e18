//! Adapters on this computer, and the models that they belong to.

use std::path::{Path, PathBuf};

use checkpoint::{Adapter, ADAPTER_CONFIG};
use protocol::FolderSource;

use crate::error::Error;

/// Parts at the end of a conversion's name that its original does not have.
const FORMATS: [&str; 16] = [
    "mlx", "bf16", "fp16", "f16", "fp32", "f32", "mxfp4", "mxfp8", "nvfp4", "dwq", "awq", "gptq", "hf", "qat", "gs32",
    "gs64",
];

/// True for the folder of an adapter, which is no model by itself.
pub(crate) fn is_adapter(folder: &Path) -> bool {
    folder.join(ADAPTER_CONFIG).is_file() && !folder.join("config.json").is_file()
}

/// The model that the adapter in this folder belongs to, with the adapter: the one that its config names, or a
/// conversion of that.
///
/// # Errors
/// [`Error::WillNotRun`] if the adapter cannot be read, [`Error::NoBase`] if no such model is on this computer.
pub(crate) fn with_base(adapter: &FolderSource, models: &[&FolderSource]) -> Result<FolderSource, Error> {
    let read = Adapter::read(&adapter.path).map_err(Error::from)?;
    let base = read.base.unwrap_or_default();
    let found = base_of(&base, models).ok_or_else(|| Error::NoBase {
        adapter: adapter.reference.clone(),
        base,
    })?;
    Ok(added(found, adapter.path.clone(), adapter.reference.clone()))
}

/// A model with the adapter in this folder, under a reference of its own.
pub(crate) fn added(base: &FolderSource, adapter: PathBuf, reference: String) -> FolderSource {
    FolderSource {
        reference,
        adapter: Some(adapter),
        ..base.clone()
    }
}

/// The model of this name or folder; else the first whose name differs in its format alone.
fn base_of<'a>(base: &str, models: &[&'a FolderSource]) -> Option<&'a FolderSource> {
    let sources = || models.iter().copied().filter(|source| !is_adapter(&source.path));
    let folder = Path::new(base).canonicalize().ok().filter(|_| !base.is_empty());
    let same = |source: &&FolderSource| {
        source.reference.eq_ignore_ascii_case(base) || folder.as_deref().is_some_and(|folder| source.path == folder)
    };
    let stem = stem(base);
    let converted = |source: &&FolderSource| !stem.is_empty() && self::stem(&source.reference) == stem;
    sources().find(same).or_else(|| sources().find(converted))
}

/// The last part of a model's name in small letters, without the format of its weights.
fn stem(name: &str) -> String {
    let last = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .to_lowercase();
    let mut parts: Vec<&str> = last.split(['-', '_']).collect();
    let is_format = |part: &str| {
        let bits = part.strip_suffix("bit").or_else(|| part.strip_suffix("bits"));
        FORMATS.contains(&part) || bits.is_some_and(|bits| bits.parse::<u8>().is_ok())
    };
    while parts.len() > 1 && parts.last().is_some_and(|part| is_format(part)) {
        parts.pop();
    }
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn conversions_have_the_stem_of_their_original() {
        for (name, original) in [
            ("mlx-community/Qwen3-4B-4bit", "Qwen/Qwen3-4B"),
            (
                "mlx-community/Llama-3.2-1B-Instruct-bf16",
                "meta-llama/Llama-3.2-1B-Instruct",
            ),
            ("lmstudio-community/gpt-oss-20b-MLX-8bit", "openai/gpt-oss-20b"),
            ("/models/SmolLM2_135M_mxfp4/", "HuggingFaceTB/SmolLM2-135M"),
        ] {
            assert_eq!(stem(name), stem(original));
        }
        assert_ne!(stem("Qwen/Qwen3-4B"), stem("Qwen/Qwen3-8B"));
        assert_ne!(stem("Qwen/Qwen3-4B"), stem("Qwen/Qwen3-4B-Instruct-2507"));
        assert_eq!(stem("4bit"), "4bit");
    }
}
