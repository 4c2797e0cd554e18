//! The requests of a session, for rmcp: each goes through `net`, with the person's headers or with a token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use net::{Net, Purpose, Response, Timeouts};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use rmcp_sse_stream::{Error as SseError, Sse};
use tokio::sync::watch;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::events::events;
use super::failure::{Challenge, Failure, HttpError};
use super::headers::Header;

/// A call may take this long and the rest of a minute; its session gives it up before.
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(660),
    first_bytes: None,
    stall: None,
};

/// Bytes of an event at most, where rmcp says nothing.
const LONGEST_EVENT: usize = 16 << 20;

/// The time in which a request waits for the stream that a server opens beside it: some send what they ask the person there,
/// and to nobody if it is not open yet.
const OPENING: Duration = Duration::from_secs(1);

/// Failures that are kept to be shown.
const KEPT: usize = 50;

/// Streams in a row, each soon after the one before, until a server gets no more: it ends each of them at once.
const MOST_SHORT_STREAMS: u32 = 60;

/// Streams are in a row if no longer lies between them.
const SOON: Duration = Duration::from_secs(3);

const SESSION: &str = "mcp-session-id";

/// The right to use a server, which a person gave by signing in.
pub trait Tokens: Send + Sync {
    /// The token for the next request; none if nobody signed in.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, Failure>>;
    /// Another token in place of one that the server refused; none if somebody has to sign in again.
    fn renewed<'a>(&'a self, refused: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>>;
}

/// The client of one server. A clone is the same.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

struct Inner {
    net: Net,
    authorization: Option<String>,
    headers: Vec<Header>,
    tokens: Option<Arc<dyn Tokens>>,
    failures: Mutex<Vec<Failure>>,
    demand: Mutex<Option<Failure>>,
    stream_failure: Mutex<Option<Failure>>,
    /// When the last stream was asked for, and how many soon after each other.
    streams: Mutex<Option<(Instant, u32)>>,
    /// True while a stream was asked for and has not begun.
    opening: watch::Sender<bool>,
}

/// A request before it has a token.
struct Request<'a> {
    method: Method,
    address: &'a str,
    session: Option<&'a str>,
    last_event: Option<&'a str>,
    headers: &'a HashMap<HeaderName, HeaderValue>,
}

enum Method {
    Get,
    Post(Vec<u8>),
    Delete,
}

impl HttpClient {
    /// For a server with these headers. Without a header `Authorization`, `tokens` gives the right to use it.
    pub fn new(net: Net, headers: Vec<Header>, tokens: Option<Arc<dyn Tokens>>) -> Self {
        let (own, headers): (Vec<Header>, Vec<Header>) = headers.into_iter().partition(Header::is_authorization);
        let authorization = own.into_iter().next().map(|header| header.value);
        Self(Arc::new(Inner {
            net,
            tokens: tokens.filter(|_| authorization.is_none()),
            authorization,
            headers,
            failures: Mutex::default(),
            demand: Mutex::default(),
            stream_failure: Mutex::default(),
            streams: Mutex::default(),
            opening: watch::Sender::default(),
        }))
    }

    /// The failures that came last, oldest first.
    pub fn failures(&self) -> Vec<Failure> {
        self.lock().clone()
    }

