//! The compatibility of a model, told from its config.json and the names of its files before anything else is fetched.
//! The loader and the list of models ask the same question.

use std::path::Path;

use protocol::ModelKind;
use serde_json::Value;

use crate::config::Family;
use crate::error::Error;
use crate::families::VisionConfig;
use crate::files::{is_weight_file, parse_json, weight_files, weight_map, Header, ModelCard};
use crate::files::{tower_tensor, without_wrappers};
use crate::image_processor::ImageProcessor;
use crate::model::config::ModelConfig;
use crate::model::embedding::{MODULES, POOLED_BY_LAST_TOKEN};

/// A model's repository or folder, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct FileListing<'a> {
    /// The text of `config.json`.
    pub config: &'a str,
    /// The text of `tokenizer_config.json`, once it is known.
    pub tokenizer_config: Option<&'a str>,
    /// The names of all files.
    pub files: &'a [String],
    /// The purpose by its card and its name.
    pub card: ModelKind,
}

/// The config of a model that will run.
///
/// # Errors
/// The first reason why it will not. Facts that only the weights, the tokenizer or the template tell are left to the
/// loader: a file that is cut short, a shape that does not fit, a template that does not compile.
pub fn check_compatibility(listing: &FileListing<'_>) -> Result<ModelConfig, Error> {
    let config = parse_json(listing.config).map_err(|error| Error::NotJson(error.to_string()))?;
    if let Some(file) = config.get("model_file").and_then(Value::as_str) {
        return Err(Error::CustomCode(format!("`{file}`")));
    }
    let mut parsed = ModelConfig::parse(listing.config).map_err(|error| match error {
        // Families that are known are built here, whatever code transformers once needed for them.
        Error::UnknownFamily { model_type, .. } if config.get("auto_map").is_some_and(|map| !map.is_null()) => {
            Error::CustomCode(format!("models of type `{model_type}`"))
        }
        error => error,
    })?;
    if parsed.kind == ModelKind::Draft {
        // Tokens are those of the model that it drafts for.
        return check_weights(listing).map(|()| parsed);
    }
    // Newer rerankers of sentence-transformers have its list of modules, too.
    if parsed.kind != ModelKind::Reranker && listing.files.iter().any(|file| file == MODULES) {
        if matches!(parsed.family, Family::Gemma4(_)) {
            return Err(Error::Unsupported(format!(
                "embeddings of models of type `{}`",
                parsed.model_type
            )));
        }
        parsed = parsed.for_embeddings();
    } else if listing.card == ModelKind::Embedding
        && matches!(parsed.family, Family::Decoder(_))
        && parsed.kind == ModelKind::Chat
    {
        if parsed.model_type != POOLED_BY_LAST_TOKEN {
            return Err(Error::MissingFile(MODULES));
        }
        parsed = parsed.for_embeddings();
    }
    let embeds = parsed.kind != ModelKind::Chat;
    if let Some(task) = other_task(&config).filter(|_| !embeds) {
        return Err(Error::NotGenerative(task));
    }
    check_files(listing, embeds)?;
    Ok(parsed)
}

/// [`check_compatibility`] of a folder on this computer.
pub fn check_folder(dir: &Path) -> Result<ModelConfig, Error> {
    let path = dir.join("config.json");
    let config = std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })?;
    let entries = std::fs::read_dir(dir).map_err(|source| Error::Unreadable {
        path: dir.to_owned(),
        source,
    })?;
    let files: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| dir.join(name).is_file())
        .collect();
    let mut config = check_compatibility(&FileListing {
        config: &config,
        tokenizer_config: std::fs::read_to_string(dir.join("tokenizer_config.json"))
            .ok()
            .as_deref(),
        files: &files,
        card: ModelCard::read(dir).kind(),
    })?;
    // Conversions for text alone keep the description of what they leave out. If the files cannot be read, the loader
    // says why.
    if (config.vision.is_some() || config.vision_problem.is_some()) && !has_tensor(dir, begins_tower).unwrap_or(false) {
        (config.vision, config.vision_problem) = (None, None);
    }
    if let Some((part, named)) = config.vision.as_ref().and_then(VisionConfig::must_have) {
        if !has_tensor(dir, |name| name.contains(part)).unwrap_or(true) {
            config.vision = None;
            config.vision_problem = Some(format!("this conversion has left out {named}"));
        }
    }
    if let Family::Decoder(decoder) = &mut config.family {
        if config.vision.is_none()
            && decoder.has_cross_attention()
            && !has_tensor(dir, |name| name.contains(".cross_attn")).unwrap_or(true)
        {
            decoder.leave_out_cross_attention();
        }
    }
    Ok(config)
}

