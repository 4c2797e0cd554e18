//! The steps of a request that all routes share: body, model, translation, answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use protocol::{Argument, Error, ErrorCode, ModelKind, Request};
use serde_json::Value;

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::{Dialect, Kind, Refusal};
use crate::http::ids::fresh;
use crate::http::json_body;
use crate::http::response::{dialect, json_response, refuse, ClientName, RequestId};
use crate::models::keep_alive::KeepAlive;
use crate::models::served::{ModelField, ResolvedModel};
use crate::request::fields::Fields;
use crate::request::response_format::schema_param;
use crate::routes::generate::Exchange;
use crate::state::State;

type Result<T> = std::result::Result<T, Refusal>;

/// A received request.
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) headers: HeaderMap,
    pub(crate) request_id: String,
    pub(crate) client: String,
    pub(crate) dialect: Dialect,
}

impl Call {
    pub(crate) fn new(state: Arc<State>, request: HttpRequest) -> (Self, Body) {
        let (parts, body) = request.into_parts();
        let request_id = parts
            .extensions
            .get::<RequestId>()
            .map(|id| id.0.clone())
            .unwrap_or_default();
        let client = parts
            .extensions
            .get::<ClientName>()
            .map(|name| name.0.clone())
            .unwrap_or_default();
        let call = Self {
            state,
            dialect: dialect(parts.uri.path(), &parts.headers),
            headers: parts.headers,
            request_id,
            client,
        };
        (call, body)
    }

    pub(crate) async fn json(&self, body: Body) -> Result<Value> {
        json_body::read(&self.headers, body, self.state.body).await
    }