    /// Why a stream of events ended, of which rmcp tells only that it did. It is told once.
    pub fn take_stream_failure(&self) -> Option<Failure> {
        let mut failure = self.0.stream_failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// The failure that came last.
    pub fn last_failure(&self) -> Option<Failure> {
        self.lock().last().cloned()
    }

    /// The last failure that somebody can cure by signing in.
    pub fn demand(&self) -> Option<Failure> {
        self.0.demand.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Failure>> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a failure.
    fn failed(&self, failure: Failure) {
        if failure.challenge().is_some() {
            *self.0.demand.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
        }
        let mut failures = self.lock();
        failures.push(failure);
        let surplus = failures.len().saturating_sub(KEPT);
        failures.drain(..surplus);
    }

    /// Asks, with another token if the server refuses the one that there is: a refused request was not worked on.
    async fn ask(&self, asked: Request<'_>) -> Result<Response, Failure> {
        let Some(tokens) = &self.0.tokens else {
            return self.ask_with(&asked, None).await;
        };
        let token = tokens.token().await?;
        let answer = self.ask_with(&asked, token.as_deref()).await?;
        match token {
            Some(refused) if answer.status() == 401 => match tokens.renewed(&refused).await? {
                Some(token) => self.ask_with(&asked, Some(&token)).await,
                None => Ok(answer),
            },
            _ => Ok(answer),
        }
    }

    async fn ask_with(&self, asked: &Request<'_>, token: Option<&str>) -> Result<Response, Failure> {
        let net = &self.0.net;
        let mut request = match &asked.method {
            Method::Get => net.get(asked.address, Purpose::ToolServer),
            Method::Post(body) => net
                .post(asked.address, Purpose::ToolServer)
                .body("application/json", body.clone()),
            Method::Delete => net.delete(asked.address, Purpose::ToolServer),
        };
        request = match asked.method {
            Method::Get => request.header("accept", "text/event-stream"),
            _ => request.header("accept", "application/json, text/event-stream"),
        };
        for Header { name, value } in &self.0.headers {
            request = request.header(name, value);
        }
        for (name, value) in asked.headers {
            request = request.header(name.as_str(), value.to_str().unwrap_or_default());
        }
        let own = [(SESSION, asked.session), ("last-event-id", asked.last_event)];
        for (name, value) in own.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            request = request.header(name, value);
        }
        request = match (&self.0.authorization, token) {
            (Some(value), _) => request.authorization(value),
            // Tokens of some servers are longer than keys.
            (None, Some(token)) => request.authorization(&format!("Bearer {token}")),
            (None, None) => request,
        };
        Ok(request.timeouts(TIMEOUTS).send().await?)
    }

    /// The error of a refusal to whom this client is, if it is one.
    fn unwelcome(&self, answer: &Response) -> Option<HttpError> {
        let challenge = challenge(answer);
        match answer.status() {
            401 if self.0.authorization.is_some() => Some(StreamableHttpError::Client(Failure::HeaderRefused)),
            401 => Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                challenge.unwrap_or_default(),
            ))),
            403 => {
                let challenge = challenge.filter(|challenge| challenge.contains("insufficient_scope"))?;
                let missing = InsufficientScopeError::new(challenge, None);
                Some(StreamableHttpError::InsufficientScope(missing))
            }
            _ => None,
        }
    }

    /// The error for rmcp, remembered.
    fn told(&self, error: HttpError) -> HttpError {
        match &error {
            StreamableHttpError::Client(failure) => self.failed(failure.clone()),
            StreamableHttpError::AuthRequired(required) => {
                let challenge = Challenge(required.www_authenticate_header.clone());
                self.failed(Failure::SignIn(challenge));
            }
            StreamableHttpError::InsufficientScope(missing) => {
                let challenge = Challenge(missing.www_authenticate_header.clone());
                self.failed(Failure::MorePermissions(challenge));
            }
            _ => {}
        }
        error
    }

    async fn post(
        &self,
        address: &str,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let asked = Request {
            method: Method::Post(serde_json::to_vec(&message)?),
            address,
            session: session.as_deref(),
            last_event: None,
            headers: &headers,
        };
        self.wait_for_stream().await;
        let answer = self.ask(asked).await.map_err(StreamableHttpError::Client)?;
        if let Some(error) = self.unwelcome(&answer) {
            return Err(error);
        }
        let begun = answer.header(SESSION).map(str::to_owned);
        Ok(
            match answer::read(answer, &message, session.is_some(), &limits).await? {
                Answer::Accepted => StreamableHttpPostResponse::Accepted,
                Answer::Message(message) => StreamableHttpPostResponse::Json(*message, begun),
                Answer::Events(response) => {
                    StreamableHttpPostResponse::Sse(self.events(*response, limits.max_sse_event_size), begun)
                }
            },
        )
    }

    async fn stream(
        &self,
        address: &str,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        longest: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        if self.asks_in_vain() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let asked = Request {
            method: Method::Get,
            address,
            session: session.as_deref(),
            last_event: last_event.as_deref(),
            headers: &headers,
        };
        self.0.opening.send_replace(true);
        let answer = self.ask(asked).await;
        self.0.opening.send_replace(false);
        let answer = answer.map_err(StreamableHttpError::Client)?;
        if let Some(error) = self.unwelcome(&answer) {
            return Err(error);
        }
        match answer.status() {
            200..=299 if answer::is_of_kind(&answer, answer::EVENTS) => Ok(self.events(answer, longest)),
            // Streams of what a server says unasked are its own choice, and how it says no differs.
            200..=299 | 404 | 405 | 501 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(StreamableHttpError::Client(Failure::Status {
                status,
                said: String::new(),
            })),
        }
    }

    /// Waits until a stream that was asked for has begun. One that takes long is not waited for again.
    async fn wait_for_stream(&self) {
        let mut opening = self.0.opening.subscribe();
        if timeout(OPENING, opening.wait_for(|opening| !opening)).await.is_err() {
            self.0.opening.send_replace(false);
        }
    }

    /// True if one stream after the other ends at once, so that asking for more would never end.
    fn asks_in_vain(&self) -> bool {
        let mut streams = self.0.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_row = match *streams {
            Some((last, count)) if last.elapsed() < SOON => count + 1,
            _ => 1,
        };
        *streams = Some((Instant::now(), in_a_row));
        in_a_row > MOST_SHORT_STREAMS
    }

    fn events(&self, answer: Response, longest: usize) -> BoxStream<'static, Result<Sse, SseError>> {
        let client = self.clone();
        events(answer, longest, move |failure| {
            *client.0.stream_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
            client.failed(failure);
        })
    }
}

/// The demand of a response that somebody signs in; one for a bearer of a token, if there are several.
fn challenge(answer: &Response) -> Option<String> {
    let all = answer.headers().filter(|(name, _)| *name == "www-authenticate");
    let mut all: Vec<String> = all.map(|(_, value)| value.to_owned()).collect();
    all.sort_by_key(|value| !value.to_lowercase().starts_with("bearer"));
    all.into_iter().next()
}

impl StreamableHttpClient for HttpClient {
    type Error = Failure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let posted = self.post(&uri, message, session_id, custom_headers, limits).await;
        posted.map_err(|error| self.told(error))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let asked = Request {
            method: Method::Delete,
            address: &uri,
            session: Some(&session_id),
            last_event: None,
            headers: &custom_headers,
        };
        // A server may not let anybody end a session; nothing rests on it.
        let answer = self.ask(asked).await.map_err(StreamableHttpError::Client)?;
        tracing::debug!(status = answer.status(), "a session with a server of tools was ended");
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            LONGEST_EVENT,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.stream(&uri, session_id, last_event_id, custom_headers, max_sse_event_size)
            .await
    }
}
