//! *Will it run?* A model of the hub, looked at through its small files: config, template, and the list of the others.

use std::time::Instant;

use futures::future::try_join3;
use net::Purpose;
use prompt::config::{fitness, Listing as Names, ModelConfig};
use prompt::Template;
use protocol::{Fit, HubModel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::card::unreachable;
use crate::fit::{fit, Memory, Question};
use crate::inspect::bits;
use crate::layout::{Commit, FilePath, RepositoryId, Revision};
use crate::needed::needed;
use crate::remembered::Kind;
use crate::told::Told;
use crate::{Error, Hub, Listing};

/// The most of a config.json that is read, in bytes; those that name the quantisation of each expert have 1 MB.
const LARGEST_CONFIG: u64 = 4 << 20;
/// The most of a tokenizer_config.json: some list 250,000 tokens.
const LARGEST_TOKENIZER_CONFIG: u64 = 16 << 20;
/// The most of a chat template.
const LARGEST_TEMPLATE: u64 = 1 << 20;
/// How long what the hub told of a model is used without asking again, in seconds.
const LATELY: u64 = 600;
/// How many are remembered so.
const MOST_TOLD: usize = 2000;

/// What was seen of a model, without a judgement: a newer version of the app may judge otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Seen {
    told: HubModel,
    commit: String,
    config: Option<String>,
    /// `chat_template` and the special tokens of tokenizer_config.json; `None` where that was not read.
    tokenizer_config: Option<String>,
    /// chat_template.jinja, or what stands in chat_template.json.
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
    /// A model of the hub with everything that can be told of it without fetching its weights. What was seen at this commit before is
    /// not asked for again; where the hub cannot be reached, what was seen last is given, with its date.
    ///
    /// # Errors
    /// [`Error::Name`] for what is no id, [`Error::NotOnHub`], and whatever keeps the hub from answering about a model never seen before.
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
        let (seen, cached_at) = match self.seen(id, revision, &key).await {
            Ok(seen) => (seen, None),
            Err(error) if unreachable(&error) => match self.remembered().get::<Seen>(Kind::Model, &key) {
                Some((seen, at)) => (seen, Some(at)),
                None => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let mut model = self.judged(seen).await;
        model.cached_at = cached_at;
        model.revision = (*revision != Revision::main()).then(|| revision.to_string());
        Ok(model)
    }

    /// Every model that was ever looked at, with the time.
    pub(crate) async fn ever_seen(&self) -> Vec<HubModel> {
        let mut models = Vec::new();
        for (seen, at) in self.remembered().all::<Seen>(Kind::Model) {
            let mut model = self.judged(seen).await;
            model.cached_at = Some(at);
            models.push(model);
        }
        models
    }

    /// The config and the bytes of the weights of a model that was looked at, to reckon with; `None` before it was looked at, an error
    /// where its config cannot be used.
    pub(crate) fn seen_before(&self, id: &str) -> Option<Result<(ModelConfig, u64), Error>> {
        let (seen, _) = self.remembered().get::<Seen>(Kind::Model, id)?;
        let config = ModelConfig::parse(&seen.config?).map_err(|error| prompt::config::Unfit::from(error).into());
        Some(config.map(|config| (config, seen.weights)))
    }

    /// Keeps what the hub told, so that describing what a search found does not ask for it again.
    pub(crate) fn note_told(&self, told: &Told) {
        let mut known = self.told_notes();
        if known.len() >= MOST_TOLD {
            known.clear();
        }
        known.insert(told.id.to_string(), (Instant::now(), told.clone()));
    }

    /// What the hub tells of a model, not older than ten minutes.
    pub(crate) async fn told_lately(&self, id: &RepositoryId) -> Result<Told, Error> {
        let known = self.told_notes().get(id.as_str()).cloned();
        if let Some((_, told)) = known.filter(|(when, told)| when.elapsed().as_secs() < LATELY && told.commit.is_some()) {
            if !self.net().is_offline() {
                return Ok(told);
            }
        }
        let told = Told::read(&self.told(id, &Revision::main(), Purpose::ModelInfo).await?)?;
        self.note_told(&told);
        Ok(told)
    }

    async fn seen(&self, id: &RepositoryId, revision: &Revision, key: &str) -> Result<Seen, Error> {
        let _one_of_few = self.looks().acquire().await;
        let told = if *revision == Revision::main() {
            self.told_lately(id).await?
        } else {
            Told::read(&self.told(id, revision, Purpose::ModelInfo).await?)?
        };
        let commit = match &told.commit {
            Some(commit) => commit.clone(),
            None => self.commit_of(id, revision, Purpose::ModelInfo).await?,
        };
        if let Some((seen, _)) = self.remembered().get::<Seen>(Kind::Model, key) {
            // What lies at a commit never changes; a model whose terms were not accepted is asked for again.
            if seen.commit == commit.as_str() && (seen.config.is_some() || seen.refused.is_some()) {
                let seen = Seen { told: told.model, ..seen };
                self.remembered().put(Kind::Model, key, &seen);
                return Ok(seen);
            }
        }
        let seen = self.look(&told, commit).await?;
        self.remembered().put(Kind::Model, key, &seen);
        Ok(seen)
    }

    async fn look(&self, told: &Told, commit: Commit) -> Result<Seen, Error> {
        let mut seen = Seen {
            told: told.model.clone(),
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
        let listing = match self.listing(&told.id, &revision, Purpose::FileList).await {
            Ok(listing) => listing,
            Err(error @ (Error::Name { .. } | Error::TooManyFiles { .. })) => {
                seen.refused = Some(error.to_string());
                return Ok(seen);
            }
            Err(error) => return Err(error),
        };
        seen.names = listing.files.iter().map(|file| file.path.to_string()).collect();
        let wanted = needed(listing.files.iter().map(|file| file.path.as_str()));
        for file in listing.files.iter().filter(|file| wanted.contains(file.path.as_str())) {
            seen.bytes = seen.bytes.saturating_add(file.bytes);
            if file.path.as_str().ends_with(".safetensors") {
                seen.weights = seen.weights.saturating_add(file.bytes);
            }
        }
        let own_template = ["chat_template.jinja", "chat_template.json"]
            .into_iter()
            .find(|name| size_of(&listing, name).is_some());
        let read = try_join3(
            self.small_file(told, &listing, Some("config.json"), LARGEST_CONFIG),
            self.small_file(told, &listing, own_template, LARGEST_TEMPLATE),
            self.small_file(
                told,
                &listing,
                own_template.is_none().then_some("tokenizer_config.json"),
                LARGEST_TOKENIZER_CONFIG,
            ),
        );
        match read.await {
            Ok((config, template, tokenizer_config)) => {
                seen.config = config;
                seen.template = template.and_then(|text| match own_template {
                    Some("chat_template.json") => template_in(&text),
                    _ => Some(text),
                });
                seen.tokenizer_config = tokenizer_config.map(|text| essence(&text));
            }
            Err(error @ Error::FileTooLarge { .. }) => seen.refused = Some(error.to_string()),
            // Its list and size can be shown; the rest waits until the terms are accepted.
            Err(Error::Gated { .. } | Error::NotOnHub { .. }) => seen.told.gated = true,
            Err(error) => return Err(error),
        }
        if seen.config.as_deref().is_some_and(sees_or_hears) {
            seen.weights = self.stored_on_hub(&told.id, &listing).await;
        }
        Ok(seen)
    }

    /// The text of a file of the listing; `None` where there is none.
    async fn small_file(&self, told: &Told, listing: &Listing, name: Option<&str>, limit: u64) -> Result<Option<String>, Error> {
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
        self.text(&told.id, &listing.commit, &path, limit, Purpose::ModelInfo)
            .await
            .map(Some)
    }

    /// What was seen, judged by what this version can run and what this computer has.
    async fn judged(&self, seen: Seen) -> HubModel {
        let (fallback, weights) = (seen.told.clone(), seen.weights);
        // A hostile template may take its time and a hostile config may break a parser; neither takes the rest along.
        let (mut model, config) = match tokio::task::spawn_blocking(move || judge(seen)).await {
            Ok(judged) => judged,
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
        model.fit = config.and_then(|config| self.reckoned(&model, &config, weights));
        model
    }

    /// Whether it fits at the default context, with the memory that is free at the moment.
    fn reckoned(&self, model: &HubModel, config: &ModelConfig, weights: u64) -> Option<Fit> {
        let question = Question::new();
        let memory = Memory::now(question.backend, 0).ok()?;
        let measured = self.measured().of(&model.id, model.commit.as_deref());
        Some(fit(config, weights, &question, &memory, measured))
    }
}

/// The model as it is shown, and its config where that can be understood and nothing is against it.
fn judge(seen: Seen) -> (HubModel, Option<ModelConfig>) {
    let config = seen.config.as_deref().unwrap_or_default();
    let verdict = fitness(&Names {
        config,
        tokenizer_config: seen.tokenizer_config.as_deref(),
        files: &seen.names,
    });
    let parsed = verdict.as_ref().ok().cloned().or_else(|| ModelConfig::parse(config).ok());
    let unread = seen.told.gated && seen.config.is_none();
    let problem = match (seen.refused, verdict) {
        (Some(refused), _) => Some(refused),
        // Nothing is known against it.
        (None, Err(_)) if unread => None,
        (None, Err(_)) if !seen.names.iter().any(|name| name == "config.json") => {
            Some("there is no config.json, so it is no model that can be run here".to_owned())
        }
        (None, Err(unfit)) => Some(unfit.to_string()),
        (None, Ok(_)) => None,
    };
    let thinking = if problem.is_none() {
        template(seen.template, seen.tokenizer_config.as_deref()).map(|template| template.thinking_control())
    } else {
        None
    };
    let runs = problem.is_none();
    let model = HubModel {
        bytes: (seen.bytes > 0).then_some(seen.bytes).or(seen.told.bytes),
        quantization: parsed.as_ref().map(bits).or(seen.told.quantization),
        context: parsed.as_ref().map(|config| config.context),
        family: parsed.as_ref().map(|config| config.model_type.clone()).or(seen.told.family),
        thinking,
        problem,
        described: true,
        commit: Some(seen.commit),
        ..seen.told
    };
    (model, parsed.filter(|_| runs))
}

/// The template that a chat would use; `None` where there is none that can be read.
fn template(own: Option<String>, tokenizer_config: Option<&str>) -> Option<Template> {
    let config: Value = tokenizer_config
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let source = own.map(Value::String).or_else(|| config.get("chat_template").cloned())?;
    let tokens: Map<String, Value> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| name.ends_with("_token") && value.is_string())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Template::new(&source, tokens).ok()
}

/// Whether the files hold a part that the text model does not read, so that their headers must tell what it does.
fn sees_or_hears(config: &str) -> bool {
    ["vision_config", "audio_config"].iter().any(|part| config.contains(part))
}

fn size_of(listing: &Listing, name: &str) -> Option<u64> {
    listing.files.iter().find(|file| file.path.as_str() == name).map(|file| file.bytes)
}

fn template_in(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value["chat_template"].as_str().map(str::to_owned)
}

/// What is of use of a tokenizer_config.json: most of it are lists of tokens.
fn essence(text: &str) -> String {
    let Ok(Value::Object(config)) = serde_json::from_str(text) else {
        return "{}".into();
    };
    let kept: Map<String, Value> = config
        .into_iter()
        .filter(|(name, value)| name == "chat_template" || (name.ends_with("_token") && (value.is_string() || value.is_object())))
        .map(|(name, value)| match value.get("content") {
            Some(content) if name != "chat_template" => (name, content.clone()),
            _ => (name, value),
        })
        .collect();
    Value::Object(kept).to_string()
}