    /// Translates a body off the threads that serve connections, because checking its schema may take a while.
    pub(crate) async fn translate<T: Send + 'static>(
        &self,
        body: Value,
        translate: impl FnOnce(&Fields) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (schemas, time) = (self.state.schemas.clone(), self.state.schema_time);
        let permit = match schema_param(&body) {
            None => None,
            Some(_) => match tokio::time::timeout(time, schemas.acquire_owned()).await {
                Ok(permit) => permit.ok(),
                Err(_) => {
                    return Err(
                        Error::new(ErrorCode::Busy, "other schemas are being checked; try again later")
                            .with("retry_after", 1u32)
                            .into(),
                    )
                }
            },
        };
        let param = schema_param(&body);
        let translated = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if the request is gone.
            let _permit = permit;
            translate(&Fields::of(&body, "")?)
        });
        let translated = match param {
            None => translated.await,
            Some(param) => match tokio::time::timeout(time, translated).await {
                Ok(translated) => translated,
                Err(_) => {
                    return Err(Refusal::field(
                        param,
                        format!("this schema takes more than {} s to compile", time.as_secs_f32()),
                    ))
                }
            },
        };
        translated.unwrap_or_else(|_| Err(Refusal::new(Kind::Internal, "the request could not be translated")))
    }

    /// The chat model that a body names.
    pub(crate) async fn model(&self, fields: &Fields<'_>) -> Result<ResolvedModel> {
        let model = self
            .state
            .catalogue
            .named(fields.read::<ModelField>()?.model.as_deref())
            .await?;
        match model.kind {
            ModelKind::Chat => Ok(model),
            ModelKind::Embedding => fields.refuse(
                "model",
                format!("{:?} makes embeddings and writes no answers", model.id),
            ),
        }
    }

    /// The embedding model that a body names.
    pub(crate) async fn embedding_model(&self, fields: &Fields<'_>) -> Result<ResolvedModel> {
        let model = self
            .state
            .catalogue
            .named(fields.read::<ModelField>()?.model.as_deref())
            .await?;
        match model.kind {
            ModelKind::Embedding => Ok(model),
            ModelKind::Chat => fields.refuse(
                "model",
                format!("{:?} makes no embeddings; choose an embedding model", model.id),
            ),
        }
    }

    /// Generates the answer.
    pub(crate) async fn answer(
        &self,
        mut ask: TranslatedRequest,
        model: &ResolvedModel,
        keep_alive: Option<KeepAlive>,
    ) -> Result<Response> {
        let stream = ask.stream;
        let logprobs = ask.requests.iter().any(|request| request.top_logprobs.is_some());
        if logprobs && !self.state.engine.capabilities(&model.source).logprobs {
            return Err(Refusal::field(
                "logprobs",
                "log probabilities are not told for this model",
            ));
        }
        if let Some(place) = ask.image.as_deref() {
            self.check_vision(place, model).await?;
            ask.requests
                .iter_mut()
                .for_each(|request| self.state.apply_image_detail(request));
        }
        if let (true, Some(context), Some(request)) = (stream, model.context, ask.requests.first()) {
            self.check_context(request, context).await?;
        }
        let keep_alive = self.keep_alive(keep_alive);
        ask.requests
            .iter_mut()
            .for_each(|request| request.keep_alive = Some(keep_alive));
        self.state.catalogue.used(model).await;
        let exchange = Exchange::start(&self.state, ask, &self.request_id, &self.client)?;
        if !stream {
            return Ok(json_response(StatusCode::OK, &exchange.whole().await?));
        }
        let headers = [
            (
                CONTENT_TYPE,
                HeaderValue::from_static("text/event-stream; charset=utf-8"),
            ),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        Ok((headers, Body::from_stream(exchange.stream().await?)).into_response())
    }

    /// The time for which the model of a request stays loaded, which may be given by the request.
    pub(crate) fn keep_alive(&self, asked: Option<KeepAlive>) -> Duration {
        asked.unwrap_or(self.state.keep_alive).time()
    }

    /// Refuses an image at this path for a model without vision.
    async fn check_vision(&self, place: &str, model: &ResolvedModel) -> Result<()> {
        let (engine, source) = (self.state.engine.clone(), model.source.clone());
        // Vision support is read from the model's files, or asked of another process.
        let capabilities = tokio::task::spawn_blocking(move || engine.capabilities(&source))
            .await
            .unwrap_or_default();
        if capabilities.images {
            return Ok(());
        }
        let because = capabilities.because_blind();
        let vision_models = self.state.catalogue.vision_models().await;
        let hint = match vision_models.is_empty() {
            true => "no model here can; leave the image out".to_owned(),
            false => format!("models that can are {}", vision_models.join(", ")),
        };
        Err(Refusal::field(
            place,
            format!("the model {:?} cannot see images{because}; {hint}", model.id),
        ))
    }

    /// Refuses a conversation that exceeds the context before a stream begins, because clients act on the status, and a
    /// model that is not loaded yet would report it only later.
    async fn check_context(&self, request: &Request, context: u32) -> Result<()> {
        // A token has at least one byte, and the template adds little compared with a context.
        let said: usize = request
            .messages
            .iter()
            .map(|message| message.text_with_placeholders().len())
            .sum();
        let declared: usize = request.tools.iter().map(|tool| tool.to_string().len()).sum();
        if request.images.is_empty() && said + declared < context as usize {
            return Ok(());
        }
        match self.state.engine.count(request.clone()).await {
            Ok(count) if count.tokens >= context && !count.estimated => {
                let message = format!(
                    "the conversation has {} tokens and the model's context holds {context}, so no answer fits; send less",
                    count.tokens
                );
                let error = Error::new(ErrorCode::ContextFull, message);
                Err(error
                    .with("prompt", Argument::from(count.tokens))
                    .with("context", context)
                    .into())
            }
            // The engine reports other faults itself.
            _ => Ok(()),
        }
    }

    pub(crate) fn stamp(prefix: &str) -> ResponseIds {
        ResponseIds {
            id: fresh(prefix),
            created: jiff::Timestamp::now().as_second().unsigned_abs(),
        }
    }

    pub(crate) fn finish(self, outcome: Result<Response>) -> Response {
        outcome.unwrap_or_else(|refusal| refuse(&refusal, self.dialect, &self.request_id))
    }
}