/// The image processor of the model in a folder; `None` if it reads text alone, because its weights have no vision
/// encoder.
///
/// # Errors
/// As [`check_folder`], and [`Error::Vision`] if there is a tower and its description cannot be read.
pub fn vision_support(dir: &Path) -> Result<Option<ImageProcessor>, Error> {
    let parsed = check_folder(dir)?;
    if let Some(problem) = parsed.vision_problem {
        return Err(Error::Vision(problem));
    }
    if parsed.vision.is_none() {
        return Ok(None);
    }
    let path = dir.join("config.json");
    let config = std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })?;
    let config = parse_json(&config).map_err(|error| Error::NotJson(error.to_string()))?;
    let processor = ImageProcessor::read(dir, &config)
        .and_then(|found| found.ok_or(Error::MissingFile("preprocessor_config.json")));
    processor.map(Some).map_err(|error| Error::Vision(error.to_string()))
}

/// True for the first tensor of a vision encoder, which projects patches or convolves pixels. Some conversions leave
/// other parts of one behind.
fn begins_tower(name: &str) -> bool {
    let begins = |short: &str| {
        short.starts_with("img_projector.")
            || (short.starts_with("vision_") && (short.contains("patch") || short.contains("conv_stem")))
    };
    // The unified models of Gemma 4 embed patches without a tower.
    without_wrappers(name).starts_with("vision_embedder.") || tower_tensor(name).is_some_and(|short| begins(&short))
}

