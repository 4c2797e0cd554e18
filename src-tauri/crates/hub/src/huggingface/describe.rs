//! *Will it run?* A model of the hub, looked at through its small files: config, template, and the list of the others.

use std::time::Instant;

use api::{HubModel, MemoryFit};
use checkpoint::{check_compatibility, FileListing, ModelConfig};
use futures::future::try_join3;
use net::Purpose;
use prompt::Template;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cache::model_files::model_files;
use crate::cache::{Commit, FilePath, RepositoryId, Revision};
use crate::huggingface::card::unreachable;
use crate::huggingface::response_cache::CacheKind;
use crate::huggingface::summary::HubSummary;
use crate::local::inspect::bits;
use crate::memory_fit::{memory_fit, Memory, Question};
use crate::{Error, Hub, RepoFiles};

/// The most of a config.json that is read, in bytes; those that name the quantisation of each expert have 1 MB.
const LARGEST_CONFIG: u64 = 4 << 20;
/// The most of a tokenizer_config.json: some list 250,000 tokens.
const LARGEST_TOKENIZER_CONFIG: u64 = 16 << 20;
/// The most of a chat template.
const LARGEST_TEMPLATE: u64 = 1 << 20;
/// How long a summary from the hub is used without asking again, in seconds.
const LATELY: u64 = 600;
/// How many are remembered so.
const MOST_TOLD: usize = 2000;

/// What the hub has of a model, as it is stored, without a verdict: a newer version of the app may judge it differently.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RepoSnapshot {
    summary: HubModel,
    commit: String,
    config: Option<String>,
    /// `chat_template` and the special tokens of tokenizer_config.json; `None` if that was not read.
    tokenizer_config: Option<String>,
    /// chat_template.jinja, or the text in chat_template.json.
    template: Option<String>,
    /// Names of all files.
    names: Vec<String>,
    /// Bytes of the files that would be fetched.
    bytes: u64,
    /// Bytes of the weights that the text model reads.
    weights: u64,
    /// Why it was not looked at further.
    refused: Option<String>,
}

impl Hub {
    /// A model of the hub with everything that is known without fetching its weights. What was
    /// read of this commit before is not asked for again; if the hub cannot be reached, what was read last is given, with its date.
    ///
    /// # Errors
    /// [`Error::Name`] for what is no id, [`Error::NotOnHub`], and whatever keeps the hub from answering about a model that was never described before.
    pub async fn describe(&self, id: &str) -> Result<HubModel, Error> {
        self.describe_at(&RepositoryId::new(id)?, &Revision::main()).await
    }

