//! The answer to a message: a message, a stream of events, or a refusal.

use net::Response;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpResponseLimits};

use super::failure::{Failure, HttpError};
use crate::visible::visible;

pub(super) const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The answer to a message.
pub(super) enum Answer {
    /// It was taken, and there is nothing to say.
    Accepted,
    /// A message.
    Message(Box<ServerJsonRpcMessage>),
    /// A stream of messages.
    Events(Box<Response>),
}

/// Reads the answer to a message.
pub(super) async fn read(
    answer: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
    limits: &StreamableHttpResponseLimits,
) -> Result<Answer, HttpError> {
    let asked = match message {
        ClientJsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    };
    match (answer.status(), asked) {
        // The answer may come on the stream of what the server says unasked.
        (202 | 204, _) | (200..=299, None) => Ok(Answer::Accepted),
        (200..=299, Some(_)) if is_of_kind(&answer, EVENTS) => Ok(Answer::Events(Box::new(answer))),
        (200..=299, Some(_)) => success(answer, limits.max_json_response_size).await,
        (404, _) if in_session => Err(StreamableHttpError::SessionExpired),
        _ => refusal(answer, message, asked, in_session, limits).await,
    }
}

async fn success(answer: Response, longest: usize) -> Result<Answer, HttpError> {
    if !is_of_kind(&answer, JSON) {
        let kind = answer.header("content-type").unwrap_or("nothing").to_owned();
        return Err(StreamableHttpError::Client(Failure::OtherKind(visible(&kind))));
    }
    let body = answer.bytes_capped(longest as u64).await;
    let body = body.map_err(|error| {
        StreamableHttpError::Client(match error {
            net::Error::TooLarge { .. } => Failure::TooLarge(longest),
            other => other.into(),
        })
    })?;
    match serde_json::from_slice(&body) {
        Ok(message) => Ok(Answer::Message(Box::new(message))),
        Err(error) => Err(StreamableHttpError::Client(Failure::NoMessage(error.to_string()))),
    }
}

/// The meaning of a status that is no success. An error as JSON-RPC has it is the answer to what was asked, whatever id
/// the server gives it: many give none, and a request without an answer would wait for its time limit.
async fn refusal(
    answer: Response,
    message: &ClientJsonRpcMessage,
    asked: Option<&RequestId>,
    in_session: bool,
    limits: &StreamableHttpResponseLimits,
) -> Result<Answer, HttpError> {
    let status = answer.status();
    let said = beginning(answer, limits.max_error_response_size).await;
    let error = match serde_json::from_str::<ServerJsonRpcMessage>(&said) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    // The SDKs answer so where the specification says 404.
    if in_session && status == 400 && said.to_lowercase().contains("session") {
        return Err(StreamableHttpError::SessionExpired);
    }
    let unwelcome = matches!(status, 401 | 403);
    let probed = match message {
        ClientJsonRpcMessage::Request(request) => matches!(request.request, ClientRequest::DiscoverRequest(_)),
        _ => false,
    };
    // A server before 2026-07-28 refuses the probe in its own way; rmcp goes on as the specification says.
    let error = error.or_else(|| {
        let older = probed && !in_session && (400..=499).contains(&status) && !unwelcome;
        older.then(|| ErrorData::invalid_request(format!("status {status}"), None))
    });
    match (error, asked) {
        (Some(error), Some(id)) if !unwelcome => {
            let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
            Ok(Answer::Message(Box::new(message)))
        }
        (error, _) => Err(StreamableHttpError::Client(Failure::Status {
            status,
            said: error.map_or(said, |error| error.message.into_owned()),
        })),
    }
}

/// The beginning of a body, as text.
async fn beginning(mut answer: Response, longest: usize) -> String {
    let mut body = Vec::new();
    while body.len() < longest {
        match tokio::time::timeout(std::time::Duration::from_secs(5), answer.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes[..bytes.len().min(longest - body.len())]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// True if the content is of this kind, whatever its parameters.
pub(super) fn is_of_kind(answer: &Response, kind: &str) -> bool {
    let content = answer.header("content-type").unwrap_or_default();
    let own = content.split(';').next().unwrap_or_default();
    own.trim().eq_ignore_ascii_case(kind)
}
