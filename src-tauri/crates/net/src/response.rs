//! An answer: its head, and its body as it comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use url::Url;

use crate::client::Inner;
use crate::endpoint::host_of;
use crate::requests::Counting;
use crate::{Error, Result};

/// How long a small body may stand still.
const STALL: Duration = Duration::from_secs(30);

/// The head of an answer, and the way to its body. Dropped, the connection is closed where the body has not ended.
pub struct Response {
    net: Arc<Inner>,
    answer: reqwest::Response,
    counting: Counting,
    address: Url,
    passed: Vec<HeaderMap>,
    with_token: bool,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("host", &self.host())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Response {
    pub(crate) fn new(
        net: Arc<Inner>,
        answer: reqwest::Response,
        counting: Counting,
        address: Url,
        passed: Vec<HeaderMap>,
        with_token: bool,
    ) -> Self {
        Self {
            net,
            answer,
            counting,
            address,
            passed,
            with_token,
        }
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    /// The host that answered, after redirects.
    pub fn host(&self) -> String {
        host_of(&self.address)
    }

    /// A header of this answer, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers().get(name)?.to_str().ok()
    }

    /// A header as the hub itself gave it: of this answer if the hub gave it, else of the redirect that led away from the hub.
    /// So `X-Linked-Etag` and `X-Repo-Commit` are the hub's word, never a CDN's.
    pub fn hub_header(&self, name: &str) -> Option<&str> {
        let own = self
            .net
            .endpoint
            .as_ref()
            .is_ok_and(|endpoint| endpoint.owns(&self.address))
            .then(|| self.answer.headers());
        own.into_iter()
            .chain(self.passed.iter().rev())
            .find_map(|headers| headers.get(name)?.to_str().ok())
    }

    /// Bytes of the body, where the head says so.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// How long the other side asks us to wait, in whole seconds or as a date.
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let when = DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Duration::try_from(when.duration_since(Timestamp::now())).unwrap_or_default())
    }

    /// This answer where its status is a success, an error that says what the status means otherwise.
    ///
    /// # Errors
    /// [`Error::Gated`], [`Error::Unauthorised`], [`Error::NotFound`], [`Error::TooManyRequests`], [`Error::Unwell`], [`Error::Refused`].
    pub fn checked(self) -> Result<Self> {
        match self.refusal() {
            Some(error) => {
                self.counting.failed(&error.to_string());
                Err(error)
            }
            None => Ok(self),
        }
    }

    /// What the status means, where it is no success.
    pub fn refusal(&self) -> Option<Error> {
        let status = self.answer.status();
        if status.is_success() {
            return None;
        }
        let host = self.host();
        let elsewhere = !self.net.endpoint.as_ref().is_ok_and(|endpoint| endpoint.owns(&self.address));
        let with_token = self.with_token;
        // huggingface_hub reads the same header in `hf_raise_for_status`.
        let reason = self.header("x-error-code").unwrap_or_default();
        Some(match status.as_u16() {
            401 | 403 if reason == "GatedRepo" => Error::Gated { with_token },
            // Without a token the hub hides what does not exist behind a 401.
            401 => Error::Unauthorised { host, with_token },
            403 if !elsewhere && !with_token => Error::Unauthorised { host, with_token },
            404 => Error::NotFound {
                host,
                what: match reason {
                    "RepoNotFound" => "such model",
                    "RevisionNotFound" => "such revision of this model",
                    "EntryNotFound" => "such file in this model",
                    _ => "",
                }
                .to_owned(),
            },
            429 => Error::TooManyRequests {
                host,
                retry_after: self.retry_after(),
            },
            status @ 500.. => Error::Unwell {
                host,
                status,
                retry_after: self.retry_after(),
            },
            status => Error::Refused { host, status, elsewhere },
        })
    }

    /// The next piece of the body; `None` at its end. There is no time limit: who reads decides how long standing still is too long.
    ///
    /// # Errors
    /// [`Error::Cut`] where the connection ends before the body, [`Error::Offline`] when the switch is thrown.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let piece = self.net.unless_offline(self.answer.chunk()).await;
        let piece = piece.and_then(|piece| {
            piece.map_err(|_| Error::Cut {
                host: host_of(&self.address),
            })
        });
        match &piece {
            Ok(Some(bytes)) => self.counting.received(bytes.len()),
            Ok(None) => {}
            Err(error) => self.counting.failed(&error.to_string()),
        }
        piece
    }

    /// The whole body, if it is not larger than `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`], before it is read where the head says so; [`Error::TimedOut`] where it stands still; as [`Response::chunk`].
    pub async fn bytes_capped(mut self, limit: u64) -> Result<Vec<u8>> {
        let host = self.host();
        let too_large = Error::TooLarge { host: host.clone(), limit };
        let promised = self.content_length().unwrap_or_default();
        if promised > limit {
            self.counting.failed(&too_large.to_string());
            return Err(too_large);
        }
        let mut body = Vec::with_capacity(usize::try_from(promised).unwrap_or_default());
        loop {
            let piece = match tokio::time::timeout(STALL, self.chunk()).await {
                Ok(piece) => piece?,
                Err(_) => {
                    let error = Error::TimedOut { host, after: STALL };
                    self.counting.failed(&error.to_string());
                    return Err(error);
                }
            };
            let Some(piece) = piece else { return Ok(body) };
            if (body.len() + piece.len()) as u64 > limit {
                self.counting.failed(&too_large.to_string());
                return Err(too_large);
            }
            body.extend_from_slice(&piece);
        }
    }

    /// The body as text, if it is not larger than `limit` bytes. What is no UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`Response::bytes_capped`].
    pub async fn text_capped(self, limit: u64) -> Result<String> {
        let body = self.bytes_capped(limit).await?;
        Ok(String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// The body as JSON, if it is not larger than `limit` bytes.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where it is none; as [`Response::bytes_capped`].
    pub async fn json_capped<T: DeserializeOwned>(self, limit: u64) -> Result<T> {
        let host = self.host();
        let body = self.bytes_capped(limit).await?;
        serde_json::from_slice(&body).map_err(|error| Error::Unreadable {
            host,
            reason: error.to_string(),
        })
    }
}
