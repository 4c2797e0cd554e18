//! Ollama's routes, and LM Studio's list of models.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, Request as HttpRequest, State as Shared};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post, MethodRouter};
use protocol::{EmbeddingRequest, Embeddings, LoadEvent, ModelKind, ModelSource};
use serde_json::{json, Value};

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::describe::{Body, Reply};
use crate::http::error_body::{Kind, Refusal};
use crate::http::response::json_response;
use crate::lm_studio;
use crate::models::keep_alive::{KeepAlive, KeepAliveField};
use crate::models::served::ResolvedModel;
use crate::ollama::models::ShowFields;
use crate::ollama::reply::{silent, Form};
use crate::ollama::{chat, embed, generate, models};
use crate::request::fields::Fields;
use crate::routes::call::{check_kind, Call};
use crate::routes::unload::unload_now;
use crate::routes::{model_names, operation, takes, Outcome, Routes};
use crate::state::State;

/// Ollama's paths that change the models of a computer.
const MANAGING: [&str; 6] = [
    "/api/pull",
    "/api/push",
    "/api/create",
    "/api/copy",
    "/api/delete",
    "/api/blobs",
];

/// A translation of a body, or `None` if it is only about the model itself.
type Translate = fn(&Fields, &ModelSource, &str, ResponseIds) -> Result<Option<TranslatedRequest>, Refusal>;

/// A translation of a body to a request for vectors.
type TranslateEmbedding = fn(&Fields, &ModelSource) -> Result<EmbeddingRequest, Refusal>;

/// The body of the response with these vectors, for a model of this name, after this time.
type EmbeddingBody = fn(&str, &Embeddings, Duration) -> Value;

/// The routes.
#[rustfmt::skip]
pub(super) fn routes() -> Routes {
    use Reply::{Json, JsonOrLines};
    vec![
        (takes("post", "/api/chat", "Ollama's chat.", Body::OllamaChat, JsonOrLines("OllamaChat")), answers(chat::ask, Form::Chat)),
        (takes("post", "/api/generate", "Ollama's answer to one prompt.", Body::OllamaGenerate, JsonOrLines("OllamaGenerate")), answers(generate::ask, Form::Generate)),
        (takes("post", "/api/embed", "Vectors of texts, for Ollama's clients.", Body::OllamaEmbed, Json("OllamaEmbed")), vectors(embed::ask, embed::body)),
        (takes("post", "/api/embeddings", "The vector of one text, for older clients of Ollama.", Body::OllamaEmbeddings, Json("OllamaEmbeddings")), vectors(embed::ask_one, |_, made, _| embed::one_body(made))),
        (operation("get", "/api/tags", "The models, for Ollama's clients.", Json("OllamaModels")), get(tags)),
        (operation("get", "/api/ps", "The models in memory.", Json("OllamaModels")), get(running)),
        (takes("post", "/api/show", "What one model is and can do.", Body::OllamaShow, Json("OllamaShow")), post(show)),
        (operation("get", "/api/version", "Ponder's version.", Json("OllamaVersion")), get(version)),
        (operation("get", "/api/v0/models", "The models, in LM Studio's form.", Json("LmStudioModels")), get(studio_models)),
        (operation("get", "/api/v0/models/{*id}", "One model, in LM Studio's form.", Json("LmStudioModel")), get(studio_model)),
    ]
}

/// The refusal of a path that manages Ollama's models; `None` for every other path.
pub(super) fn unsupported(path: &str) -> Option<Refusal> {
    let is_under = |managing: &&str| {
        let rest = path.strip_prefix(*managing);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !MANAGING.iter().any(is_under) {
        return None;
    }
    let message = "this server does not change the models of this computer; download, import and remove them in the \
        Models window, or with `ponder pull`, `ponder import` and `ponder remove`";
    Some(Refusal::new(Kind::Unsupported, message))
}

/// A route that answers, or loads or frees its model if nothing is asked.
fn answers(translate: Translate, form: Form) -> MethodRouter<Arc<State>> {
    post(move |Shared(state): Shared<Arc<State>>, request: HttpRequest| answer(state, request, translate, form))
}

async fn answer(state: Arc<State>, request: HttpRequest, translate: Translate, form: Form) -> Outcome {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let fields = Fields::of(&body.value, "")?;
    let (model, draft_model) = (call.any_model(&fields).await?, call.draft_model(&fields).await?);
    let (named, stamp) = (model.clone(), Call::stamp(""));
    let translate = move |fields: &Fields| {
        let KeepAliveField { keep_alive } = fields.read()?;
        Ok((translate(fields, &named.source, &named.id, stamp)?, keep_alive))
    };
    let (ask, keep_alive) = call.translate(body, translate).await?;
    let Some(mut ask) = ask else {
        let reason = load_or_unload(&call, &model, keep_alive).await?;
        let body = silent(form, &model.id, Call::stamp(""), reason);
        return Ok(json_response(StatusCode::OK, &body));
    };
    check_kind(&model, ModelKind::Chat)?;
    ask.draft_with(draft_model.as_ref());
    call.answer(ask, &model, keep_alive).await
}

/// Frees the model if it is to stay for no time, else loads it; the word of Ollama for that.
async fn load_or_unload(
    call: &Call,
    model: &ResolvedModel,
    keep_alive: Option<KeepAlive>,
) -> Result<&'static str, Refusal> {
    if keep_alive == Some(KeepAlive::For(Duration::ZERO)) {
        unload_now(&call.state, &model.source.reference()).await?;
        return Ok("unload");
    }
    let (Some(engine), Some(folder)) = (call.state.engine.local(), model.source.folder()) else {
        return Ok("load");
    };
    call.state.served_models.used(model).await;
    let mut events = engine.load(folder.clone());
    while let Some(event) = events.recv().await {
        match event {
            LoadEvent::Progress { .. } => {}
            LoadEvent::Ready(_) => return Ok("load"),
            LoadEvent::Failed(error) => return Err(error.into()),
        }
    }
    Err(Refusal::new(Kind::Unavailable, "the engine is gone"))
}

