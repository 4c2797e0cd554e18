//! The files of a repository that a model needs.

use std::collections::BTreeSet;

use checkpoint::embedding::MODULES;
use checkpoint::{weight_files_of_repository, WEIGHT_INDEX};

/// Names at the top of a repository that describe the model or its terms of use.
const NAMES: [&str; 9] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "tiktoken.model",
    "chat_template.jinja",
    WEIGHT_INDEX,
];

/// The files to fetch, out of all paths of a repository: config, tokenizer, templates, weights, card and license.
/// Weights in other formats, a second copy of the weights, programs and images are left out.
pub fn model_files<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let paths: BTreeSet<&str> = paths.into_iter().collect();
    let weights = weight_files_of_repository(&paths);
    let embeds = paths.contains(MODULES);
    paths
        .iter()
        .copied()
        .filter(|path| weights.contains(path) || describes(path) || (embeds && is_of_module(path)))
        .collect()
}

/// True for files of the modules after an embedding model, such as `1_Pooling/config.json` and
/// `2_Dense/model.safetensors`.
fn is_of_module(path: &str) -> bool {
    let numbered = |folder: &str| {
        folder
            .split_once('_')
            .is_some_and(|(number, _)| number.parse::<u8>().is_ok())
    };
    path.split_once('/')
        .is_some_and(|(folder, name)| numbered(folder) && matches!(name, "config.json" | "model.safetensors"))
}

/// True for a file that is no weights and is needed.
fn describes(path: &str) -> bool {
    if let Some((folder, name)) = path.rsplit_once('/') {
        return folder == "additional_chat_templates" && name.ends_with(".jinja");
    }
    let lower = path.to_ascii_lowercase();
    // The index of a second copy, such as consolidated weights, only says where those are.
    let foreign_index = lower.ends_with(".safetensors.index.json") && path != WEIGHT_INDEX;
    NAMES.contains(&path)
        || (!path.starts_with('.') && path.ends_with(".json") && !foreign_index)
        || (!path.starts_with('.') && (path.ends_with(".jinja") || path.ends_with(".tiktoken")))
        || ["readme", "license", "licence", "notice", "use_policy"]
            .iter()
            .any(|name| lower.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out<'a>(paths: &[&'a str]) -> Vec<&'a str> {
        let kept = model_files(paths.iter().copied());
        paths.iter().copied().filter(|path| !kept.contains(path)).collect()
    }

    #[test]
    fn a_converted_model_is_fetched_whole() {
        let paths = [
            "README.md",
            "added_tokens.json",
            "chat_template.jinja",
            "config.json",
            "generation_config.json",
            "merges.txt",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.json",
        ];
        assert_eq!(left_out(&paths), [] as [&str; 0]);
        assert_eq!(
            left_out(&[".gitattributes", "config.json", "model.safetensors"]),
            [".gitattributes"]
        );
        assert_eq!(left_out(&["config.json", "weights.00.safetensors"]), [] as [&str; 0]);
    }

    #[test]
    fn an_embedding_model_is_fetched_with_its_modules() {
        let paths = [
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "2_Dense/pytorch_model.bin",
            "config.json",
            "config_sentence_transformers.json",
            "model.safetensors",
            "modules.json",
            "onnx/config.json",
            "tokenizer.json",
        ];
        assert_eq!(left_out(&paths), ["2_Dense/pytorch_model.bin", "onnx/config.json"]);
        // In other repositories such folders mean nothing.
        assert_eq!(
            left_out(&["1_Pooling/config.json", "config.json", "model.safetensors"]),
            ["1_Pooling/config.json"]
        );
    }

    #[test]
    fn second_copies_other_formats_programs_and_images_are_left_out() {
        let extra = [
            "consolidated.safetensors",
            "consolidated.safetensors.index.json",
            "model.fp16.safetensors",
            "modeling_x.py",
            "onnx/model.onnx",
            "original/consolidated.00.pth",
            "metal/model.safetensors",
            "pytorch_model-00001-of-00002.bin",
            "model-q4.gguf",
            "image.png",
        ];
        let mut paths = vec![
            "config.json",
            "model.safetensors",
            "LICENSE",
            "additional_chat_templates/tool.jinja",
        ];
        paths.extend(extra);
        assert_eq!(left_out(&paths), extra);
        let sharded = [
            "model-00001-of-00001.safetensors",
            "model.safetensors.index.json",
            "model.safetensors",
        ];
        assert_eq!(left_out(&sharded), ["model.safetensors"]);
    }
}
