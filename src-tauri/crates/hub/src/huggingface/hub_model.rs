//! A model of the hub, judged by its small files: config, template, and the list of the others.

use api::HubModel;
use checkpoint::{check_compatibility, FileListing, ModelConfig};
use futures::future::try_join3;
use net::Purpose;
use prompt::Template;
use protocol::Reason;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cache::model_files::model_files;
use crate::cache::{Commit, FilePath, RepoFiles, Revision};
use crate::error::Error;
use crate::huggingface::hub_api::HubApi;
use crate::huggingface::summary::HubSummary;
use crate::huggingface::weight_bytes::weight_bytes;
use crate::local::inspect::bits;

/// Limit of a config.json, in bytes. One that names the quantization of each expert has 1 MB.
const LARGEST_CONFIG: u64 = 4 << 20;
/// Limit of a tokenizer_config.json, in bytes. Some list 250,000 tokens.
const LARGEST_TOKENIZER_CONFIG: u64 = 16 << 20;
/// Limit of a chat template, in bytes.
const LARGEST_TEMPLATE: u64 = 1 << 20;

/// The small files of a repository at a commit. Stored without a verdict, because a newer version of the app may judge
/// them differently.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RepoSnapshot {
    pub(crate) summary: HubModel,
    commit: String,
    config: Option<String>,
    /// `chat_template` and the special tokens of tokenizer_config.json; `None` if that was not read.
    tokenizer_config: Option<String>,
    /// chat_template.jinja, or the text in chat_template.json.
    template: Option<String>,
    /// Names of all files.
    names: Vec<String>,
    /// Bytes of the files that a download fetches.
    bytes: u64,
    /// Bytes of the weights that the text model reads.
    pub(crate) weights: u64,
    /// The reason why the files were not read.
    refused: Option<protocol::Error>,
}

impl RepoSnapshot {
    /// Reads the small files of a model at a commit.
    ///
    /// # Errors
    /// Whatever keeps the hub from answering. A repository that no honest model has is no error: the reason is stored.
    pub(crate) async fn fetch(api: &HubApi, summary: &HubSummary, commit: Commit) -> Result<Self, Error> {
        let mut snapshot = Self {
            summary: summary.model.clone(),
            commit: commit.to_string(),
            config: None,
            tokenizer_config: None,
            template: None,
            names: Vec::new(),
            bytes: 0,
            weights: 0,
            refused: None,
        };
        let revision = Revision::new(commit.as_str())?;
        let listing = match api.repo_files(&summary.id, &revision, Purpose::FileList).await {
            Ok(listing) => listing,
            Err(error @ (Error::Name { .. } | Error::TooManyFiles(_))) => {
                snapshot.refused = Some(error.into());
                return Ok(snapshot);
            }
            Err(error) => return Err(error),
        };
        snapshot.names = listing.files.iter().map(|file| file.path.to_string()).collect();
        let wanted = model_files(listing.files.iter().map(|file| file.path.as_str()));
        for file in listing.files.iter().filter(|file| wanted.contains(file.path.as_str())) {
            snapshot.bytes = snapshot.bytes.saturating_add(file.bytes);
            if file.path.as_str().ends_with(".safetensors") {
                snapshot.weights = snapshot.weights.saturating_add(file.bytes);
            }
        }
        let own_template = ["chat_template.jinja", "chat_template.json"]
            .into_iter()
            .find(|name| size_of(&listing, name).is_some());
        let tokenizer_config = own_template.is_none().then_some("tokenizer_config.json");
        let read = try_join3(
            small_file(api, summary, &listing, Some("config.json"), LARGEST_CONFIG),
            small_file(api, summary, &listing, own_template, LARGEST_TEMPLATE),
            small_file(api, summary, &listing, tokenizer_config, LARGEST_TOKENIZER_CONFIG),
        );
        match read.await {
            Ok((config, template, tokenizer_config)) => {
                snapshot.config = config;
                snapshot.template = template.and_then(|text| match own_template {
                    Some("chat_template.json") => template_in(&text),
                    _ => Some(text),
                });
                snapshot.tokenizer_config = tokenizer_config.map(|text| essential_part(&text));
            }
            Err(error @ Error::FileTooLarge { .. }) => snapshot.refused = Some(error.into()),
            // Its list and size can be shown; the rest waits until the terms are accepted.
            Err(Error::Gated { .. } | Error::NotOnHub(_)) => snapshot.summary.gated = true,
            Err(error) => return Err(error),
        }
        if snapshot.config.as_deref().is_some_and(is_multimodal) {
            snapshot.weights = weight_bytes(api, &summary.id, &listing).await;
        }
        Ok(snapshot)
    }

    /// True if these are the files of this commit, which never change, and nothing is left to be read of them. A model
    /// whose terms were not accepted is read again.
    pub(crate) fn is_complete_at(&self, commit: &Commit) -> bool {
        self.commit == commit.as_str() && (self.config.is_some() || self.refused.is_some())
    }

    /// The config and the bytes of the weights, for an estimate; `None` if the config was not read.
    ///
    /// # Errors
    /// [`Error::WillNotRun`] for a config that cannot be used.
    pub(crate) fn config(self) -> Option<Result<(ModelConfig, u64), Error>> {
        let config = ModelConfig::parse(&self.config?).map_err(Error::from);
        Some(config.map(|config| (config, self.weights)))
    }
}

