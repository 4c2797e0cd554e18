//! The routes. They decide nothing: they read a body, translate it, and send the outcome.

mod call;
mod generate;
pub(crate) mod listener;
mod ollama;
pub(crate) mod unload;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Path, Query, Request as HttpRequest, State as Shared};
use axum::http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, MethodRouter};
use axum::Router;
use protocol::{ModelKind, ModelSource, Request};
use serde_json::json;

use crate::answer::reply::{Frame, ResponseIds, TranslatedRequest};
use crate::anthropic::messages;
use crate::describe::{document, Body as BodyKind, Operation, Reply};
use crate::http::error_body::{Kind, Refusal};
use crate::http::json_body::JsonBody;
use crate::http::response::{dialect, event_stream, json_response};
use crate::models::keep_alive::{KeepAlive, KeepAliveField};
use crate::models::served::{ResolvedModel, UnloadFields};
use crate::openai::file_search::OfferedDocuments;
use crate::openai::responses::Surroundings;
use crate::openai::{
    chat, completions as text_completions, embeddings as vectors, file_search, input_items as items_of_response,
    responses, responses_replay,
};
use crate::request::fields::Fields;
use crate::routes::call::Call;
use crate::routes::unload::unload_now;
use crate::state::State;

type Routes = Vec<(Operation, MethodRouter<Arc<State>>)>;

fn operation(method: &'static str, path: &'static str, summary: &'static str, reply: Reply) -> Operation {
    Operation {
        method,
        path,
        summary,
        body: None,
        reply,
    }
}

fn takes(method: &'static str, path: &'static str, summary: &'static str, body: BodyKind, reply: Reply) -> Operation {
    Operation {
        body: Some(body),
        ..operation(method, path, summary, reply)
    }
}

/// The routes that stand with and without `/v1`.
#[rustfmt::skip]
fn versioned() -> Routes {
    use Reply::{Json, JsonOrEvents};
    vec![
        (takes("post", "/chat/completions", "OpenAI's chat completions.", BodyKind::Chat, JsonOrEvents("ChatCompletion")), answers(chat::ask, "chatcmpl-")),
        (takes("post", "/completions", "Text as it is, without a chat template.", BodyKind::Completion, JsonOrEvents("Completion")), answers(text_completions::ask, "cmpl-")),
        (takes("post", "/responses", "OpenAI's responses.", BodyKind::Response, JsonOrEvents("Response")), post(create_response)),
        (takes("post", "/responses/input_tokens", "Counts the tokens of a request.", BodyKind::Response, Json("InputTokens")), post(count_input)),
        (operation("get", "/responses/{id}", "A response of the last ones; as events if `stream=true` is in the query.", JsonOrEvents("Response")), get(one_response)),
        (operation("get", "/responses/{id}/input_items", "The items that a response answers.", Json("InputItems")), get(input_items)),
        (operation("delete", "/responses/{id}", "Forgets a response.", Json("DeletedResponse")), delete(delete_response)),
        (takes("post", "/messages", "Anthropic's messages.", BodyKind::Message, JsonOrEvents("Message")), answers(messages::ask, "msg_")),
        (takes("post", "/messages/count_tokens", "Counts the tokens of a request.", BodyKind::CountTokens, Json("TokenCount")), post(count_tokens)),
        (takes("post", "/embeddings", "Vectors of texts.", BodyKind::Embeddings, Json("Embeddings")), post(embeddings)),
        (operation("get", "/vector_stores", "The collections of documents that may be searched.", Json("VectorStores")), get(vector_stores)),
        (operation("get", "/models", "The models; in Anthropic's form if `anthropic-version` is sent.", Json("Models")), get(models)),
        (operation("get", "/models/{*id}", "One model.", Json("Model")), get(one_model)),
        (takes("post", "/models/unload", "Frees the memory of a model that does not answer.", BodyKind::Unload, Json("Unloaded")), post(unload_model)),
    ]
}

/// The routes that stand once.
#[rustfmt::skip]
fn unversioned() -> Routes {
    use Reply::{Json, Text};
    vec![
        (operation("get", "/", "A page for people.", Text("text/html")), get(page)),
        (operation("get", "/health", "The health of the server.", Json("Health")), get(health)),
        (operation("get", "/metrics", "Counts for Prometheus.", Text("text/plain")), get(metrics)),
        (operation("get", "/openapi.json", "This description.", Json("Description")), get(description)),
    ]
    .into_iter()
    .chain(ollama::routes())
    .collect()
}

