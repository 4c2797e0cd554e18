//! The models that clients may name.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::{LocalModel, ModelShelf};
use jiff::Timestamp;
use protocol::{ModelKind, ModelSource};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::http::error_body::{Dialect, Kind, Refusal};

/// The lifetime of a list. An unknown name refreshes it at once.
const FRESH: Duration = Duration::from_secs(5);

/// The maximum number of models that an error names.
const NAMED: usize = 8;

/// The field that names the model of a request.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ModelField {
    pub(crate) model: Option<String>,
    /// A smaller model with the same tokens that drafts the answer.
    pub(crate) draft_model: Option<String>,
}

/// The body of a request that unloads a model.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct UnloadFields {
    pub(crate) model: String,
}

/// The models that clients may name. Names are compared with the list and never become part of a path.
pub(crate) struct ServedModels {
    shelf: Arc<dyn ModelShelf>,
    /// The model that serves every unknown name.
    fallback: Option<String>,
    listed: Mutex<Option<(Instant, Arc<Vec<Entry>>)>>,
    /// The creation date of models, which is unknown, so the start of the server.
    since: Timestamp,
}

/// A model as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The name that clients use.
    pub(crate) id: String,
    pub(crate) model: LocalModel,
}

/// A model that a client named.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedModel {
    /// The listed name.
    pub(crate) id: String,
    pub(crate) source: ModelSource,
    /// Chat or embedding model.
    pub(crate) kind: ModelKind,
    /// The context length in tokens, if known.
    pub(crate) context: Option<u32>,
}

impl ServedModels {
    pub(crate) fn new(shelf: Arc<dyn ModelShelf>, fallback: Option<String>) -> Self {
        Self {
            shelf,
            fallback,
            listed: Mutex::new(None),
            since: Timestamp::now(),
        }
    }

    /// True if a model serves requests that name none, and unknown names.
    pub(crate) fn has_fallback(&self) -> bool {
        self.fallback.is_some()
    }

    /// All usable models, from the cached list.
    async fn list(&self) -> Arc<Vec<Entry>> {
        if let Some((at, list)) = &*self.known() {
            if at.elapsed() < FRESH {
                return list.clone();
            }
        }
        self.look().await
    }

    /// The model of this name.
    ///
    /// # Errors
    /// If there is no such model, or its files are broken.
    pub(crate) async fn find(&self, name: &str) -> Result<ResolvedModel, Refusal> {
        let found = |list: &[Entry], name: &str| called(list, name).cloned();
        let mut list = self.list().await;
        let mut entry = found(&list, name);
        if entry.is_none() {
            list = self.look().await;
            entry = found(&list, name);
        }
        let entry = entry.or_else(|| found(&list, self.fallback.as_deref()?));
        let (id, reference, kind, context) = match (entry, &self.fallback) {
            (Some(Entry { id, model }), _) => (id, model.reference, model.kind, model.context),
            // An unlisted folder; the engine refuses it if it is not a chat model.
            (None, Some(folder)) => (short_name(folder).to_owned(), folder.clone(), ModelKind::Chat, None),
            (None, None) => return Err(unknown(name, &list)),
        };
        let shelf = self.shelf.clone();
        let resolved = tokio::task::spawn_blocking(move || shelf.resolve(&reference)).await;
        let broken = |_| Refusal::new(Kind::Internal, "the list of models could not be read");
        let source = resolved.map_err(broken)??;
        Ok(ResolvedModel {
            id,
            source,
            kind,
            context,
        })
    }

    /// The names of the first models that accept images.
    pub(crate) async fn vision_models(&self) -> Vec<String> {
        let list = self.list().await;
        let sees = |entry: &&Entry| entry.model.supports_vision && entry.model.kind == ModelKind::Chat;
        list.iter()
            .filter(sees)
            .take(NAMED)
            .map(|entry| entry.id.clone())
            .collect()
    }

    /// Records the use of a model, for the list of models on this computer.
    pub(crate) async fn used(&self, model: &ResolvedModel) {
        let (shelf, reference) = (self.shelf.clone(), model.source.reference());
        // It writes a small file; on failure the date is merely outdated.
        let _ = tokio::task::spawn_blocking(move || shelf.used(&reference)).await;
    }