/// The text of a file of the list; `None` if the list has no such file.
async fn small_file(
    api: &HubApi,
    summary: &HubSummary,
    listing: &RepoFiles,
    name: Option<&str>,
    limit: u64,
) -> Result<Option<String>, Error> {
    let Some((name, bytes)) = name.and_then(|name| Some((name, size_of(listing, name)?))) else {
        return Ok(None);
    };
    if bytes > limit {
        return Err(Error::FileTooLarge {
            path: name.to_owned(),
            bytes,
            limit,
        });
    }
    let path = FilePath::new(name)?;
    let text = api.text(&summary.id, &listing.commit, &path, limit, Purpose::ModelInfo);
    text.await.map(Some)
}

/// The file that lists the parts of a pipeline of diffusers.
const PIPELINE: &str = "model_index.json";

/// The model as windows show it, and its config if the model can run here.
pub(crate) fn assess(snapshot: RepoSnapshot) -> (HubModel, Option<ModelConfig>) {
    let config = snapshot.config.as_deref().unwrap_or_default();
    let verdict = check_compatibility(&FileListing {
        config,
        tokenizer_config: snapshot.tokenizer_config.as_deref(),
        files: &snapshot.names,
        card: snapshot.summary.kind,
    });
    let parsed = verdict.as_ref().ok().cloned();
    let parsed = parsed.or_else(|| ModelConfig::parse(config).ok());
    let has = |file: &str| snapshot.names.iter().any(|name| name == file);
    let unread = snapshot.summary.gated && snapshot.config.is_none();
    let problem = match (snapshot.refused, verdict) {
        (Some(refused), _) => Some(refused),
        // Its terms are not accepted yet, so no reason against it is known.
        (None, Err(_)) if unread => None,
        (None, Err(_)) if has(PIPELINE) => {
            let message =
                "this is a pipeline of diffusers, which makes images or videos; Ponder runs models that write text \
                           or embed it";
            Some(protocol::Error::because(Reason::ModelTask, message).with("file", PIPELINE))
        }
        (None, Err(_)) if !has("config.json") => {
            let message = "there is no config.json, so it is no model that can be run here";
            Some(protocol::Error::because(Reason::ModelFormat, message).with("file", "config.json"))
        }
        (None, Err(unfit)) => Some(unfit.into()),
        (None, Ok(_)) => None,
    };
    let runs = problem.is_none();
    let read_template = || template(snapshot.template, snapshot.tokenizer_config.as_deref());
    let template = runs.then(read_template).flatten();
    let model_type = parsed.as_ref().map(|config| config.model_type.clone());
    let model = HubModel {
        bytes: Some(snapshot.bytes)
            .filter(|bytes| *bytes > 0)
            .or(snapshot.summary.bytes),
        quantization: parsed.as_ref().map(bits).or(snapshot.summary.quantization),
        context: parsed.as_ref().map(|config| config.context),
        kind: parsed.as_ref().map_or(snapshot.summary.kind, |config| config.kind),
        family: model_type.or(snapshot.summary.family),
        thinking: template.map(|template| template.thinking_control()),
        problem,
        described: true,
        commit: Some(snapshot.commit),
        ..snapshot.summary
    };
    (model, parsed.filter(|_| runs))
}

/// The template that a chat would use; `None` if there is none or it cannot be parsed.
fn template(own: Option<String>, tokenizer_config: Option<&str>) -> Option<Template> {
    let config: Option<Value> = tokenizer_config.and_then(|text| serde_json::from_str(text).ok());
    let config = config.unwrap_or_default();
    let source = own
        .map(Value::String)
        .or_else(|| config.get("chat_template").cloned())?;
    let mut tokens: Map<String, Value> = config.as_object().cloned().unwrap_or_default();
    tokens.retain(|name, value| name.ends_with("_token") && value.is_string());
    Template::new(&source, tokens).ok()
}

/// True if the files hold parts that the text model does not read, so that only their headers tell what it reads.
fn is_multimodal(config: &str) -> bool {
    config.contains("vision_config") || config.contains("audio_config")
}

fn size_of(listing: &RepoFiles, name: &str) -> Option<u64> {
    let mut files = listing.files.iter();
    files.find(|file| file.path.as_str() == name).map(|file| file.bytes)
}

fn template_in(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value["chat_template"].as_str().map(str::to_owned)
}

/// The part of a tokenizer_config.json that is read again. The rest, mostly lists of tokens, may have megabytes.
fn essential_part(text: &str) -> String {
    let Ok(Value::Object(config)) = serde_json::from_str(text) else {
        return "{}".into();
    };
    let kept: Map<String, Value> = config
        .into_iter()
        .filter(|(name, value)| {
            name == "chat_template" || (name.ends_with("_token") && (value.is_string() || value.is_object()))
        })
        .map(|(name, value)| match value.get("content") {
            Some(content) if name != "chat_template" => (name, content.clone()),
            _ => (name, value),
        })
        .collect();
    Value::Object(kept).to_string()
}
