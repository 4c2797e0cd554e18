//! The models on the hub, one at a time: description, card, config.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{HubModel, MemoryFit};
use checkpoint::ModelConfig;
use net::Purpose;
use protocol::ErrorCode;
use tokio::sync::Semaphore;

use crate::cache::{RepositoryId, Revision};
use crate::error::Error;
use crate::huggingface::card::fetch_card;
use crate::huggingface::hub_api::HubApi;
use crate::huggingface::hub_model::{assess, RepoSnapshot};
use crate::huggingface::recommended::recommended;
use crate::huggingface::response_cache::{CacheKind, ResponseCache};
use crate::huggingface::summary::HubSummary;
use crate::local::model_folder::ModelFolder;
use crate::memory_fit::{memory_fit, Measured, Memory, Question};

/// Models that are described at the same time.
const DESCRIBED_AT_ONCE: usize = 4;
/// Age at which a summary is asked for again.
const SUMMARY_TTL: Duration = Duration::from_secs(600);
/// Limit of the summaries in memory.
const MOST_SUMMARIES: usize = 2000;

/// Judges a snapshot.
type Assess = fn(RepoSnapshot) -> (HubModel, Option<ModelConfig>);

/// Descriptions of the hub's models. The last response about each is kept on disk for when the hub cannot be reached.
#[derive(Debug)]
pub struct Catalog {
    api: HubApi,
    local: ModelFolder,
    measured: Measured,
    responses: ResponseCache,
    summaries: Mutex<HashMap<String, (Instant, HubSummary)>>,
    slots: Semaphore,
}

impl Catalog {
    pub(crate) fn open(api: HubApi, local: ModelFolder, measured: Measured, data_dir: &Path) -> Self {
        Self {
            responses: ResponseCache::open(data_dir, api.net().endpoint().address()),
            api,
            local,
            measured,
            summaries: Mutex::default(),
            slots: Semaphore::new(DESCRIBED_AT_ONCE),
        }
    }

    pub(crate) fn responses(&self) -> &ResponseCache {
        &self.responses
    }

    /// A model of the hub with everything that is known without fetching its weights. Files that were read at the same
    /// commit are not fetched again; if the hub cannot be reached, the last description is returned with its date.
    ///
    /// # Errors
    /// [`Error::Name`] for an invalid id, [`Error::NotOnHub`], and whatever keeps the hub from answering about a model
    /// that was never described before.
    pub async fn describe(&self, id: &str) -> Result<HubModel, Error> {
        self.describe_at(&RepositoryId::new(id)?, &Revision::main()).await
    }

    /// [`Catalog::describe`] at a revision.
    pub(crate) async fn describe_at(&self, id: &RepositoryId, revision: &Revision) -> Result<HubModel, Error> {
        self.describe_by(id, revision, assess).await
    }

    async fn describe_by(&self, id: &RepositoryId, revision: &Revision, assess: Assess) -> Result<HubModel, Error> {
        let other = (*revision != Revision::main()).then(|| revision.to_string());
        let key = match &other {
            None => id.to_string(),
            Some(revision) => format!("{id}@{revision}"),
        };
        let fetched = self.snapshot(id, revision, &key).await;
        let (snapshot, cached_at) = self.responses.or_cached(fetched, CacheKind::Model, &key)?;
        let assessed = self.assessed(snapshot.clone(), assess).await;
        // Files that broke the assessment, or ended the app in it, are not assessed again in every list.
        if assessed.is_ok() && cached_at.is_none() {
            self.responses.put(CacheKind::Model, &key, &snapshot);
        }
        let mut model = assessed.unwrap_or_else(|broken| *broken);
        model.cached_at = cached_at;
        model.revision = other;
        Ok(model)
    }

    /// Every model that was ever described, with the time.
    pub(crate) async fn described(&self) -> Vec<HubModel> {
        let mut models = Vec::new();
        for (snapshot, at) in self.responses.all::<RepoSnapshot>(CacheKind::Model) {
            let assessed = self.assessed(snapshot, assess).await;
            let mut model = assessed.unwrap_or_else(|broken| *broken);
            model.cached_at = Some(at);
            models.push(model);
        }
        models
    }

    /// The card of a model, without the data at its head; empty if it has none. From the cache if the hub cannot be
    /// reached.
    ///
    /// # Errors
    /// [`Error::Name`] for an invalid id; whatever keeps the hub from answering, if the card was never read before.
    pub async fn card(&self, id: &str) -> Result<String, Error> {
        let id = RepositoryId::new(id)?;
        let fetched = match self.summary(&id).await {
            Ok(summary) => fetch_card(&self.api, &summary).await,
            Err(error) => Err(error),
        };
        if let Ok(card) = &fetched {
            self.responses.put(CacheKind::Card, id.as_str(), card);
        }
        let (card, _) = self.responses.or_cached(fetched, CacheKind::Card, id.as_str())?;
        Ok(card)
    }

    /// Good first models for a computer with this memory, the largest that suits it first. Sends no request: describing
    /// each fills in the rest.
    pub fn recommended(&self, memory: &Memory) -> Vec<HubModel> {
        let mut models = recommended(memory);
        for model in &mut models {
            model.here = self.local.has(&model.id);
        }
        models
    }