    /// The same at a revision.
    pub(crate) async fn describe_at(&self, id: &RepositoryId, revision: &Revision) -> Result<HubModel, Error> {
        let key = if *revision == Revision::main() {
            id.to_string()
        } else {
            format!("{id}@{revision}")
        };
        let (snapshot, cached_at) = match self.snapshot(id, revision, &key).await {
            Ok(snapshot) => (snapshot, None),
            Err(error) if unreachable(&error) => {
                match self.response_cache().get::<RepoSnapshot>(CacheKind::Model, &key) {
                    Some((snapshot, at)) => (snapshot, Some(at)),
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let mut model = self.assessed(snapshot).await;
        model.cached_at = cached_at;
        model.revision = (*revision != Revision::main()).then(|| revision.to_string());
        Ok(model)
    }

    /// Every model that was ever looked at, with the time.
    pub(crate) async fn known_models(&self) -> Vec<HubModel> {
        let mut models = Vec::new();
        for (snapshot, at) in self.response_cache().all::<RepoSnapshot>(CacheKind::Model) {
            let mut model = self.assessed(snapshot).await;
            model.cached_at = Some(at);
            models.push(model);
        }
        models
    }

    /// The config and the bytes of the weights of a model that was described, to estimate with; `None` before that, an error
    /// if its config cannot be used.
    pub(crate) fn cached_config(&self, id: &str) -> Option<Result<(ModelConfig, u64), Error>> {
        let (snapshot, _) = self.response_cache().get::<RepoSnapshot>(CacheKind::Model, id)?;
        let config = ModelConfig::parse(&snapshot.config?).map_err(Error::from);
        Some(config.map(|config| (config, snapshot.weights)))
    }

    /// Keeps what the hub says of a model, so that describing what a search found does not ask for it again.
    pub(crate) fn keep_summary(&self, summary: &HubSummary) {
        let mut known = self.summaries();
        if known.len() >= MOST_TOLD {
            known.clear();
        }
        known.insert(summary.id.to_string(), (Instant::now(), summary.clone()));
    }

    /// What the hub tells of a model, not older than ten minutes.
    pub(crate) async fn recent_summary(&self, id: &RepositoryId) -> Result<HubSummary, Error> {
        let known = self.summaries().get(id.as_str()).cloned();
        if let Some((_, summary)) =
            known.filter(|(when, summary)| when.elapsed().as_secs() < LATELY && summary.commit.is_some())
        {
            if !self.net().is_offline() {
                return Ok(summary);
            }
        }
        let summary = HubSummary::read(&self.model_info(id, &Revision::main(), Purpose::ModelInfo).await?)?;
        self.keep_summary(&summary);
        Ok(summary)
    }

    async fn snapshot(&self, id: &RepositoryId, revision: &Revision, key: &str) -> Result<RepoSnapshot, Error> {
        let _one_of_few = self.looks().acquire().await;
        let summary = if *revision == Revision::main() {
            self.recent_summary(id).await?
        } else {
            HubSummary::read(&self.model_info(id, revision, Purpose::ModelInfo).await?)?
        };
        let commit = match &summary.commit {
            Some(commit) => commit.clone(),
            None => self.commit_of(id, revision, Purpose::ModelInfo).await?,
        };
        if let Some((snapshot, _)) = self.response_cache().get::<RepoSnapshot>(CacheKind::Model, key) {
            // The content of a commit never changes; a model whose terms were not accepted is asked for again.
            if snapshot.commit == commit.as_str() && (snapshot.config.is_some() || snapshot.refused.is_some()) {
                let snapshot = RepoSnapshot {
                    summary: summary.model,
                    ..snapshot
                };
                self.response_cache().put(CacheKind::Model, key, &snapshot);
                return Ok(snapshot);
            }
        }
        let snapshot = self.look(&summary, commit).await?;
        self.response_cache().put(CacheKind::Model, key, &snapshot);
        Ok(snapshot)
    }

    async fn look(&self, summary: &HubSummary, commit: Commit) -> Result<RepoSnapshot, Error> {
        let mut snapshot = RepoSnapshot {
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
        let listing = match self.repo_files(&summary.id, &revision, Purpose::FileList).await {
            Ok(listing) => listing,
            Err(error @ (Error::Name { .. } | Error::TooManyFiles { .. })) => {
                snapshot.refused = Some(error.to_string());
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
        let read = try_join3(
            self.small_file(summary, &listing, Some("config.json"), LARGEST_CONFIG),
            self.small_file(summary, &listing, own_template, LARGEST_TEMPLATE),
            self.small_file(
                summary,
                &listing,
                own_template.is_none().then_some("tokenizer_config.json"),
                LARGEST_TOKENIZER_CONFIG,
            ),
        );
        match read.await {
            Ok((config, template, tokenizer_config)) => {
                snapshot.config = config;
                snapshot.template = template.and_then(|text| match own_template {
                    Some("chat_template.json") => template_in(&text),
                    _ => Some(text),
                });
                snapshot.tokenizer_config = tokenizer_config.map(|text| essence(&text));
            }
            Err(error @ Error::FileTooLarge { .. }) => snapshot.refused = Some(error.to_string()),
            // Its list and size can be shown; the rest waits until the terms are accepted.
            Err(Error::Gated { .. } | Error::NotOnHub { .. }) => snapshot.summary.gated = true,
            Err(error) => return Err(error),
        }
        if snapshot.config.as_deref().is_some_and(sees_or_hears) {
            snapshot.weights = self.stored_on_hub(&summary.id, &listing).await;
        }
        Ok(snapshot)
    }

    /// The text of a file of the list; `None` if there is none.
    async fn small_file(
        &self,
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
        self.text(&summary.id, &listing.commit, &path, limit, Purpose::ModelInfo)
            .await
            .map(Some)
    }

    /// A snapshot, judged by what this version can run and what this computer has.
    async fn assessed(&self, snapshot: RepoSnapshot) -> HubModel {
        let (fallback, weights) = (snapshot.summary.clone(), snapshot.weights);
        // A hostile template may take its time and a hostile config may break a parser; neither takes the rest along.
        let (mut model, config) = match tokio::task::spawn_blocking(move || assess(snapshot)).await {
            Ok(assessed) => assessed,
            Err(_) => {
                let broken = HubModel {
                    problem: Some("its files could not be understood, so it cannot be used".into()),
                    described: true,
                    ..fallback
                };
                (broken, None)
            }
        };
        model.here = self.folder().find(&model.id).is_ok();
        model.fit = config.and_then(|config| self.fit_of_snapshot(&model, &config, weights));
        model
    }

    /// Whether it fits at the default context, with the memory that is free at the moment.
    fn fit_of_snapshot(&self, model: &HubModel, config: &ModelConfig, weights: u64) -> Option<MemoryFit> {
        let question = Question::new();
        let memory = Memory::now(question.backend, 0).ok()?;
        let measured = self.measured().of(&model.id, model.commit.as_deref());
        Some(memory_fit(config, weights, &question, &memory, measured))
    }
}

/// The model as it is shown, and its config if that can be understood and nothing is against it.
fn assess(snapshot: RepoSnapshot) -> (HubModel, Option<ModelConfig>) {
    let config = snapshot.config.as_deref().unwrap_or_default();
    let verdict = check_compatibility(&FileListing {
        config,
        tokenizer_config: snapshot.tokenizer_config.as_deref(),
        files: &snapshot.names,
        card: snapshot.summary.kind,
    });
    let parsed = verdict
        .as_ref()
        .ok()
        .cloned()
        .or_else(|| ModelConfig::parse(config).ok());
    let unread = snapshot.summary.gated && snapshot.config.is_none();
    let problem = match (snapshot.refused, verdict) {
        (Some(refused), _) => Some(refused),
        // Nothing is known against it.
        (None, Err(_)) if unread => None,
        (None, Err(_)) if !snapshot.names.iter().any(|name| name == "config.json") => {
            Some("there is no config.json, so it is no model that can be run here".to_owned())
        }
        (None, Err(unfit)) => Some(unfit.to_string()),
        (None, Ok(_)) => None,
    };
    let thinking = if problem.is_none() {
        template(snapshot.template, snapshot.tokenizer_config.as_deref()).map(|template| template.thinking_control())
    } else {
        None
    };
    let runs = problem.is_none();
    let model = HubModel {
        bytes: (snapshot.bytes > 0)
            .then_some(snapshot.bytes)
            .or(snapshot.summary.bytes),
        quantization: parsed.as_ref().map(bits).or(snapshot.summary.quantization),
        context: parsed.as_ref().map(|config| config.context),
        kind: parsed.as_ref().map_or(snapshot.summary.kind, |config| config.kind),
        family: parsed
            .as_ref()
            .map(|config| config.model_type.clone())
            .or(snapshot.summary.family),
        thinking,
        problem,
        described: true,
        commit: Some(snapshot.commit),
        ..snapshot.summary
    };
    (model, parsed.filter(|_| runs))
}

/// The template that a chat would use; `None` if there is none that can be read.
fn template(own: Option<String>, tokenizer_config: Option<&str>) -> Option<Template> {
    let config: Value = tokenizer_config
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let source = own
        .map(Value::String)
        .or_else(|| config.get("chat_template").cloned())?;
    let tokens: Map<String, Value> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| name.ends_with("_token") && value.is_string())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Template::new(&source, tokens).ok()
}

/// Whether the files hold a part that the text model does not read, so that their headers have to show what it reads.
fn sees_or_hears(config: &str) -> bool {
    ["vision_config", "audio_config"]
        .iter()
        .any(|part| config.contains(part))
}

fn size_of(listing: &RepoFiles, name: &str) -> Option<u64> {
    listing
        .files
        .iter()
        .find(|file| file.path.as_str() == name)
        .map(|file| file.bytes)
}

fn template_in(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value["chat_template"].as_str().map(str::to_owned)
}

/// The useful part of a tokenizer_config.json: most of it are lists of tokens.
fn essence(text: &str) -> String {
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
