//! A response: its head, and its body as it arrives.

use std::sync::Arc;
use std::time::Duration;

use api::Purpose;
use bytes::Bytes;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::Timestamp;
use reqwest::header::{HeaderMap, LOCATION};
use serde::de::DeserializeOwned;
use url::Url;

use super::redirect::target;
use super::timeouts::Timeouts;
use crate::connections::{concerns_the_hub, Connections, OfflineLock};
use crate::endpoint::host_of;
use crate::error::{Error, Result};
use crate::requests::RequestEntry;

/// How long a small body may stand still, unless the request says otherwise.
const STALL: Duration = Duration::from_secs(30);

/// The head of a response, and its body to read. Dropping it before the body has ended closes the connection.
pub struct Response {
    pub(super) net: Arc<Connections>,
    pub(super) answer: reqwest::Response,
    pub(super) entry: RequestEntry,
    pub(super) address: Url,
    /// The headers of the hub's redirects.
    pub(super) passed: Vec<HeaderMap>,
    pub(super) sent: Sent,
    /// True once a piece of the body arrived.
    pub(super) begun: bool,
}

/// The request that this is the response to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) purpose: Purpose,
    pub(crate) lock: OfflineLock,
    /// True if a token or a key was sent.
    pub(crate) with_secret: bool,
    pub(crate) timeouts: Timeouts,
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
    /// The status.
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    /// The host that answered, after redirects.
    pub fn host(&self) -> String {
        host_of(&self.address)
    }

    /// The address that answered, after redirects.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// The address that a redirect leads to which was not followed; `None` if this is none, or its address is not safe.
    pub fn redirects_to(&self) -> Option<String> {
        let location = self.answer.headers().get(LOCATION)?;
        let leads = self.answer.status().is_redirection();
        leads
            .then(|| target(&self.address, location).ok())
            .flatten()
            .map(Into::into)
    }

    /// A header of this response, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers().get(name)?.to_str().ok()
    }

    /// The headers that are text.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.answer.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// A header as the hub itself sent it: of this response if it comes from the hub, else of the redirect that led
    /// away from the hub. So `X-Linked-Etag` and `X-Repo-Commit` never come from a CDN.
    pub fn hub_header(&self, name: &str) -> Option<&str> {
        let own = self.is_of_hub().then(|| self.answer.headers());
        own.into_iter()
            .chain(self.passed.iter().rev())
            .find_map(|headers| headers.get(name)?.to_str().ok())
    }

    fn is_of_hub(&self) -> bool {
        self.net
            .endpoint
            .as_ref()
            .is_ok_and(|endpoint| endpoint.owns(&self.address))
    }

    /// Bytes of the body, if the head says so.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// How long the server asks us to wait; the header holds seconds or a date.
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let when = DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Duration::try_from(when.duration_since(Timestamp::now())).unwrap_or_default())
    }

    /// This response if its status is a success, else an error that says what the status means.
    ///
    /// # Errors
    /// [`Error::Gated`], [`Error::Unauthorised`], [`Error::KeyRefused`], [`Error::NotFound`],
    /// [`Error::TooManyRequests`], [`Error::ServerError`], [`Error::UnexpectedStatus`].
    pub fn error_for_status(self) -> Result<Self> {
        match self.status_error() {
            Some(error) => {
                self.entry.failed(error.clone());
                Err(error)
            }
            None => Ok(self),
        }
    }

    /// The error that the status stands for; `None` for a success. The body, which may hold the server's own reason,
    /// can still be read.
    pub fn status_error(&self) -> Option<Error> {
        let status = self.answer.status();
        if status.is_success() {
            return None;
        }
        let host = self.host();
        let elsewhere = !self.is_of_hub();
        let with_token = self.sent.with_secret;
        let inference = !concerns_the_hub(self.sent.purpose);
        // huggingface_hub reads the same header in `hf_raise_for_status`.
        let reason = self.header("x-error-code").unwrap_or_default();
        Some(match status.as_u16() {
            401 | 403 if inference => Error::KeyRefused {
                host,
                with_key: with_token,
            },
            401 | 403 if reason == "GatedRepo" => Error::Gated { with_token },
            // Without a token the hub answers 401 for what does not exist, too.
            401 => Error::Unauthorised { host, with_token },
            403 if !elsewhere && !with_token => Error::Unauthorised { host, with_token },
            404 => Error::NotFound {
                host,
                what: match reason {
                    "RepoNotFound" => "such model",
                    "RevisionNotFound" => "such revision of this model",
                    "EntryNotFound" => "such file in this model",
                    _ if inference => "such model or address",
                    _ => "",
                }
                .to_owned(),
            },
            429 => Error::TooManyRequests {
                host,
                retry_after: self.retry_after(),
                token_helps: !inference && !with_token,
            },
            status @ 500.. => Error::ServerError {
                host,
                status,
                retry_after: self.retry_after(),
            },
            status => Error::UnexpectedStatus {
                host,
                status,
                elsewhere: elsewhere && !inference,
            },
        })
    }

    /// The next piece of the body, as soon as it arrives; `None` at its end. The time limits are those of the request
    /// ([`Timeouts`](crate::Timeouts)); without any, the caller decides how long standing still is too long.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if the connection ends before the body, [`Error::TimedOut`] if the body stands still
    /// for too long, [`Error::Offline`] when the switch is thrown.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let Timeouts { first_bytes, stall, .. } = self.sent.timeouts;
        let limit = if self.begun { stall } else { first_bytes.or(stall) };
        let piece = self
            .net
            .unless_offline(self.sent.lock, within(limit, self.answer.chunk()))
            .await;
        let host = || host_of(&self.address);
        let piece = piece.and_then(|piece| match piece {
            Ok(piece) => piece.map_err(|_| Error::ConnectionLost { host: host() }),
            Err(after) => Err(Error::TimedOut { host: host(), after }),
        });
        match &piece {
            Ok(Some(bytes)) => {
                self.begun = true;
                self.entry.received(bytes.len());
            }
            Ok(None) => {}
            Err(error) => self.entry.failed(error.clone()),
        }
        piece
    }

    /// The whole body, if it is not larger than `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`], before anything is read if the head says so; [`Error::TimedOut`] if it stands still, for 30
    /// seconds unless the request says otherwise; as [`Response::chunk`].
    pub async fn bytes_capped(mut self, limit: u64) -> Result<Vec<u8>> {
        let too_large = Error::TooLarge {
            host: self.host(),
            limit,
        };
        let promised = self.content_length().unwrap_or_default();
        if promised > limit {
            self.entry.failed(too_large.clone());
            return Err(too_large);
        }
        self.sent.timeouts.stall.get_or_insert(STALL);
        let mut body = Vec::with_capacity(usize::try_from(promised).unwrap_or_default());
        loop {
            let Some(piece) = self.chunk().await? else {
                return Ok(body);
            };
            if (body.len() + piece.len()) as u64 > limit {
                self.entry.failed(too_large.clone());
                return Err(too_large);
            }
            body.extend_from_slice(&piece);
        }
    }

    /// The body as text, if it is not larger than `limit` bytes. Invalid UTF-8 is replaced.
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
    /// [`Error::UnexpectedBody`] if it is not; as [`Response::bytes_capped`].
    pub async fn json_capped<T: DeserializeOwned>(self, limit: u64) -> Result<T> {
        let host = self.host();
        let body = self.bytes_capped(limit).await?;
        serde_json::from_slice(&body).map_err(|error| Error::UnexpectedBody {
            host,
            reason: error.to_string(),
        })
    }
}

/// The result of a future, or the limit that it exceeded.
async fn within<T>(
    limit: Option<Duration>,
    work: impl std::future::Future<Output = T>,
) -> std::result::Result<T, Duration> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit),
        None => Ok(work.await),
    }
}
