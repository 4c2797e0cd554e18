//! One request: its headers, its body, its redirects, and who may see the token or the key.

use std::sync::Arc;
use std::time::Duration;

use api::Purpose;
use bytes::Bytes;
use reqwest::header::{
    HeaderMap, HeaderName, HeaderValue, ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, IF_RANGE, LOCATION, RANGE,
};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use url::Url;

use super::redirect::{into_the_network, parsed, target};
use super::response::{Response, Sent};
use super::timeouts::Timeouts;
use crate::connections::{concerns_the_hub, Connections, OfflineLock, CONNECT_TIMEOUT, USER_AGENT};
use crate::credentials::one_word;
use crate::endpoint::{host_of, is_loopback, without_secrets, Place};
use crate::error::{Error, Result};
use crate::requests::RequestEntry;

const MOST_REDIRECTS: usize = 10;

/// Redirects that are followed from one page of a host to another.
const MOST_ON_HOST: usize = 5;

/// The redirects that a request follows; another one is returned as its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    All,
    WithinHub,
    WithinHost,
    None,
}

/// A request that is being put together.
#[must_use = "nothing is asked before `send`"]
pub struct RequestBuilder {
    net: Arc<Connections>,
    method: Method,
    address: String,
    purpose: Purpose,
    headers: HeaderMap,
    body: Option<Bytes>,
    key: Option<(HeaderName, HeaderValue)>,
    timeouts: Timeouts,
    follows: Follows,
    named_by: Option<String>,
    wrong: Option<Error>,
}

