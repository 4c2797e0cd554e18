//! The routes. They decide nothing: they read a body, have it translated, and send what comes of it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request as HttpRequest, State as Shared};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use protocol::{Argument, Error, ErrorCode, ModelKind, Request};
use serde_json::{json, Value};

use crate::anthropic::messages;
use crate::catalogue::Named;
use crate::exchange::{Exchange, InFlight};
use crate::fields::Fields;
use crate::ids::fresh;
use crate::json_body;
use crate::openai::{chat, completions as text_completions, embeddings as vectors, responses};
use crate::refusal::{Dialect, Kind, Refusal, Retry};
use crate::reply::{Ask, Stamp};
use crate::state::State;

type Result<T> = std::result::Result<T, Refusal>;

/// The name of a request, for its answer's headers and for errors.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The program that asks, as it is listed.
#[derive(Debug, Clone)]
pub(crate) struct ClientName(pub(crate) String);

/// All routes, each with and without `/v1`.
pub(crate) fn router(state: Arc<State>) -> Router {
    let versioned = Router::new()
        .route("/chat/completions", post(chat_completions))
        .route("/completions", post(completions))
        .route("/responses", post(create_response))
        .route("/responses/{id}", get(one_response).delete(delete_response))
        .route("/messages", post(create_message))
        .route("/messages/count_tokens", post(count_tokens))
        .route("/embeddings", post(embeddings))
        .route("/models", get(models))
        .route("/models/{*id}", get(one_model));
    Router::new()
        .nest("/v1", versioned.clone())
        .merge(versioned)
        .route("/", get(page))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(state)
}

/// The dialect that a client of this path speaks.
pub(crate) fn dialect(path: &str, headers: &HeaderMap) -> Dialect {
    let path = path.strip_prefix("/v1").unwrap_or(path);
    if path.starts_with("/messages") || headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}

/// A refusal as a response.
pub(crate) fn refuse(refusal: &Refusal, dialect: Dialect, request_id: &str) -> Response {
    let status = StatusCode::from_u16(refusal.status(dialect)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, &refusal.body(dialect, request_id));
    let headers = response.headers_mut();
    match refusal.retry {
        Retry::ByStatus => {}
        Retry::After(seconds) => {
            headers.insert("retry-after", HeaderValue::from(seconds));
        }
        Retry::Never => {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
    }
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// A request as every route needs it.
struct Call {
    state: Arc<State>,
    headers: HeaderMap,
    request_id: String,
    client: String,
    dialect: Dialect,
}

impl Call {
    fn new(state: Arc<State>, request: HttpRequest) -> (Self, Body) {
        let (parts, body) = request.into_parts();
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        let client = parts.extensions.get::<ClientName>().map(|name| name.0.clone()).unwrap_or_default();
        let call = Self {
            state,
            dialect: dialect(parts.uri.path(), &parts.headers),
            headers: parts.headers,
            request_id,
            client,
        };
        (call, body)
    }

    async fn json(&self, body: Body) -> Result<Value> {
        json_body::read(&self.headers, body, self.state.body).await
    }

    /// The model that a body names, which has to answer.
    async fn model(&self, fields: &Fields<'_>) -> Result<Named> {
        let model = self.state.catalogue.named(fields.text("model")?).await?;
        match model.kind {
            ModelKind::Chat => Ok(model),
            ModelKind::Embedding => fields.refuse("model", format!("{:?} makes embeddings and writes no answers", model.id)),
        }
    }

    /// The model that a body names, which has to make embeddings.
    async fn embedding_model(&self, fields: &Fields<'_>) -> Result<Named> {
        let model = self.state.catalogue.named(fields.text("model")?).await?;
        match model.kind {
            ModelKind::Embedding => Ok(model),
            ModelKind::Chat => fields.refuse("model", format!("{:?} makes no embeddings; choose an embedding model", model.id)),
        }
    }

    /// Makes the answer.
    async fn answer(&self, ask: Ask, model: &Named) -> Result<Response> {
        let stream = ask.stream;
        let logprobs = ask.requests.iter().any(|request| request.top_logprobs.is_some());
        if logprobs && !self.state.engine.capabilities(&model.source).logprobs {
            return Err(Refusal::field("logprobs", "log probabilities are not told for this model"));
        }
        if let (true, Some(context), Some(request)) = (stream, model.context, ask.requests.first()) {
            self.check_context(request, context).await?;
        }
        self.state.catalogue.used(model).await;
        let exchange = Exchange::start(&self.state, ask, &self.request_id, &self.client)?;
        if !stream {
            return Ok(json_response(StatusCode::OK, &exchange.whole().await?));
        }
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        Ok((headers, Body::from_stream(exchange.stream().await?)).into_response())
    }

    /// Refuses a long conversation that does not fit before a stream begins, because clients act on the status, and a model that is
    /// not loaded yet would tell only after that.
    async fn check_context(&self, request: &Request, context: u32) -> Result<()> {
        // A token is a byte or more, and what templates add is small beside a context.
        let said: usize = request.messages.iter().map(|message| message.text_with_placeholders().len()).sum();
        let declared: usize = request.tools.iter().map(|tool| tool.to_string().len()).sum();
        if said + declared < context as usize {
            return Ok(());
        }
        match self.state.engine.count(request.clone()).await {
            Ok(count) if count.tokens >= context && !count.estimated => {
                let message = format!(
                    "the conversation has {} tokens and the model's context holds {context}, so no answer fits; send less",
                    count.tokens
                );
                let error = Error::new(ErrorCode::ContextFull, message);
                Err(error.with("prompt", Argument::from(count.tokens)).with("context", context).into())
            }
            // What is wrong with it, the engine says in its own words.
            _ => Ok(()),
        }
    }

    fn stamp(prefix: &str) -> Stamp {
        Stamp {
            id: fresh(prefix),
            created: jiff::Timestamp::now().as_second().unsigned_abs(),
        }
    }

    fn finish(self, outcome: Result<Response>) -> Response {
        outcome.unwrap_or_else(|refusal| refuse(&refusal, self.dialect, &self.request_id))
    }
}

async fn chat_completions(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.model(&fields).await?;
        let ask = chat::ask(&fields, &model.source, &model.id, Call::stamp("chatcmpl-"))?;
        call.answer(ask, &model).await
    }
    .await;
    call.finish(outcome)
}

async fn completions(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.model(&fields).await?;
        let ask = text_completions::ask(&fields, &model.source, &model.id, Call::stamp("cmpl-"))?;
        call.answer(ask, &model).await
    }
    .await;
    call.finish(outcome)
}