    /// The model of this name, or the fallback model without a name.
    ///
    /// # Errors
    /// As [`ServedModels::find`], and if there is no name.
    pub(crate) async fn named(&self, name: Option<&str>) -> Result<ResolvedModel, Refusal> {
        match name.or(self.fallback.as_deref()) {
            Some(name) => self.find(name).await,
            None => Err(Refusal::field("model", "this field is required")),
        }
    }

    /// Refreshes the list.
    pub(crate) async fn look(&self) -> Arc<Vec<Entry>> {
        let shelf = self.shelf.clone();
        let list = tokio::task::spawn_blocking(move || shelf.list()).await;
        let list = Arc::new(entries(list.unwrap_or_default()));
        *self.known() = Some((Instant::now(), list.clone()));
        list
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Arc<Vec<Entry>>)>> {
        // Replaced whole, so a poisoned one is still right.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of the model that the first of these names calls, in the list of a dialect. Whatever name the list has
    /// is found, because it is looked up in that list.
    ///
    /// # Errors
    /// If there is no such model.
    pub(crate) async fn entry_of(
        &self,
        names: &[String],
        dialect: Dialect,
        loaded: &[String],
    ) -> Result<Value, Refusal> {
        let list = self.look().await;
        let mut data = self.data(&list, dialect, loaded);
        let place = |name: &String| {
            let listed = data.iter().position(|model| model["id"] == name.as_str());
            listed.or_else(|| list.iter().position(|entry| entry.model.reference == *name))
        };
        match names.iter().find_map(place) {
            Some(place) => Ok(data.swap_remove(place)),
            None => Err(unknown(names.first().map_or("", String::as_str), &list)),
        }
    }

    fn entry(&self, entry: &Entry, dialect: Dialect, loaded: &[String]) -> Value {
        let model = &entry.model;
        let (names, loaded) = (
            (entry.id.as_str(), model.name.as_str()),
            loaded.contains(&model.reference),
        );
        self.told(names, model.kind, model.context, loaded, dialect)
    }

    fn told(
        &self,
        (id, name): (&str, &str),
        kind: ModelKind,
        context: Option<u32>,
        loaded: bool,
        dialect: Dialect,
    ) -> Value {
        match dialect {
            Dialect::OpenAi | Dialect::Ollama => {
                let created = self.since.as_second();
                json!({"id": id, "object": "model", "created": created, "owned_by": "ponder", "kind": kind, "loaded": loaded})
            }
            Dialect::Anthropic => {
                let at = self.since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                json!({"type": "model", "id": id, "display_name": name, "created_at": at, "max_input_tokens": context})
            }
        }
    }

    /// The models of a list as a dialect tells them, and the fallback model if it is not among them.
    fn data(&self, list: &[Entry], dialect: Dialect, loaded: &[String]) -> Vec<Value> {
        let mut data: Vec<Value> = list.iter().map(|entry| self.entry(entry, dialect, loaded)).collect();
        let told = |folder: &String| {
            let name = short_name(folder);
            self.told((name, name), ModelKind::Chat, None, loaded.contains(folder), dialect)
        };
        data.extend(self.unlisted(list).map(told));
        data
    }

    /// The fallback model, if it is a folder outside of this list.
    fn unlisted(&self, list: &[Entry]) -> Option<&String> {
        let is_listed = |folder: &&String| list.iter().any(|entry| entry.is_called(folder));
        self.fallback.as_ref().filter(|folder| !is_listed(folder))
    }

    /// The name of the fallback model, if it is not on this list.
    pub(crate) fn unlisted_name(&self, list: &[Entry]) -> Option<&str> {
        self.unlisted(list).map(|folder| short_name(folder))
    }

    /// The listed model that the first of these names calls, else the fallback model.
    ///
    /// # Errors
    /// If there is no such model on the list.
    pub(crate) async fn listed(&self, names: &[String]) -> Result<Entry, Refusal> {
        let list = self.look().await;
        let mut names_and_fallback = names.iter().chain(&self.fallback);
        let entry = names_and_fallback.find_map(|name| called(&list, name));
        entry
            .cloned()
            .ok_or_else(|| unknown(names.first().map_or("", String::as_str), &list))
    }

    /// The current list of a dialect.
    pub(crate) async fn body(&self, dialect: Dialect, loaded: &[String]) -> Value {
        let data = self.data(&self.look().await, dialect, loaded);
        match dialect {
            Dialect::OpenAi | Dialect::Ollama => json!({"object": "list", "data": data}),
            Dialect::Anthropic => {
                let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
                let (first, last) = (id(data.first()), id(data.last()));
                json!({"data": data, "has_more": false, "first_id": first, "last_id": last})
            }
        }
    }
}

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.model.reference == name
    }
}

