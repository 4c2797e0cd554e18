//! Responses of all routes, and the request data that they need.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use serde_json::Value;

use crate::http::error_body::{Dialect, Refusal, Retry};

/// The id of a request, for its response headers and errors, and the listed name of the program that sent it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    pub(crate) request_id: String,
    pub(crate) client: String,
}

/// A response whose body the listener writes, which knows the dialect and the id of the request.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        Extension(self).into_response()
    }
}

/// The dialect of a path.
pub(crate) fn dialect(path: &str, headers: &HeaderMap) -> Dialect {
    // Ollama's clients send no key, and read no error but their own.
    if path.starts_with("/api/") {
        return Dialect::Ollama;
    }
    let path = path.strip_prefix("/v1").unwrap_or(path);
    if path.starts_with("/messages") || headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}

/// An error as a response.
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

pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// The media type of a stream of Server-Sent Events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// A stream of Server-Sent Events.
pub(crate) fn event_stream(body: impl Into<Body>) -> Response {
    stream(EVENT_STREAM, body)
}

/// A stream of this media type.
pub(crate) fn stream(kind: &'static str, body: impl Into<Body>) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")];
    (headers, body.into()).into_response()
}