/// A route that computes vectors.
fn vectors(translate: TranslateEmbedding, write: EmbeddingBody) -> MethodRouter<Arc<State>> {
    post(move |Shared(state): Shared<Arc<State>>, request: HttpRequest| embedded(state, request, translate, write))
}

async fn embedded(
    state: Arc<State>,
    request: HttpRequest,
    translate: TranslateEmbedding,
    write: EmbeddingBody,
) -> Outcome {
    let begun = Instant::now();
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let fields = Fields::of(&body.value, "")?;
    let model = call.model(&fields, ModelKind::Embedding).await?;
    let mut asked = translate(&fields, &model.source)?;
    let KeepAliveField { keep_alive } = fields.read()?;
    asked.keep_alive = Some(call.keep_alive(keep_alive));
    drop(body);
    let made = match asked.inputs.is_empty() {
        true => Embeddings {
            vectors: Vec::new(),
            prompt_tokens: 0,
        },
        false => call.embed(asked, &model).await?.map_err(embed::refusal)?,
    };
    Ok(json_response(StatusCode::OK, &write(&model.id, &made, begun.elapsed())))
}

async fn tags(Shared(state): Shared<Arc<State>>) -> Response {
    let list = state.served_models.look().await;
    let unlisted = state.served_models.unlisted_name(&list);
    json_response(StatusCode::OK, &models::tags(&list, unlisted))
}

async fn running(Shared(state): Shared<Arc<State>>) -> Response {
    let (list, loaded) = (state.served_models.look().await, state.loaded_models().await);
    json_response(StatusCode::OK, &models::running(&list, &loaded))
}

async fn show(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let fields = Fields::of(&body.value, "")?;
    let asked: ShowFields = fields.read()?;
    let name = fields.require("model", asked.model.or(asked.name))?;
    let entry = call.state.served_models.listed(&[name]).await?;
    let source = call.state.served_models.find(&entry.id).await?.source;
    let engine = call.state.engine.clone();
    // Read from the model's files, or asked of another process.
    let capabilities = tokio::task::spawn_blocking(move || engine.capabilities(&source)).await;
    let loaded = call.state.loaded_models().await;
    let loaded = loaded.iter().find(|loaded| loaded.reference == entry.model.reference);
    let body = models::shown(&entry, loaded, &capabilities.unwrap_or_default());
    Ok(json_response(StatusCode::OK, &body))
}

async fn version() -> Response {
    json_response(StatusCode::OK, &json!({"version": env!("CARGO_PKG_VERSION")}))
}

async fn studio_models(Shared(state): Shared<Arc<State>>) -> Response {
    let (list, loaded) = (state.served_models.look().await, state.loaded().await);
    json_response(StatusCode::OK, &lm_studio::models(&list, &loaded))
}

async fn studio_model(Shared(state): Shared<Arc<State>>, Path(id): Path<String>, uri: Uri) -> Outcome {
    let entry = state.served_models.listed(&model_names(id, uri.path())).await?;
    let loaded = state.loaded().await;
    Ok(json_response(StatusCode::OK, &lm_studio::model(&entry, &loaded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_change_models_are_told_where_models_are_changed() {
        for path in ["/api/pull", "/api/delete", "/api/blobs/sha256:0"] {
            let refusal = unsupported(path).unwrap();
            assert_eq!(refusal.kind, Kind::Unsupported);
            assert!(refusal.message.contains("Models window"), "{}", refusal.message);
        }
        for path in ["/api/pulled", "/api/other", "/v1/models"] {
            assert_eq!(unsupported(path), None, "{path}");
        }
    }
}