/// The model of this name. A listed name counts more than a reference, which another model may have as its name. Some
/// of Ollama's clients add its usual tag to a name.
fn called<'a>(list: &'a [Entry], name: &str) -> Option<&'a Entry> {
    let listed = list.iter().find(|entry| entry.id == name);
    let listed = listed.or_else(|| list.iter().find(|entry| entry.is_called(name)));
    listed.or_else(|| called(list, name.strip_suffix(":latest")?))
}

/// The last component of a folder's path, since display names replace dashes by spaces; other references as they are.
fn short_name(reference: &str) -> &str {
    let path = Path::new(reference);
    let last = path.file_name().and_then(|name| name.to_str());
    last.filter(|_| path.is_absolute()).unwrap_or(reference)
}

/// A served model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The name that clients use.
    pub id: String,
    /// The reference of the model on this computer.
    pub reference: String,
    /// The context length in tokens, if known.
    pub context: Option<u32>,
}

/// The chat models of a shelf under the names that clients use, in the order of `/v1/models`. Reads files.
pub fn served_models(shelf: &dyn ModelShelf) -> Vec<ServedModel> {
    let served = |Entry { id, model }| ServedModel {
        id,
        reference: model.reference,
        context: model.context,
    };
    let listed = entries(shelf.list())
        .into_iter()
        .filter(|entry| entry.model.kind == ModelKind::Chat);
    listed.map(served).collect()
}

/// The reference of the model that clients call by this name, of any kind. Reads files.
pub fn reference_of(shelf: &dyn ModelShelf, name: &str) -> Option<String> {
    let entries = entries(shelf.list());
    called(&entries, name).map(|entry| entry.model.reference.clone())
}

/// Usable models with their served names: a folder by its own name if no other model has it, an adapter as
/// `MODEL:ADAPTER`.
fn entries(models: Vec<LocalModel>) -> Vec<Entry> {
    let usable: Vec<LocalModel> = models.into_iter().filter(|model| model.problem.is_none()).collect();
    let alone = |name: &str| {
        let same = usable.iter().filter(|other| short_name(&other.reference) == name);
        same.count() == 1
    };
    let id = |model: &LocalModel| {
        let short = short_name(&model.reference);
        if alone(short) { short } else { &model.reference }.to_owned()
    };
    let of_adapter = |model: &LocalModel| {
        let base = usable
            .iter()
            .find(|base| Some(&base.reference) == model.adapter_of.as_ref())?;
        Some(format!("{}:{}", id(base), id(model)))
    };
    let ids: Vec<String> = usable
        .iter()
        .map(|model| of_adapter(model).unwrap_or_else(|| id(model)))
        .collect();
    let entry = |(id, model)| Entry { id, model };
    ids.into_iter().zip(usable).map(entry).collect()
}

fn unknown(name: &str, list: &[Entry]) -> Refusal {
    let name: String = name.chars().take(200).collect();
    let ids: Vec<&str> = list.iter().take(NAMED).map(|entry| entry.id.as_str()).collect();
    let more = if list.len() > NAMED { ", and more" } else { "" };
    let known = match ids.is_empty() {
        true => "there are no models here".to_owned(),
        false => format!("models here: {}{more}", ids.join(", ")),
    };
    let refusal = Refusal::new(Kind::NotFound, format!("there is no model {name:?}; {known}"));
    refusal.code("model_not_found").at("model")
}

#[cfg(test)]
pub(crate) mod tests {
    use api::ModelPlace;
    use protocol::{Error, ErrorCode, FolderSource};

    use super::*;