async fn create_response(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.model(&fields).await?;
        let ask = responses::ask(&fields, &model.source, &model.id, Call::stamp("resp_"), &call.state.responses)?;
        call.answer(ask, &model).await
    }
    .await;
    call.finish(outcome)
}

async fn create_message(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.model(&fields).await?;
        let ask = messages::ask(&fields, &model.source, &model.id, Call::stamp("msg_"))?;
        call.answer(ask, &model).await
    }
    .await;
    call.finish(outcome)
}

async fn count_tokens(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.model(&fields).await?;
        let request = messages::count(&fields, &model.source)?;
        let count = call.state.engine.count(request).await?;
        Ok(json_response(StatusCode::OK, &json!({"input_tokens": count.tokens})))
    }
    .await;
    call.finish(outcome)
}

async fn embeddings(Shared(state): Shared<Arc<State>>, request: HttpRequest) -> Response {
    let (call, body) = Call::new(state, request);
    let outcome = async {
        let body = call.json(body).await?;
        let fields = Fields::of(&body, "")?;
        let model = call.embedding_model(&fields).await?;
        let asked = vectors::ask(&fields, &model.source)?;
        call.state.catalogue.used(&model).await;
        let in_flight = InFlight::new(&call.state, 1)?;
        // Dropped with this request if the client leaves, which ends the job.
        let made = call.state.engine.embed(asked.request.clone()).await;
        let tokens = made.as_ref().map_or(0, |made| made.prompt_tokens);
        in_flight.finish(tokens, &call.client);
        let made = made.map_err(|error| asked.refusal(error))?;
        Ok(json_response(StatusCode::OK, &vectors::body(&model.id, &made, asked.encoding)))
    }
    .await;
    call.finish(outcome)
}

async fn one_response(Shared(state): Shared<Arc<State>>, Path(id): Path<String>, request: HttpRequest) -> Response {
    let (call, _) = Call::new(state, request);
    let outcome = match call.state.responses.get(&id) {
        Some(response) => Ok(json_response(StatusCode::OK, &response.body)),
        None => Err(no_such_response()),
    };
    call.finish(outcome)
}

async fn delete_response(Shared(state): Shared<Arc<State>>, Path(id): Path<String>, request: HttpRequest) -> Response {
    let (call, _) = Call::new(state, request);
    let outcome = if call.state.responses.remove(&id) {
        let body = json!({"id": id, "object": "response", "deleted": true});
        Ok(json_response(StatusCode::OK, &body))
    } else {
        Err(no_such_response())
    };
    call.finish(outcome)
}

fn no_such_response() -> Refusal {
    Refusal::new(Kind::NotFound, "there is no response of this id; only the last ones are kept")
}

async fn models(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    let dialect = dialect("/v1/models", &headers);
    json_response(StatusCode::OK, &state.catalogue.body(dialect).await)
}

async fn one_model(Shared(state): Shared<Arc<State>>, Path(id): Path<String>, request: HttpRequest) -> Response {
    let (call, _) = Call::new(state, request);
    let entry = call.state.catalogue.entry_of(&id, call.dialect).await;
    let outcome = entry.map(|entry| json_response(StatusCode::OK, &entry));
    call.finish(outcome)
}

async fn health() -> Response {
    json_response(StatusCode::OK, &json!({"status": "ok"}))
}

async fn metrics(Shared(state): Shared<Arc<State>>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.text()).into_response()
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
    let headers = [
        (CONTENT_TYPE.as_str(), "text/html; charset=utf-8"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ];
    (headers, html).into_response()
}

async fn no_such_path(Extension(id): Extension<RequestId>, request: HttpRequest) -> Response {
    let dialect = dialect(request.uri().path(), request.headers());
    let message = "there is no such path; /v1/chat/completions, /v1/responses, /v1/messages and /v1/models are some";
    refuse(&Refusal::new(Kind::NotFound, message), dialect, &id.0)
}

async fn no_such_method(Extension(id): Extension<RequestId>, request: HttpRequest) -> Response {
    let dialect = dialect(request.uri().path(), request.headers());
    refuse(&Refusal::new(Kind::Method, "this path takes another method"), dialect, &id.0)
}
