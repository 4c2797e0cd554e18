//! The steps of a request that all routes share: body, model, translation, answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use protocol::{
    Content, EmbeddingRequest, Embeddings, Error, ErrorCode, FolderSource, ModelKind, RawPrompt, Request, TokenCount,
};

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::{Kind, Refusal};
use crate::http::ids::fresh;
use crate::http::json_body::JsonBody;
use crate::http::response::{self, json_response, Caller};
use crate::models::keep_alive::KeepAlive;
use crate::models::served::{ModelField, ResolvedModel};
use crate::request::fields::Fields;
use crate::request::response_format::schema_param;
use crate::routes::generate::{Exchange, InFlight};
use crate::state::State;

type Result<T> = std::result::Result<T, Refusal>;

/// A received request.
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) headers: HeaderMap,
    pub(crate) caller: Caller,
}

impl Call {
    pub(crate) fn new(state: Arc<State>, request: HttpRequest) -> (Self, Body) {
        let (parts, body) = request.into_parts();
        let call = Self {
            state,
            headers: parts.headers,
            caller: parts.extensions.get::<Caller>().cloned().unwrap_or_default(),
        };
        (call, body)
    }

    pub(crate) async fn json(&self, body: Body) -> Result<JsonBody> {
        self.state.bodies.read(&self.headers, body).await
    }

    /// Translates a body off the threads that serve connections, because checking its schema may take a while. The body
    /// is gone afterwards.
    pub(crate) async fn translate<T: Send + 'static>(
        &self,
        body: JsonBody,
        translate: impl FnOnce(&Fields) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (schemas, time) = (self.state.schemas.clone(), self.state.limits.schema_time);
        let param = schema_param(&body.value);
        let mut permit = None;
        if param.is_some() {
            let waited = tokio::time::timeout(time, schemas.acquire_owned()).await;
            let busy = Error::new(ErrorCode::Busy, "other schemas are being checked; try again later");
            permit = waited.map_err(|_| busy.with("retry_after", 1u32))?.ok();
        }
        let translated = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if the request is gone.
            let _permit = permit;
            translate(&Fields::of(&body.value, "")?)
        });
        let translated = match param {
            None => translated.await,
            Some(param) => tokio::time::timeout(time, translated).await.map_err(|_| {
                let seconds = time.as_secs_f32();
                Refusal::field(param, format!("this schema takes more than {seconds} s to compile"))
            })?,
        };
        translated.unwrap_or_else(|_| Err(Refusal::new(Kind::Internal, "the request could not be translated")))
    }

    /// The model that a body names, which must be of this kind.
    pub(crate) async fn model(&self, fields: &Fields<'_>, kind: ModelKind) -> Result<ResolvedModel> {
        let model = self.any_model(fields).await?;
        check_kind(&model, kind)?;
        Ok(model)
    }

    /// The model that a body names, of any kind.
    pub(crate) async fn any_model(&self, fields: &Fields<'_>) -> Result<ResolvedModel> {
        let name = fields.read::<ModelField>()?.model;
        self.state.served_models.named(name.as_deref()).await
    }

    /// The model that a body names to draft the answer.
    pub(crate) async fn draft_model(&self, fields: &Fields<'_>) -> Result<Option<FolderSource>> {
        let Some(name) = fields.read::<ModelField>()?.draft_model.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let found = self.state.served_models.find(&name).await?;
        if found.kind != ModelKind::Draft {
            check_kind(&found, ModelKind::Chat)?;
        }
        Ok(found.source.folder().cloned())
    }

    /// Generates the answer.
    pub(crate) async fn answer(
        &self,
        mut ask: TranslatedRequest,
        model: &ResolvedModel,
        keep_alive: Option<KeepAlive>,
    ) -> Result<Response> {
        let stream = ask.stream;
        ask.requests
            .iter()
            .try_for_each(|request| refuse_far_too_long(request, model.context))?;
        let logprobs = ask.requests.iter().any(|request| request.top_logprobs.is_some());
        if logprobs && !self.state.engine.capabilities(&model.source).logprobs {
            let reason = "log probabilities are not told for this model";
            return Err(Refusal::field("logprobs", reason));
        }
        if let Some(place) = ask.image.as_deref() {
            self.check_vision(place, model).await?;
            ask.requests
                .iter_mut()
                .for_each(|request| self.state.apply_image_detail(request));
        }
        let mut counted = None;
        if let (true, Some(context), Some(request)) = (stream, model.context, ask.requests.first()) {
            counted = self.check_context(request, context).await?;
        }
        let keep_alive = Some(self.keep_alive(keep_alive));
        ask.requests
            .iter_mut()
            .for_each(|request| request.keep_alive = keep_alive);
        self.state.served_models.used(model).await;
        let stream_type = ask.reply.stream_type();
        let exchange = Exchange::start(&self.state, ask, counted, &self.caller)?;
        if !stream {
            return Ok(json_response(StatusCode::OK, &exchange.whole().await?));
        }
        Ok(response::stream(
            stream_type,
            Body::from_stream(exchange.stream().await?),
        ))
    }

    /// Computes vectors; the inner error is the engine's.
    pub(crate) async fn embed(
        &self,
        request: EmbeddingRequest,
        model: &ResolvedModel,
    ) -> Result<protocol::Result<Embeddings>> {
        self.state.served_models.used(model).await;
        let in_flight = InFlight::new(&self.state, 1)?;
        // Dropped with this request if the client disconnects, which cancels the job.
        let made = self.state.engine.embed(request).await;
        let tokens = made.as_ref().map_or(0, |made| made.prompt_tokens);
        in_flight.finish(tokens, &self.caller.client);
        Ok(made)
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
        let vision_models = self.state.served_models.vision_models().await;
        let hint = match vision_models.is_empty() {
            true => "no model here can; leave the image out".to_owned(),
            false => format!("models that can are {}", vision_models.join(", ")),
        };
        let reason = format!("the model {:?} cannot see images{because}; {hint}", model.id);
        Err(Refusal::field(place, reason))
    }

    /// Refuses a conversation that exceeds the context before a stream begins, because clients act on the status, and a
    /// model that is not loaded yet would report it only later. Returns the count, if it had to be counted.
    async fn check_context(&self, request: &Request, context: u32) -> Result<Option<TokenCount>> {
        // A token has at least one byte, and the template adds little compared with a context.
        if request.images.is_empty() && bytes_of(request) < context as usize {
            return Ok(None);
        }
        match self.state.count(Cow::Borrowed(request)).await {
            Ok(count) if count.tokens >= context && !count.estimated => Err(context_full("", count.tokens, context)),
            // The engine reports other faults itself.
            count => Ok(count.ok()),
        }
    }

    /// The tokens of a request's prompt.
    pub(crate) async fn count(&self, request: Request, model: &ResolvedModel) -> Result<u32> {
        refuse_far_too_long(&request, model.context)?;
        Ok(self.state.count(Cow::Owned(request)).await?.tokens)
    }

    pub(crate) fn stamp(prefix: &str) -> ResponseIds {
        ResponseIds {
            id: fresh(prefix),
            created: jiff::Timestamp::now().as_second().unsigned_abs(),
        }
    }
}

