//! Responses of all routes, and the request data that they need.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::http::error_body::{Dialect, Refusal, Retry};

/// The id of a request, for its response headers and errors.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The listed name of the program that sent a request.
#[derive(Debug, Clone)]
pub(crate) struct ClientName(pub(crate) String);

/// The dialect of a path.
pub(crate) fn dialect(path: &str, headers: &HeaderMap) -> Dialect {
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
