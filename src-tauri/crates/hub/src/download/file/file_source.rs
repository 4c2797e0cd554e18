//! The source of one file: the hub, which redirects to a CDN for large files.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use net::{Purpose, RequestBuilder, Response};

use super::range_response::{evaluate, RangeRequest, RangeVerdict, ResponseHead};
use super::stop::Stop;
use crate::cache::{Commit, Etag, FilePath, RepositoryId};
use crate::error::Error;
use crate::huggingface::hub_api::{checked, HubApi};

/// The address of a file, and the hub's last redirect.
#[derive(Debug)]
pub struct FileSource {
    api: HubApi,
    id: RepositoryId,
    first: String,
    commit: Commit,
    etag: Etag,
    size: u64,
    cdn: Mutex<Option<String>>,
}

/// The failure of a request, and what to do about it.
#[derive(Debug)]
pub enum RequestFailure {
    /// A failure that no retry solves.
    Stop(Stop),
    /// Retry, after the delay that the server asked for, if any.
    Retry(protocol::Error, Option<Duration>),
    /// The server cannot be reached; waiting for it is no failure of the file.
    Unreachable(Error),
}

impl RequestFailure {
    /// A fault of the network that a retry may solve.
    pub fn network(reason: impl Into<String>) -> Self {
        Self::Retry(protocol::Error::new(protocol::ErrorCode::Network, reason), None)
    }
}

/// A response with the bytes of a range.
#[derive(Debug)]
pub struct OpenedRange {
    /// The response, before its body.
    pub response: Response,
    /// The range of its body.
    pub range: std::ops::Range<u64>,
    /// The ETag of the response.
    pub etag: Option<String>,
}

impl FileSource {
    /// The address of a file of `size` bytes with this hash.
    pub fn new(api: &HubApi, id: &RepositoryId, commit: &Commit, path: &FilePath, etag: &Etag, size: u64) -> Self {
        Self {
            api: api.clone(),
            id: id.clone(),
            first: api.file_address(id, commit, path),
            commit: commit.clone(),
            etag: etag.clone(),
            size,
            cdn: Mutex::default(),
        }
    }

    /// Requests a range of the file.
    ///
    /// # Errors
    /// [`RequestFailure`].
    pub async fn open(&self, asked: &RangeRequest, head_timeout: Duration) -> Result<OpenedRange, RequestFailure> {
        let known = self.cdn().clone();
        let mut response = match &known {
            Some(address) => self.ask(self.get(address), asked, head_timeout).await?,
            None => {
                let request = self.get(&self.first).stay_on_hub();
                let response = self.ask(request, asked, head_timeout).await?;
                self.is_the_same(&response)?;
                response
            }
        };
        let redirected = known.is_none() && (300..400).contains(&response.status());
        let location = response.header("location").filter(|_| redirected).map(str::to_owned);
        if let Some(location) = location {
            drop(response);
            response = self.ask(self.get(&location), asked, head_timeout).await?;
            *self.cdn() = Some(location);
        }
        let answer = ResponseHead {
            status: response.status(),
            content_range: response.header("content-range").map(Into::into),
            content_length: response.content_length(),
            content_encoding: response.header("content-encoding").map(Into::into),
            etag: response.header("etag").map(Into::into),
        };
        match evaluate(asked, &answer) {
            RangeVerdict::Bytes(range) => Ok(OpenedRange {
                response,
                range,
                etag: answer.etag,
            }),
            RangeVerdict::Changed(reason) => Err(RequestFailure::Stop(Stop::Changed(reason))),
            RangeVerdict::Restart(reason) => Err(RequestFailure::Stop(Stop::Restart(reason))),
            RangeVerdict::Retry(reason) => Err(RequestFailure::network(reason)),
            RangeVerdict::Refused => Err(self.refused(response)),
        }
    }

    /// Forgets the redirect.
    pub fn forget(&self) {
        self.cdn().take();
    }

    fn get(&self, address: &str) -> RequestBuilder {
        self.api.net().get(address, Purpose::Download)
    }

    async fn ask(
        &self,
        request: RequestBuilder,
        asked: &RangeRequest,
        head_timeout: Duration,
    ) -> Result<Response, RequestFailure> {
        // Bytes are counted and hashed as they arrive, so they must not be compressed.
        let mut request = request.header("accept-encoding", "identity").head_timeout(head_timeout);
        if asked.ranged {
            request = request.range(asked.range.start, Some(asked.range.end.saturating_sub(1)));
            // A weak tag guarantees nothing about single bytes.
            if let Some(etag) = asked.validator.as_deref().filter(|etag| !etag.starts_with("W/")) {
                request = request.if_range(etag);
            }
        }
        request.send().await.map_err(classify)
    }

    /// Checks that the hub still has the file of the list.
    fn is_the_same(&self, response: &Response) -> Result<(), RequestFailure> {
        if response.status() >= 400 {
            return Ok(());
        }
        let changed = |reason: String| Err(RequestFailure::Stop(Stop::Changed(reason)));
        let linked = response.hub_header("x-linked-etag");
        // A tag that is no hash does not identify the content.
        let named = linked
            .or_else(|| response.hub_header("etag"))
            .and_then(|etag| Etag::new(etag).ok());
        if (linked.is_some() && named.is_none()) || named.is_some_and(|named| named != self.etag) {
            return changed("the hub names another hash for it than its list of files".into());
        }
        let size = response.hub_header("x-linked-size").and_then(|size| size.parse().ok());
        if let Some(size) = size.filter(|size: &u64| *size != self.size) {
            return changed(format!("it has {size} bytes instead of {}", self.size));
        }
        match response.hub_header("x-repo-commit") {
            Some(commit) if commit != self.commit.as_str() => changed(format!("the hub sends it from commit {commit}")),
            _ => Ok(()),
        }
    }

    /// The meaning of a status without bytes. A redirect expires after a while; then the hub gives another one.
    fn refused(&self, response: Response) -> RequestFailure {
        let cdn = self.cdn().take().is_some();
        let (host, status, wait) = (response.host(), response.status(), response.retry_after());
        let passes = response.status_error().is_some_and(|error| error.is_transient());
        let missing = status == 404 && !cdn;
        let error = match checked(response, &self.id) {
            Err(error) => error,
            Ok(_) => Error::Net(net::Error::UnexpectedBody {
                host,
                reason: format!("status {status}"),
            }),
        };
        if cdn || passes {
            return RequestFailure::Retry(error.into(), wait);
        }
        if missing {
            return RequestFailure::Stop(Stop::Changed("the hub has no such file any more".into()));
        }
        RequestFailure::Stop(Stop::Failed(error))
    }

    fn cdn(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.cdn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The meaning of a network error for a download.
pub fn classify(error: net::Error) -> RequestFailure {
    match error {
        net::Error::Dns { .. } | net::Error::Connect { .. } => RequestFailure::Unreachable(error.into()),
        error if error.is_transient() => {
            let wait = error.retry_after();
            RequestFailure::Retry(error.into(), wait)
        }
        error => RequestFailure::Stop(Stop::Failed(error.into())),
    }
}