/// All routes. None can be added without its description.
pub(crate) fn router(state: Arc<State>) -> Router {
    described_routes().with_state(state)
}

fn described_routes() -> Router<Arc<State>> {
    let add = |router: Router<Arc<State>>, (operation, handler): (Operation, MethodRouter<Arc<State>>)| {
        router.route(operation.path, handler)
    };
    let with_version = versioned().into_iter().fold(Router::new(), add);
    let routes = Router::new().nest("/v1", with_version.clone()).merge(with_version);
    unversioned()
        .into_iter()
        .fold(routes, add)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
}

async fn description(Shared(state): Shared<Arc<State>>) -> Response {
    static DESCRIPTIONS: [OnceLock<String>; 2] = [const { OnceLock::new() }; 2];
    let model_required = !state.served_models.has_fallback();
    let described = move || {
        let described = DESCRIPTIONS[usize::from(model_required)].get_or_init(|| {
            let operations = |routes: Routes| routes.into_iter().map(|(operation, _)| operation).collect::<Vec<_>>();
            document(&operations(versioned()), &operations(unversioned()), model_required).to_string()
        });
        described.as_str()
    };
    // The first request generates the schemas.
    match tokio::task::spawn_blocking(described).await {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

type Outcome = Result<Response, Refusal>;

/// A translation of a body for a model, which the client calls by this name.
type Translate = fn(&Fields, &ModelSource, &str, ResponseIds) -> Result<TranslatedRequest, Refusal>;

/// A route that translates its body and generates an answer, whose id begins with this prefix.
fn answers(translate: Translate, prefix: &'static str) -> MethodRouter<Arc<State>> {
    post(move |Shared(state): Shared<Arc<State>>, request: HttpRequest| {
        answer(state, request, move |fields, model, _| {
            translate(fields, &model.source, &model.id, Call::stamp(prefix))
        })
    })
}

async fn create_response(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, model, ask, keep_alive) = translated_response(state, request).await?;
    call.answer(ask, &model, keep_alive).await
}

/// Reads the body of a response and translates it.
async fn translated_response(state: Arc<State>, request: HttpRequest) -> Result<Translated, Refusal> {
    let (call, body, model) = received(state, request).await?;
    let mut documents = OfferedDocuments::default();
    if file_search::is_offered(&body.value) {
        documents.documents = call.state.documents.clone();
        documents.collections = call.state.documents.collections().await?;
    }
    let ask = move |fields: &Fields, model: &ResolvedModel, state: &State| {
        let around = Surroundings {
            store: &state.responses,
            most: state.limits.body_bytes,
            documents,
            context: model.context,
        };
        responses::ask(fields, &model.source, &model.id, Call::stamp("resp_"), around)
    };
    translated(call, body, model, ask).await
}

/// Translates the body with `ask` and generates the answer.
async fn answer<F>(state: Arc<State>, request: HttpRequest, ask: F) -> Outcome
where
    F: FnOnce(&Fields, &ResolvedModel, &State) -> Result<TranslatedRequest, Refusal> + Send + 'static,
{
    let (call, body, model) = received(state, request).await?;
    let (call, model, ask, keep_alive) = translated(call, body, model, ask).await?;
    call.answer(ask, &model, keep_alive).await
}

/// Reads a body, and finds the model that it names.
async fn received(state: Arc<State>, request: HttpRequest) -> Result<(Call, JsonBody, ResolvedModel), Refusal> {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let model = call.model(&Fields::of(&body.value, "")?, ModelKind::Chat).await?;
    Ok((call, body, model))
}

/// A request with its translation, for its model and the time that this stays loaded.
type Translated = (Call, ResolvedModel, TranslatedRequest, Option<KeepAlive>);

/// Translates a body with `ask`.
async fn translated<F>(call: Call, body: JsonBody, model: ResolvedModel, ask: F) -> Result<Translated, Refusal>
where
    F: FnOnce(&Fields, &ResolvedModel, &State) -> Result<TranslatedRequest, Refusal> + Send + 'static,
{
    let draft_model = call.draft_model(&Fields::of(&body.value, "")?).await?;
    let (named, state) = (model.clone(), call.state.clone());
    let translate = move |fields: &Fields| {
        let field: KeepAliveField = fields.read()?;
        Ok((ask(fields, &named, &state)?, field.keep_alive))
    };
    let (mut ask, keep_alive) = call.translate(body, translate).await?;
    ask.draft_with(draft_model.as_ref());
    Ok((call, model, ask, keep_alive))
}

async fn count_tokens(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let model = call.model(&Fields::of(&body.value, "")?, ModelKind::Chat).await?;
    let source = model.source.clone();
    let translate = move |fields: &Fields| messages::count(fields, &source);
    let mut request = call.translate(body, translate).await?;
    call.state.apply_image_detail(&mut request);
    let tokens = call.count(request, &model).await?;
    Ok(json_response(StatusCode::OK, &json!({"input_tokens": tokens})))
}

async fn embeddings(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let fields = Fields::of(&body.value, "")?;
    let model = call.model(&fields, ModelKind::Embedding).await?;
    let mut asked = vectors::ask(&fields, &model.source)?;
    let KeepAliveField { keep_alive } = fields.read()?;
    asked.request.keep_alive = Some(call.keep_alive(keep_alive));
    drop(body);
    let made = call.embed(asked.request.clone(), &model).await?;
    let made = made.map_err(|error| asked.refusal(error))?;
    let body = vectors::body(&model.id, &made, asked.encoding);
    Ok(json_response(StatusCode::OK, &body))
}

async fn one_response(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Outcome {
    let response = state.responses.get(&id).ok_or_else(no_such_response)?.body();
    let after = match query.get("starting_after").map(|after| after.parse()) {
        None => None,
        Some(Ok(after)) => Some(after),
        Some(Err(_)) => return Err(Refusal::field("starting_after", "this is not a number")),
    };
    match query.get("stream").map(String::as_str) {
        None | Some("false") => Ok(json_response(StatusCode::OK, &response)),
        Some("true") => Ok(event_stream(Frame::bytes(&responses_replay::events(&response, after)))),
        Some(_) => Err(Refusal::field("stream", "this is not true or false")),
    }
}

async fn input_items(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Outcome {
    let response = state.responses.get(&id).ok_or_else(no_such_response)?;
    let page = items_of_response::page(&response, &query)?;
    Ok(json_response(StatusCode::OK, &page))
}

/// The tokens that a response would read.
async fn count_input(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, model, ask, _) = translated_response(state, request).await?;
    let mut requests = ask.requests;
    let counted = requests.first_mut().map(|request| {
        call.state.apply_image_detail(request);
        std::mem::replace(request, Request::new(model.source.clone(), Vec::new()))
    });
    let request = counted.ok_or_else(|| Refusal::new(Kind::Internal, "there is nothing to count"))?;
    let tokens = call.count(request, &model).await?;
    Ok(json_response(
        StatusCode::OK,
        &json!({"object": "response.input_tokens", "input_tokens": tokens}),
    ))
}

async fn vector_stores(Shared(state): Shared<Arc<State>>) -> Outcome {
    let collections = state.documents.collections().await?;
    Ok(json_response(StatusCode::OK, &file_search::vector_stores(&collections)))
}

async fn delete_response(Shared(state): Shared<Arc<State>>, Path(id): Path<String>) -> Outcome {
    if !state.responses.remove(&id) {
        return Err(no_such_response());
    }
    let body = json!({"id": id, "object": "response", "deleted": true});
    Ok(json_response(StatusCode::OK, &body))
}

fn no_such_response() -> Refusal {
    let message = "there is no response of this id; only the last ones are kept";
    Refusal::new(Kind::NotFound, message)
}

async fn models(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    let dialect = dialect("/v1/models", &headers);
    let loaded = state.loaded().await;
    json_response(StatusCode::OK, &state.served_models.body(dialect, &loaded).await)
}

async fn one_model(Shared(state): Shared<Arc<State>>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Outcome {
    let dialect = dialect("/v1/models", &headers);
    let loaded = state.loaded().await;
    let names = model_names(id, uri.path());
    let entry = state.served_models.entry_of(&names, dialect, &loaded).await?;
    Ok(json_response(StatusCode::OK, &entry))
}

/// The names that a path may mean: its decoded end; the end as it was sent, because some clients encode nothing; and a
/// folder whose first slash was lost on the way, because many programs take two slashes for one.
fn model_names(decoded: String, path: &str) -> Vec<String> {
    let sent = path.split_once("/models/").map(|(_, id)| id.to_owned());
    let mut names: Vec<String> = std::iter::once(decoded).chain(sent).collect();
    let folders: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    names.extend(folders);
    names
}

async fn unload_model(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Outcome {
    let (call, body) = Call::new(state, request);
    let body = call.json(body).await?;
    let UnloadFields { model: name } = Fields::of(&body.value, "")?.read()?;
    let model = call.state.served_models.find(&name).await?;
    unload_now(&call.state, &model.source.reference()).await?;
    Ok(json_response(StatusCode::OK, &json!({"success": true})))
}

async fn health() -> Response {
    json_response(StatusCode::OK, &json!({"status": "ok"}))
}

async fn metrics(Shared(state): Shared<Arc<State>>) -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (headers, state.metrics.text(state.loaded().await.len()))
}

async fn page(Shared(state): Shared<Arc<State>>) -> Response {
    let key = if state.guard.wants_key() {
        "the one that was set"
    } else {
        "none is needed; clients that want one may send any"
    };
    let html = include_str!("page.html")
        .replace("ADDRESS", &state.address.to_string())
        .replace("KEY", key);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, html).into_response()
}

async fn no_such_path(uri: Uri) -> Refusal {
    if let Some(refusal) = ollama::unsupported(uri.path()) {
        return refusal;
    }
    let message = "there is no such path; /v1/chat/completions, /v1/responses, /v1/messages and /v1/models are some";
    Refusal::new(Kind::NotFound, message)
}

/// The methods of a route, as the header `Allow` lists them.
fn methods(route: &str) -> String {
    let (versioned, others) = (versioned(), unversioned());
    let path = route.strip_prefix("/v1").unwrap_or(route);
    let routes = versioned.iter().chain(others.iter().filter(|_| path == route));
    let fits = routes.filter(|(operation, _)| operation.path == path);
    let methods: Vec<&str> = fits
        .map(|(operation, _)| match operation.method {
            "get" => "GET, HEAD",
            "post" => "POST",
            _ => "DELETE",
        })
        .collect();
    methods.join(", ")
}

/// A path of a route for another method. A model may be called as the path that unloads models is.
async fn no_such_method(
    Shared(state): Shared<Arc<State>>,
    method: Method,
    route: Option<MatchedPath>,
    uri: Uri,
    headers: HeaderMap,
) -> Outcome {
    if method == Method::GET && uri.path().ends_with("/models/unload") {
        if let Ok(model) = one_model(Shared(state), Path("unload".to_owned()), uri, headers).await {
            return Ok(model);
        }
    }
    let mut refused = Refusal::new(Kind::Method, "this path takes another method").into_response();
    if let Some(methods) = route.and_then(|route| methods(route.as_str()).parse().ok()) {
        refused.headers_mut().insert(ALLOW, methods);
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route that is added to the router by another way has no description.
    #[test]
    fn the_router_has_the_routes_that_are_described_and_no_other() {
        let shown = format!("{:?}", described_routes());
        // axum's own way to tell that nothing else fits.
        let own = |text: &str| text.contains("__private");
        let in_router = |text: &str| (text.starts_with('/') && !own(text)).then(|| text.to_owned());
        let mut routed: Vec<String> = shown.split('"').filter_map(in_router).collect();
        let with_version = |path: &str| ["", "/v1"].map(|before| format!("{before}{path}"));
        let versioned = versioned()
            .into_iter()
            .flat_map(|(operation, _)| with_version(operation.path));
        let mut described: Vec<String> = versioned
            .chain(
                unversioned()
                    .into_iter()
                    .map(|(operation, _)| operation.path.to_owned()),
            )
            .collect();
        for paths in [&mut routed, &mut described] {
            paths.sort();
            paths.dedup();
        }
        assert_eq!(routed, described);
        assert!(routed.len() > 20, "{routed:?}");
    }
}