impl RequestBuilder {
    pub(crate) fn new(net: Arc<Connections>, method: Method, address: &str, purpose: Purpose) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        Self {
            net,
            method,
            address: address.to_owned(),
            purpose,
            headers,
            body: None,
            key: None,
            timeouts: Timeouts::default(),
            follows: Follows::All,
            named_by: None,
            wrong: None,
        }
    }

    /// A header, sent along with redirects. `Authorization` is refused: this crate adds the hub's token itself, and a
    /// key goes through [`RequestBuilder::bearer`] or [`RequestBuilder::authorization`].
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) if name != AUTHORIZATION => {
                self.headers.insert(name, value);
            }
            _ => {
                self.wrong = Some(Error::BadAddress {
                    address: without_secrets(&self.address),
                });
            }
        }
        self
    }

    /// Only these bytes of the body: from `first` to the end, or to `last`, both included.
    pub fn range(mut self, first: u64, last: Option<u64>) -> Self {
        let range = match last {
            Some(last) => format!("bytes={first}-{last}"),
            None => format!("bytes={first}-"),
        };
        if let Ok(range) = HeaderValue::try_from(range) {
            self.headers.insert(RANGE, range);
        }
        self
    }

    /// The range only if the file is still the one of this ETag; the whole file otherwise. Quotes are put around it, as
    /// a strong tag has them.
    pub fn if_range(self, etag: &str) -> Self {
        let quoted = format!("\"{}\"", etag.trim_matches('"'));
        self.header(IF_RANGE.as_str(), &quoted)
    }

    /// A body of this kind.
    pub fn body(mut self, kind: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self = self.header(CONTENT_TYPE.as_str(), kind);
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        self.body = Some(body);
        self
    }

    /// A body of JSON.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => {
                self.headers
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                self.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
                self.body = Some(body.into());
            }
            Err(error) => {
                self.wrong = Some(Error::Unserializable {
                    reason: error.to_string(),
                });
            }
        }
        self
    }

    /// A key for this call, sent as `Authorization: Bearer …`. It goes to the address's own origin and nowhere else: a
    /// redirect to another one is [`Error::Redirect`].
    pub fn bearer(self, key: &str) -> Self {
        self.key(AUTHORIZATION, "Bearer ", key)
    }

    /// A key for this call in a header of another name; it goes no further than that of [`RequestBuilder::bearer`].
    pub fn key_header(self, name: &'static str, key: &str) -> Self {
        self.key(HeaderName::from_static(name), "", key)
    }

    fn key(mut self, name: HeaderName, before: &str, key: &str) -> Self {
        match one_word(key).and_then(|key| HeaderValue::try_from(format!("{before}{key}")).ok()) {
            Some(mut value) => {
                value.set_sensitive(true);
                self.key = Some((name, value));
            }
            None => self.wrong = Some(Error::BadKey),
        }
        self
    }

    /// The whole value of `Authorization` for this call. It goes where a [`RequestBuilder::bearer`] goes.
    pub fn authorization(mut self, value: &str) -> Self {
        match HeaderValue::try_from(value.trim()) {
            Ok(mut value) if !value.is_empty() => {
                value.set_sensitive(true);
                self.key = Some((AUTHORIZATION, value));
            }
            _ => self.wrong = Some(Error::BadKey),
        }
        self
    }

    /// Says that no user set this address but a server named it, at this address of its own, which was asked before. Like a
    /// redirect of it, it leads no nearer to this computer than that server is.
    pub fn named_by(mut self, server: &str) -> Self {
        self.named_by = Some(server.to_owned());
        self
    }

    /// How long the stages of this call may take.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// How long the head of the answer may take, each hop by itself; 30 seconds when nothing is said.
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.head = timeout;
        self
    }

    /// Follows only redirects that stay on the hub. One that leaves it is returned as the response; its headers say
    /// what the file is.
    pub fn stay_on_hub(mut self) -> Self {
        self.follows = Follows::WithinHub;
        self
    }

    /// Follows no redirect; it is returned as the response.
    pub fn return_redirects(mut self) -> Self {
        self.follows = Follows::None;
        self
    }

    /// Follows at most five redirects, and only those that stay on the host. One that leaves it is returned as the
    /// response; [`Response::redirects_to`] says where it leads.
    pub fn stay_on_host(mut self) -> Self {
        self.follows = Follows::WithinHost;
        self
    }

    /// Sends it and follows redirects. A response may have any status: [`Response::error_for_status`] turns those that
    /// are no success into errors.
    ///
    /// # Errors
    /// [`Error::Offline`], at once or when the switch is set meanwhile; whatever keeps the head of the response from
    /// arriving.
    pub async fn send(self) -> Result<Response> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let endpoint = match &self.net.endpoint {
            Ok(endpoint) => Some(endpoint),
            // A wrong address of the hub does not matter to other servers.
            Err(_) if !concerns_the_hub(self.purpose) => None,
            Err(error) => return Err(error.clone()),
        };
        let of_the_hub = |address: &Url| endpoint.is_some_and(|endpoint| endpoint.owns(address));
        let mut address = parsed(&self.address)?;
        let mut passed: Vec<HeaderMap> = Vec::new();
        let (mut reach, mut from) = match &self.named_by {
            None => (self.net.reach_of(self.purpose, &address), None),
            Some(server) => {
                let server = parsed(server)?;
                (self.net.reach_from(self.purpose, &server), Some(host_of(&server)))
            }
        };
        let most = match self.follows {
            Follows::WithinHost => MOST_ON_HOST,
            Follows::All | Follows::WithinHub | Follows::None => MOST_REDIRECTS,
        };
        for hops in 0.. {
            let (answer, entry, sent) = self.hop(&address, reach).await.map_err(|error| match (error, &from) {
                (Error::LocalNetwork { host }, Some(from)) => into_the_network(from, &host),
                (error, _) => error,
            })?;
            let location = answer
                .headers()
                .get(LOCATION)
                .filter(|_| answer.status().is_redirection());
            let location = location.filter(|_| self.follows != Follows::None);
            let next = location.map(|location| target(&address, location)).transpose()?;
            if let Some(next) = &next {
                self.may_be_repeated(answer.status(), &address, next)?;
            }
            let is_followed = |next: &Url| match self.follows {
                Follows::All => true,
                Follows::WithinHub => of_the_hub(next),
                Follows::WithinHost => host_of(next) == host_of(&address),
                Follows::None => false,
            };
            let Some(next) = next.filter(is_followed) else {
                return Ok(Response {
                    net: Arc::clone(&self.net),
                    answer,
                    entry,
                    address,
                    passed,
                    sent,
                    begun: false,
                });
            };
            if hops == most {
                break;
            }
            // Only the hub's own headers about a file count, not what another server on the way claims.
            if of_the_hub(&address) {
                passed.push(answer.headers().clone());
            }
            reach = self.net.reach_from(self.purpose, &address);
            from = Some(host_of(&address));
            address = next;
        }
        Err(Error::Redirect {
            host: host_of(&address),
            reason: format!("more than {most} times in a row"),
        })
    }

    /// Refuses a redirect that would carry a key or a body to another origin, or drop the body. A server of tools is the one
    /// that the user set, so none leads elsewhere.
    fn may_be_repeated(&self, status: StatusCode, from: &Url, to: &Url) -> Result<()> {
        let refused = |reason: String| {
            Err(Error::Redirect {
                host: host_of(from),
                reason,
            })
        };
        let bound = self.key.is_some() || self.body.is_some() || self.purpose == Purpose::ToolServer;
        if bound && from.origin() != to.origin() {
            let (scheme, host) = (to.scheme(), host_of(to));
            let reason = format!("to {scheme}://{host}, which was not meant to get what was sent");
            return refused(reason);
        }
        if self.body.is_some() && !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            return refused(format!("with status {status}, which leaves out what was sent"));
        }
        Ok(())
    }

    /// One request to one address, entered in the list.
    async fn hop(&self, address: &Url, reach: Place) -> Result<(reqwest::Response, RequestEntry, Sent)> {
        let net = &self.net;
        let lock = OfflineLock::of(self.purpose, address);
        let host = host_of(address);
        let entry = net.requests.begin(host.clone(), self.purpose, self.method.as_str());
        let noted = |error: Error| {
            entry.failed(error.clone());
            error
        };
        let held_back = || lock == OfflineLock::Obeys && net.is_offline();
        if held_back() {
            return Err(noted(net.offline()));
        }
        let mut headers = self.headers.clone();
        let mut with_secret = false;
        if let Some((name, key)) = &self.key {
            headers.insert(name.clone(), key.clone());
            with_secret = true;
        } else if concerns_the_hub(self.purpose)
            && net
                .endpoint
                .as_ref()
                .is_ok_and(|endpoint| endpoint.may_see_the_token(address))
        {
            let token = net.unless_offline(lock, net.tokens.token()).await.map_err(noted)?;
            if let Some(mut value) = token
                .secret
                .and_then(|secret| HeaderValue::try_from(format!("Bearer {secret}")).ok())
            {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
                with_secret = true;
            }
        }
        let size =
            request_bytes(&self.method, address, &headers) + self.body.as_ref().map_or(0, |body| body.len() as u64);
        let client = net.client(address, reach).map_err(noted)?;
        let mut asked = client.request(self.method.clone(), address.clone()).headers(headers);
        if let Some(body) = &self.body {
            asked = asked.body(body.clone());
        }
        entry.sent(size);
        let timeout = self.timeouts.head + CONNECT_TIMEOUT.min(self.timeouts.head);
        let answer = net.unless_offline(lock, tokio::time::timeout(timeout, asked.send()));
        let answer = answer.await.map_err(noted)?;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            // While the switch is on the resolver refuses, which does not mean that the name is unknown.
            Ok(Err(_)) if held_back() => return Err(noted(net.offline())),
            Ok(Err(error)) => {
                return Err(noted(Error::of_transport(
                    &error,
                    &host,
                    net.proxied && !is_loopback(address),
                    CONNECT_TIMEOUT,
                )));
            }
            Err(_) => return Err(noted(Error::TimedOut { host, after: timeout })),
        };
        entry.answered(answer.status().as_u16());
        let sent = Sent {
            purpose: self.purpose,
            lock,
            with_secret,
            timeouts: self.timeouts,
        };
        Ok((answer, entry, sent))
    }
}

/// Bytes of the request's head in HTTP/1.1: its line, its headers and the empty line. To a proxy the line is longer by
/// the host.
fn request_bytes(method: &Method, address: &Url, headers: &HeaderMap) -> u64 {
    let line = method.as_str().len()
        + 1
        + address[url::Position::BeforePath..url::Position::AfterQuery].len()
        + " HTTP/1.1\r\n".len();
    let host = "host: \r\n".len() + host_of(address).len();
    let agent = "user-agent: \r\n".len() + USER_AGENT.len();
    let own: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + ": \r\n".len() + value.len())
        .sum();
    (line + host + agent + own + "\r\n".len()) as u64
}