/// Refuses a model of another kind.
pub(crate) fn check_kind(model: &ResolvedModel, kind: ModelKind) -> Result<()> {
    let reason = match model.kind {
        found if found == kind => return Ok(()),
        ModelKind::Draft => "drafts the responses of another model and writes none alone",
        ModelKind::Reranker => "ranks texts for Ponder's documents and does nothing else",
        ModelKind::Embedding => "makes embeddings and writes no answers",
        ModelKind::Chat => "makes no embeddings; choose an embedding model",
    };
    Err(Refusal::field("model", format!("{:?} {reason}", model.id)))
}

/// Bytes that the tokens of a real prompt do not reach on average: words have about 4, long runs of blanks up to 128.
const BYTES_OF_TOKEN: usize = 64;

/// Refuses a prompt that is many times longer than the context in the words of one that is a little too long. Rendering and
/// counting it would take so long that it ends with another error, which clients do not act on.
fn refuse_far_too_long(request: &Request, context: Option<u32>) -> Result<()> {
    let least = u32::try_from(bytes_of(request) / BYTES_OF_TOKEN).unwrap_or(u32::MAX);
    match context {
        Some(context) if least > context => Err(context_full("at least ", least, context)),
        _ => Ok(()),
    }
}

fn context_full(about: &str, tokens: u32, context: u32) -> Refusal {
    let message = format!(
        "the conversation has {about}{tokens} tokens and the model's context holds {context}, so no answer fits; send \
         less"
    );
    let error = Error::new(ErrorCode::ContextFull, message);
    error.with("prompt", tokens).with("context", context).into()
}

/// The bytes of all texts that a prompt is made of.
fn bytes_of(request: &Request) -> usize {
    let text = |content: &Content| content.growing_text().map_or(0, str::len);
    let messages = request.messages.iter().map(|message| {
        let calls = message.tool_calls.iter().map(|call| call.arguments.to_string().len());
        let content = message.content.iter().map(text).sum::<usize>();
        content + calls.sum::<usize>() + message.reasoning.as_ref().map_or(0, String::len)
    });
    let declared = request.tools.iter().map(|tool| tool.to_string().len());
    let raw = match &request.raw_prompt {
        Some(RawPrompt::Text(text)) => text.len(),
        Some(RawPrompt::FillIn { before, after }) => before.len() + after.len(),
        Some(RawPrompt::Tokens(_)) | None => 0,
    };
    messages.sum::<usize>() + declared.sum::<usize>() + raw
}