    /// The config of a model and the bytes of its weights, for an estimate. A model that was described before sends no
    /// request, because a slider asks many times a second.
    ///
    /// # Errors
    /// [`Error::WillNotRun`] for a config that cannot be used, [`Error::Unread`] and [`Error::Gated`] if there is none
    /// to be read; whatever keeps the hub from answering.
    pub(crate) async fn config(&self, id: &RepositoryId) -> Result<(ModelConfig, u64), Error> {
        let cached = || {
            let (snapshot, _) = self.responses.get::<RepoSnapshot>(CacheKind::Model, id.as_str())?;
            snapshot.config()
        };
        if let Some(config) = cached() {
            return config;
        }
        let model = self.describe(id.as_str()).await?;
        cached().unwrap_or_else(|| match model.problem {
            Some(problem) => Err(Error::Unread(Box::new(problem))),
            None => Err(Error::Gated {
                id: id.to_string(),
                host: self.api.host(),
                with_token: false,
            }),
        })
    }

    /// Keeps a summary, so that describing a search result does not ask for it again.
    pub(crate) fn keep_summary(&self, summary: &HubSummary) {
        let mut known = self.summaries();
        if known.len() >= MOST_SUMMARIES {
            known.clear();
        }
        known.insert(summary.id.to_string(), (Instant::now(), summary.clone()));
    }

    /// The hub's summary of a model, at most [`SUMMARY_TTL`] old.
    async fn summary(&self, id: &RepositoryId) -> Result<HubSummary, Error> {
        let known = self.summaries().get(id.as_str()).cloned();
        let fresh = known.filter(|(when, summary)| when.elapsed() < SUMMARY_TTL && summary.commit.is_some());
        if let Some((_, summary)) = fresh.filter(|_| !self.api.net().is_offline()) {
            return Ok(summary);
        }
        let info = self.api.model_info(id, &Revision::main(), Purpose::ModelInfo).await?;
        let summary = HubSummary::read(&info)?;
        self.keep_summary(&summary);
        Ok(summary)
    }

    async fn snapshot(&self, id: &RepositoryId, revision: &Revision, key: &str) -> Result<RepoSnapshot, Error> {
        let _slot = self.slots.acquire().await;
        let summary = if *revision == Revision::main() {
            self.summary(id).await?
        } else {
            HubSummary::read(&self.api.model_info(id, revision, Purpose::ModelInfo).await?)?
        };
        let commit = match &summary.commit {
            Some(commit) => commit.clone(),
            None => self.api.commit_of(id, revision, Purpose::ModelInfo).await?,
        };
        let known = self.responses.get::<RepoSnapshot>(CacheKind::Model, key);
        match known.filter(|(snapshot, _)| snapshot.is_complete_at(&commit)) {
            Some((mut snapshot, _)) => {
                snapshot.summary = summary.model;
                Ok(snapshot)
            }
            None => RepoSnapshot::fetch(&self.api, &summary, commit).await,
        }
    }

    /// A snapshot, judged by this version's abilities and this computer's memory.
    ///
    /// # Errors
    /// The model with what is known of it without its files, if these break the assessment.
    async fn assessed(&self, snapshot: RepoSnapshot, assess: Assess) -> Result<HubModel, Box<HubModel>> {
        let (fallback, weights) = (snapshot.summary.clone(), snapshot.weights);
        // A hostile template may be slow and a hostile config may break a parser; both stay on a thread of their own.
        let assessed = tokio::task::spawn_blocking(move || assess(snapshot)).await;
        let (mut model, config) = assessed.map_err(|_| {
            let message = "its files could not be understood, so it cannot be used";
            Box::new(HubModel {
                problem: Some(protocol::Error::new(ErrorCode::ModelUnsupported, message)),
                described: true,
                here: self.local.has(&fallback.id),
                ..fallback
            })
        })?;
        model.here = self.local.has(&model.id);
        model.fit = config.and_then(|config| self.fit(&model, &config, weights));
        Ok(model)
    }

    /// The fit at the default context, with the memory that is free now.
    fn fit(&self, model: &HubModel, config: &ModelConfig, weights: u64) -> Option<MemoryFit> {
        let question = Question::new();
        let memory = Memory::now(question.backend, 0).ok()?;
        let measured = self.measured.of(&model.id, model.commit.as_deref());
        Some(memory_fit(config, weights, &question, &memory, measured))
    }

    fn summaries(&self) -> MutexGuard<'_, HashMap<String, (Instant, HubSummary)>> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hub_imitation::Imitation;
    use net::{Environment, Net, Settings};

    use super::*;

    #[tokio::test]
    async fn files_that_break_the_assessment_are_not_kept_as_if_they_were_fine() {
        let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
        imitation.repository("ponder/pebble").pebble();
        let net = Net::open(Settings {
            environment: Environment::of(&[("HF_ENDPOINT", &imitation.endpoint())]),
            ..Settings::of_a_test("")
        });
        let local = ModelFolder::at(None, Some(data.path().join("cache")));
        let measured = Measured::in_folder(data.path());
        let catalog = Catalog::open(HubApi::new(net), local, measured, data.path());
        let (id, main) = (RepositoryId::new("ponder/pebble").unwrap(), Revision::main());
        let broken = catalog.describe_by(&id, &main, |_| panic!("files of a stranger")).await;
        assert_eq!(broken.unwrap().problem.unwrap().code, ErrorCode::ModelUnsupported);
        assert!(catalog.described().await.is_empty());
        assert!(catalog.describe("ponder/pebble").await.unwrap().problem.is_none());
        assert_eq!(catalog.described().await.len(), 1);
    }
}