/// True if the weights in a folder have a tensor whose name fits.
fn has_tensor(dir: &Path, fits: impl Fn(&str) -> bool) -> Result<bool, Error> {
    if let Some(map) = weight_map(dir)? {
        return Ok(map.keys().any(|name| fits(name)));
    }
    for file in weight_files(dir)? {
        if Header::read(&dir.join(file))?.0.names().any(&fits) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first of `architectures`, if none of them writes text.
fn other_task(config: &Value) -> Option<String> {
    let names: Vec<&str> = config
        .get("architectures")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let writes = |name: &&str| {
        ["ForCausalLM", "ForConditionalGeneration", "LMHeadModel"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    match names.first() {
        Some(first) if !names.iter().any(writes) => Some((*first).to_owned()),
        _ => None,
    }
}

fn check_weights(listing: &FileListing<'_>) -> Result<(), Error> {
    let ends = |end: &str| listing.files.iter().any(|file| file.ends_with(end));
    if listing.files.iter().any(|file| is_weight_file(file)) {
        return Ok(());
    }
    let other = [".gguf", ".bin", ".pth", ".pt", ".npz", ".onnx", ".safetensors"]
        .into_iter()
        .find(|end| ends(end));
    Err(other.map_or(Error::MissingFile("model.safetensors"), Error::WeightFormat))
}

fn check_files(listing: &FileListing<'_>, embeds: bool) -> Result<(), Error> {
    let has = |name: &str| listing.files.iter().any(|file| file == name);
    check_weights(listing)?;
    if !has("tokenizer.json") {
        let other = ["tokenizer.model", "vocab.json", "tekken.json", "tiktoken.model"]
            .into_iter()
            .find(|name| has(name));
        return Err(other.map_or(Error::MissingFile("tokenizer.json"), Error::TokenizerFormat));
    }
    if embeds || has("chat_template.jinja") || has("chat_template.json") {
        return Ok(());
    }
    let inside = match listing.tokenizer_config {
        Some(text) => serde_json::from_str::<Value>(text)
            .is_ok_and(|config| config.get("chat_template").is_some_and(|one| !one.is_null())),
        // It may stand in there; who fetches it will know.
        None => has("tokenizer_config.json"),
    };
    if inside {
        Ok(())
    } else {
        Err(Error::NoTemplate)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PEBBLE: &str = include_str!("../../../../pebble/model/config.json");
    const FILES: [&str; 5] = [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ];

    fn verdict(config: &str, tokenizer_config: Option<&str>, files: &[&str]) -> Result<ModelConfig, Error> {
        of_card(ModelKind::Chat, config, tokenizer_config, files)
    }

    fn of_card(
        card: ModelKind,
        config: &str,
        tokenizer_config: Option<&str>,
        files: &[&str],
    ) -> Result<ModelConfig, Error> {
        let files: Vec<String> = files.iter().map(|&name| name.to_owned()).collect();
        check_compatibility(&FileListing {
            config,
            tokenizer_config,
            files: &files,
            card,
        })
    }

    fn with(field: &str, value: &str) -> String {
        PEBBLE.replacen('{', &format!("{{\"{field}\": {value},"), 1)
    }

    #[test]
    fn a_whole_model_of_a_known_family_will_run() {
        assert_eq!(verdict(PEBBLE, None, &FILES).unwrap().model_type, "gemma4");
        let own_code_of_old = with("auto_map", r#"{"AutoModel": "modeling_x.X"}"#);
        assert!(verdict(&own_code_of_old, None, &FILES).is_ok());
    }

    #[test]
    fn a_model_with_modules_makes_embeddings_and_needs_no_template() {
        let qwen = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1,
            "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64, "tie_word_embeddings": true}"#;
        let files = ["config.json", "model.safetensors", "tokenizer.json"];
        assert!(matches!(verdict(qwen, None, &files), Err(Error::NoTemplate)));
        let with_modules = [&files[..], &["modules.json"]].concat();
        assert_eq!(verdict(qwen, None, &with_modules).unwrap().kind, ModelKind::Embedding);
        let named = qwen.replace("Qwen3ForCausalLM", "Qwen3Model");
        assert_eq!(verdict(&named, None, &with_modules).unwrap().kind, ModelKind::Embedding);
        let bert = r#"{"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 64, "num_hidden_layers": 1,
            "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64}"#;
        assert_eq!(verdict(bert, None, &files).unwrap().kind, ModelKind::Embedding);
        assert_eq!(verdict(PEBBLE, None, &FILES).unwrap().kind, ModelKind::Chat);
    }

    #[test]
    fn a_card_tells_an_embedding_model_that_lost_its_modules() {
        let qwen = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1,
            "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64, "tie_word_embeddings": true}"#;
        let by_card = |config: &str| of_card(ModelKind::Embedding, config, None, &FILES);
        assert_eq!(by_card(qwen).unwrap().kind, ModelKind::Embedding);
        // How others are pooled, only the file says.
        assert!(matches!(
            by_card(&qwen.replace("qwen3", "llama")),
            Err(Error::MissingFile(MODULES))
        ));
    }

    #[test]
    fn code_that_comes_with_a_model_is_refused_by_name() {
        let error = verdict(&with("model_file", "\"mine.py\""), None, &FILES).unwrap_err();
        assert!(error.to_string().contains("mine.py"), "{error}");
        let unknown = r#"{"model_type": "novel9", "auto_map": {"AutoModel": "modeling_novel.Novel"}}"#;
        let error = verdict(unknown, None, &FILES).unwrap_err();
        assert!(
            matches!(error, Error::CustomCode(_)) && error.to_string().contains("novel9"),
            "{error}"
        );
    }

    #[test]
    fn a_model_that_does_not_write_says_what_it_is() {
        for (architecture, fit) in [
            ("Gemma4ForConditionalGeneration", true),
            ("Gemma4ForSequenceClassification", false),
            ("Gemma4Model", false),
        ] {
            let config = PEBBLE.replace("Gemma4ForConditionalGeneration", architecture);
            let verdict = verdict(&config, None, &FILES);
            assert_eq!(verdict.is_ok(), fit, "{architecture}");
        }
    }

    #[test]
    fn each_missing_file_has_its_own_reason() {
        let without = |name: &str| FILES.into_iter().filter(|file| *file != name).collect::<Vec<_>>();
        assert!(matches!(
            verdict(PEBBLE, None, &without("model.safetensors")),
            Err(Error::MissingFile("model.safetensors"))
        ));
        assert!(matches!(
            verdict(PEBBLE, None, &without("tokenizer.json")),
            Err(Error::MissingFile("tokenizer.json"))
        ));
        let gguf = [&without("model.safetensors")[..], &["model-q4.gguf"]].concat();
        assert!(matches!(
            verdict(PEBBLE, None, &gguf),
            Err(Error::WeightFormat(".gguf"))
        ));
        let pieces = [&without("tokenizer.json")[..], &["tokenizer.model"]].concat();
        assert!(matches!(
            verdict(PEBBLE, None, &pieces),
            Err(Error::TokenizerFormat("tokenizer.model"))
        ));
    }

    #[test]
    fn the_template_may_stand_in_the_tokenizers_config() {
        let files = &FILES[..4];
        assert!(verdict(PEBBLE, None, files).is_ok(), "nobody has looked into it yet");
        assert!(verdict(PEBBLE, Some(r#"{"chat_template": "{{ messages }}"}"#), files).is_ok());
        assert!(matches!(verdict(PEBBLE, Some("{}"), files), Err(Error::NoTemplate)));
        assert!(matches!(verdict(PEBBLE, None, &FILES[..3]), Err(Error::NoTemplate)));
    }
}
