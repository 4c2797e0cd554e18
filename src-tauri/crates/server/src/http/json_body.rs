//! Reads the body of a request: checks its type, size, time and nesting, then parses the JSON.

use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::HeaderMap;
use serde_json::Value;

use crate::http::error_body::{Kind, Refusal};

/// The maximum number of JSON values, so that a small body cannot take much memory: a chat of 10,000 messages has about
/// 60,000.
const MOST_VALUES: usize = 250_000;

/// Deepest nesting of a body.
const DEEPEST: usize = 100;

/// Reads the JSON of a request.
///
/// # Errors
/// If it is not JSON, compressed, too large, too slow, too deep or of too many values.
pub(crate) async fn read(headers: &HeaderMap, body: Body, most: usize, time: Duration) -> Result<Value, Refusal> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase())
    };
    let kind = text(CONTENT_TYPE).unwrap_or_default();
    // A web page can send other types to any server without a preflight request.
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let message = "the body must be JSON; send `content-type: application/json`";
        return Err(Refusal::new(Kind::MediaType, message));
    }
    if text(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Refusal::new(Kind::MediaType, "the body must not be compressed"));
    }
    let too_large = || Refusal::new(Kind::TooLarge, format!("the body has more than {most} bytes"));
    let length = headers
        .get("content-length")
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > most as u64) {
        return Err(too_large());
    }
    let bytes = match tokio::time::timeout(time, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(too_large()),
        Err(_) => return Err(Refusal::new(Kind::Timeout, "the body did not come in time")),
    };
    check_shape(&bytes)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(Kind::BadRequest, format!("the body is not JSON: {error}")))
}

/// Counts brackets and commas outside of strings, before anything is parsed.
fn check_shape(bytes: &[u8]) -> Result<(), Refusal> {
    let (mut depth, mut values, mut in_text, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in bytes {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                depth += 1;
                values += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > DEEPEST {
            let message = format!("the body is nested more than {DEEPEST} levels deep");
            return Err(Refusal::new(Kind::BadRequest, message));
        }
        if values > MOST_VALUES {
            let message = format!("the body has more than {MOST_VALUES} values, such as messages");
            return Err(Refusal::new(Kind::TooLarge, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_do_not_count() {
        let text = format!("{{\"a\": \"{}\\\"{}\"}}", "[".repeat(10_000), ",".repeat(300_000));
        assert_eq!(check_shape(text.as_bytes()), Ok(()));
        assert_eq!(
            check_shape("[".repeat(10_000).as_bytes()).unwrap_err().kind,
            Kind::BadRequest
        );
        assert_eq!(check_shape("[]".repeat(130_000).as_bytes()), Ok(()));
        assert_eq!(
            check_shape(format!("[{}0]", "0,".repeat(300_000)).as_bytes())
                .unwrap_err()
                .kind,
            Kind::TooLarge
        );
    }
}