    /// A model for lists.
    pub(crate) fn model(reference: &str, name: &str) -> LocalModel {
        LocalModel {
            reference: reference.into(),
            name: name.into(),
            kind: ModelKind::Chat,
            built_in: false,
            path: format!("/models/{name}"),
            revision: None,
            family: None,
            quantization: None,
            bytes: 1,
            context: Some(4096),
            thinking: None,
            thought: None,
            sampling: Default::default(),
            sampling_by_makers: true,
            supports_vision: false,
            vision_problem: None,
            problem: None,
            incomplete: false,
            place: ModelPlace::Cache,
            last_used_at: None,
            revisions: Vec::new(),
            quantizable: false,
            adapter_of: None,
        }
    }

    struct Shelf(Vec<LocalModel>);

    impl ModelShelf for Shelf {
        fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
            let known = self.0.iter().any(|model| model.reference == reference) || reference == "/elsewhere/one";
            assert!(known, "{reference} is not on the list");
            if reference.contains("broken") {
                return Err(Error::new(ErrorCode::ModelBroken, "broken"));
            }
            Ok(FolderSource {
                reference: reference.into(),
                path: "/models".into(),
                revision: None,
                adapter: None,
            }
            .into())
        }

        fn list(&self) -> Vec<LocalModel> {
            self.0.clone()
        }
    }

    fn served_models(fallback: Option<&str>) -> ServedModels {
        let unusable = LocalModel {
            problem: Some(Error::new(ErrorCode::ModelBroken, "no")),
            ..model("bad", "bad")
        };
        let list = vec![
            model("pebble", "Pebble"),
            model("org/model", "model"),
            unusable,
            model("/home/a/own-4bit", "own 4bit"),
            model("/home/a/twin", "twin"),
            model("/home/b/twin", "twin"),
            model("org/broken", "broken"),
        ];
        ServedModels::new(Arc::new(Shelf(list)), fallback.map(Into::into))
    }

    #[tokio::test]
    async fn models_are_called_as_they_are_listed() {
        let served_models = served_models(None);
        let body = served_models.body(Dialect::OpenAi, &[]).await;
        let ids: Vec<&str> = body["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap())
            .collect();
        assert_eq!(
            ids,
            [
                "pebble",
                "org/model",
                "own-4bit",
                "/home/a/twin",
                "/home/b/twin",
                "org/broken"
            ]
        );
        for id in &ids[..5] {
            assert_eq!(served_models.find(id).await.unwrap().id, *id);
            let tagged = served_models.find(&format!("{id}:latest")).await;
            assert_eq!(tagged.unwrap().id, *id);
        }
        assert_eq!(served_models.find("/home/a/own-4bit").await.unwrap().id, "own-4bit");
        assert_eq!(served_models.find("org/broken").await.unwrap_err().kind, Kind::Internal);
        let anthropic = served_models.body(Dialect::Anthropic, &[]).await;
        assert_eq!(
            (&anthropic["first_id"], &anthropic["data"][0]["max_input_tokens"]),
            (&json!("pebble"), &json!(4096))
        );
    }

    #[tokio::test]
    async fn a_folder_that_is_on_no_list_is_served_if_it_was_named() {
        let served_models = served_models(Some("/elsewhere/one"));
        for name in ["one", "haiku", "/elsewhere/one"] {
            assert_eq!(
                served_models.find(name).await.unwrap().source.reference(),
                "/elsewhere/one"
            );
        }
        assert_eq!(served_models.find("pebble").await.unwrap().id, "pebble");
        let body = served_models.body(Dialect::Anthropic, &[]).await;
        assert_eq!(
            (&body["last_id"], &body["data"][6]["id"]),
            (&json!("one"), &json!("one"))
        );
    }

    #[tokio::test]
    async fn an_unknown_name_is_an_error_that_lists_some() {
        for name in ["bad", "/etc/passwd", "../pebble", "", "Pebble"] {
            let refusal = served_models(None).find(name).await.unwrap_err();
            assert_eq!((refusal.kind, refusal.code), (Kind::NotFound, Some("model_not_found")));
            assert!(refusal.message.contains("pebble, org/model"), "{}", refusal.message);
        }
        for name in [Some("haiku"), None] {
            assert_eq!(served_models(Some("pebble")).named(name).await.unwrap().id, "pebble");
        }
        assert_eq!(
            served_models(None).named(None).await.unwrap_err().param.as_deref(),
            Some("model")
        );
    }
}
