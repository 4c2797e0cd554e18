//! Reads the body of a request: checks its type, size, time and nesting, then parses the JSON.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::HeaderMap;
use protocol::{json_values, JsonExcess};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::error_body::{Kind, Refusal, Retry};

/// The maximum number of JSON values, so that a small body cannot take much memory: a chat of 10,000 messages has about
/// 60,000.
const MOST_VALUES: usize = 250_000;

/// Deepest nesting of a body.
const DEEPEST: usize = 100;

/// A body that was read. It has its share of the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct JsonBody {
    pub(crate) value: Value,
    _share: OwnedSemaphorePermit,
}

/// The limits of bodies, each alone and all together.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    most: usize,
    time: Duration,
    /// A permit for each byte that may be held at once.
    budget: Arc<Semaphore>,
    whole_budget: usize,
}

impl Bodies {
    /// Limits for bodies of `most` bytes in this time, of which all together have `budget` bytes.
    pub(crate) fn new(most: usize, time: Duration, budget: usize) -> Self {
        let budget = budget.min(u32::MAX as usize);
        Self {
            most,
            time,
            budget: Arc::new(Semaphore::new(budget)),
            whole_budget: budget,
        }
    }

    /// Reads the JSON of a request, once the bodies before it leave room for its bytes.
    ///
    /// # Errors
    /// If it is not JSON, compressed, too large, too slow, too deep or of too many values, or there is no room in time.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<JsonBody, Refusal> {
        check_type(headers)?;
        let too_large = || Refusal::new(Kind::TooLarge, format!("the body has more than {} bytes", self.most));
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > self.most as u64) {
            return Err(too_large());
        }
        let length = length.map_or(self.most, |length| length as usize);
        let mut share = self.share(length).await?;
        let bytes = match tokio::time::timeout(self.time, to_bytes(body, self.most)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => return Err(too_large()),
            Err(_) => return Err(Refusal::new(Kind::Timeout, "the body did not come in time")),
        };
        // A body that did not tell its length took the most there can be.
        drop(share.split(share.num_permits().saturating_sub(bytes.len())));
        check_shape(&bytes)?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::new(Kind::BadRequest, format!("the body is not JSON: {error}")))?;
        Ok(JsonBody { value, _share: share })
    }

    /// A share of the budget, in the order of the requests.
    async fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let permits = u32::try_from(bytes.min(self.whole_budget)).unwrap_or(u32::MAX);
        let share = self.budget.clone().acquire_many_owned(permits);
        match tokio::time::timeout(self.time, share).await {
            Ok(Ok(share)) => Ok(share),
            _ => {
                let mut refusal = Refusal::new(Kind::Busy, "too many large requests are being read; try again later");
                refusal.retry = Retry::After(5);
                Err(refusal)
            }
        }
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
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
    Ok(())
}

/// Refuses what would take too much memory, before anything is parsed.
fn check_shape(bytes: &[u8]) -> Result<(), Refusal> {
    let (kind, message) = match json_values(bytes, DEEPEST, MOST_VALUES) {
        Ok(_) => return Ok(()),
        Err(JsonExcess::Depth) => (
            Kind::BadRequest,
            format!("the body is nested more than {DEEPEST} levels deep"),
        ),
        Err(JsonExcess::Values) => (
            Kind::TooLarge,
            format!("the body has more than {MOST_VALUES} values, such as messages"),
        ),
    };
    Err(Refusal::new(kind, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excess_is_refused_by_its_kind() {
        assert_eq!(check_shape("[]".repeat(130_000).as_bytes()), Ok(()));
        let kind = |text: String| check_shape(text.as_bytes()).unwrap_err().kind;
        assert_eq!(kind("[".repeat(10_000)), Kind::BadRequest);
        assert_eq!(kind(format!("[{}0]", "0,".repeat(300_000))), Kind::TooLarge);
    }
}
