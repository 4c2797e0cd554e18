//! The two origins: the hub with its API and resolve addresses, and the origin of large files.
#![allow(clippy::result_large_err, reason = "a refusal is an answer like any other")]

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{header, HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use axum::Router;
use serde_json::{json, Value};

use crate::body::{self, put, Order};
use crate::content::File;
use crate::fault::{Asked, Fault, FaultTarget};
use crate::line::{Address, Cut};
use crate::listing::{self, Page, Query};
use crate::repository::{Access, Repository};
use crate::{Origin, Shared};

const ERROR_CODE: HeaderName = HeaderName::from_static("x-error-code");
const ERROR_MESSAGE: HeaderName = HeaderName::from_static("x-error-message");
const REPO_COMMIT: HeaderName = HeaderName::from_static("x-repo-commit");
const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");
const LOGIN_PAGE: &str = "<!doctype html><title>Welcome to the Grand Hotel</title><form>Room number: <input></form>";

/// A request, and the counter of its response.
struct Call<'a> {
    shared: &'a Arc<Shared>,
    origin: Origin,
    method: &'a Method,
    headers: &'a HeaderMap,
    /// The path's parts, decoded.
    parts: Vec<String>,
    /// Path and query as received.
    target: String,
    query: Query,
    cut: Cut,
    sent: Arc<AtomicU64>,
}

type Answer = Result<Response<Body>, Response<Body>>;

pub(crate) async fn serve(shared: Arc<Shared>, origin: Origin, address: Address) {
    let router = Router::new()
        .fallback(
            move |State(shared): State<Arc<Shared>>, ConnectInfo(cut): ConnectInfo<Cut>, request| async move {
                answer(shared, origin, cut, request).await
            },
        )
        .with_state(shared);
    // The task ends with the runtime.
    let _ = axum::serve(address, router.into_make_service_with_connect_info::<Cut>()).await;
}

async fn answer(shared: Arc<Shared>, origin: Origin, cut: Cut, request: Request<Body>) -> Response<Body> {
    let (uri, headers) = (request.uri().clone(), request.headers().clone());
    let sent = Arc::new(AtomicU64::new(0));
    let number = shared.log(origin, request.method(), &uri, &headers, sent.clone());
    let call = Call {
        shared: &shared,
        origin,
        method: request.method(),
        headers: &headers,
        parts: uri
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .map(decoded)
            .collect(),
        target: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        query: Query(uri.query().unwrap_or_default().split('&').filter_map(pair).collect()),
        cut,
        sent,
    };
    let response = call.route().await.unwrap_or_else(|refusal| refusal);
    shared.answered(number, response.status().as_u16());
    response
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((decoded(name), decoded(value)))
}

/// Percent-decoded as far as possible.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn said(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    put(&mut response, header::CONTENT_TYPE, "application/json; charset=utf-8");
    response
}

fn refusal(status: u16, code: &str, message: &str) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = said(status, &json!({ "error": message }));
    if !code.is_empty() {
        put(&mut response, ERROR_CODE, code);
    }
    put(&mut response, ERROR_MESSAGE, message);
    response
}

fn sent_on(location: &str, status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    put(&mut response, header::LOCATION, location);
    response
}

impl Call<'_> {
    async fn route(&self) -> Answer {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        match (self.origin, parts.as_slice()) {
            (Origin::Cdn, ["large", id @ .., sha, oid]) => self.large(&id.join("/"), sha, oid).await,
            (Origin::Hub, ["api", "models"]) => self.search().await,
            (Origin::Hub, ["api", "resolve-cache", "models", owner, name, sha, path @ ..]) => {
                self.small_elsewhere(&format!("{owner}/{name}"), sha, &path.join("/"))
                    .await
            }
            (Origin::Hub, ["api", "models", rest @ ..]) => self.api(rest).await,
            (Origin::Hub, ["api", "whoami-v2"]) if self.let_in() => {
                Ok(said(StatusCode::OK, &json!({"name": "tester", "type": "user"})))
            }
            (Origin::Hub, _) => {
                let at = parts.iter().take(3).position(|part| matches!(*part, "resolve" | "raw"));
                match at {
                    Some(at @ 1..) => self.file(&parts[..at].join("/"), parts[at], &parts[at + 1..]).await,
                    _ => Err(refusal(404, "", "Sorry, we can't find the page you are looking for.")),
                }
            }
            _ => Err(refusal(404, "", "Not found")),
        }
    }

    /// The token of the request, if any.
    fn token(&self) -> Option<&str> {
        self.headers
            .get(header::AUTHORIZATION)?
            .to_str()
            .ok()?
            .strip_prefix("Bearer ")
    }

    fn let_in(&self) -> bool {
        self.token()
            .is_some_and(|token| self.shared.state().tokens.contains(token))
    }

    /// The repository, if the client may know that it exists.
    fn repository(&self, id: &str) -> Result<Repository, Response<Body>> {
        let repository = self.shared.state().repositories.get(id).cloned();
        let missing = match self.token() {
            Some(_) => refusal(404, "RepoNotFound", "Repository not found"),
            None => refusal(401, "RepoNotFound", "Invalid username or password."),
        };
        let Some(repository) = repository else {
            return Err(missing);
        };
        let (access, renamed) = {
            let state = repository.state();
            (state.access, state.renamed_to.clone())
        };
        if let Some(to) = renamed {
            return Err(sent_on(
                &self.target.replacen(id, &to, 1),
                StatusCode::TEMPORARY_REDIRECT,
            ));
        }
        if access == Access::Private && !self.let_in() {
            return Err(missing);
        }
        Ok(repository)
    }

    /// The fault of this response. Faults that need no file's bytes are done here.
    async fn fault(&self, asked: Asked<'_>) -> Result<Option<Fault>, Response<Body>> {
        let body = asked.target == FaultTarget::Body;
        let Some(fault) = self.shared.state().faults.take(&asked) else {
            return Ok(None);
        };
        match fault {
            Fault::Status { code, retry_after } => {
                let mut response = refusal(code, "", "This is not your day.");
                if let Some(seconds) = retry_after {
                    put(&mut response, header::RETRY_AFTER, seconds.to_string());
                }
                Err(response)
            }
            Fault::Portal => {
                let mut response = Response::new(Body::from(LOGIN_PAGE));
                put(&mut response, header::CONTENT_TYPE, "text/html");
                Err(response)
            }
            Fault::SentOn { to } => Err(sent_on(to, StatusCode::FOUND)),
            Fault::Cut { .. } | Fault::Broken { .. } if !body => {
                self.cut.cut();
                Err(Response::new(Body::empty()))
            }
            Fault::Stall { .. } if !body => std::future::pending().await,
            Fault::Drip { pause, .. } if !body => {
                tokio::time::sleep(pause).await;
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    async fn api_fault(&self, id: &str) -> Result<(), Response<Body>> {
        let asked = Asked {
            target: FaultTarget::Api,
            repository: id,
            path: "",
            range: None,
            size: 0,
        };
        self.fault(asked).await.map(|_| ())
    }

    async fn search(&self) -> Answer {
        self.api_fault("").await?;
        let repositories: Vec<Repository> = self.shared.state().repositories.values().cloned().collect();
        let states: Vec<_> = repositories.iter().map(Repository::state).collect();
        let let_in = self.let_in();
        let visible = states
            .iter()
            .map(|state| &**state)
            .filter(|state| state.access != Access::Private || let_in);
        Ok(self.page(listing::search(visible, &self.query)))
    }

    /// A list with the address of the next page in its head.
    fn page(&self, page: Page) -> Response<Body> {
        let mut response = said(StatusCode::OK, &Value::Array(page.items));
        if let Some(next) = page.next {
            let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
            let mut query: Vec<&str> = query
                .split('&')
                .filter(|pair| !pair.starts_with("cursor=") && !pair.is_empty())
                .collect();
            let cursor = format!("cursor={next}");
            query.push(&cursor);
            let link = format!("<{}{path}?{}>; rel=\"next\"", self.shared.endpoint(), query.join("&"));
            put(&mut response, header::LINK, link);
        }
        response
    }

    async fn api(&self, rest: &[&str]) -> Answer {
        let words = ["revision", "tree"];
        let at = rest.iter().position(|part| words.contains(part)).unwrap_or(rest.len());
        let (id, rest) = (rest[..at].join("/"), &rest[at..]);
        self.api_fault(&id).await?;
        let repository = self.repository(&id)?;
        let state = repository.state();
        let (revision, folder) = match rest {
            [] => ("main".to_owned(), String::new()),
            [_, rest @ ..] => split_revision(rest),
        };
        let commit = state
            .commit(&revision)
            .ok_or_else(|| refusal(404, "RevisionNotFound", &format!("Invalid rev id: {revision}")))?;
        match rest.first() {
            Some(&"tree") => {
                let page = listing::tree(&state, commit, &folder, &self.query);
                if page.items.is_empty() && !folder.is_empty() {
                    return Err(refusal(
                        404,
                        "EntryNotFound",
                        &format!("{folder} does not exist on \"{revision}\""),
                    ));
                }
                Ok(self.page(page))
            }
            _ => {
                let blobs = self
                    .query
                    .get("blobs")
                    .is_some_and(|value| value.eq_ignore_ascii_case("true"));
                Ok(said(
                    StatusCode::OK,
                    &Value::Object(listing::description(&state, commit, blobs)),
                ))
            }
        }
    }

    /// A file at its resolve address: headers and bytes of a small one, the redirect to a large one.
    async fn file(&self, id: &str, word: &str, rest: &[&str]) -> Answer {
        let (revision, path) = split_revision(rest);
        let asked = Asked {
            target: FaultTarget::Resolve,
            repository: id,
            path: &path,
            range: None,
            size: 0,
        };
        let fault = self.fault(asked).await?;
        let repository = self.repository(id)?;
        let (file, sha) = {
            let state = repository.state();
            let commit = state
                .commit(&revision)
                .ok_or_else(|| refusal(404, "RevisionNotFound", &format!("Invalid rev id: {revision}")))?;
            let open = state.access != Access::Gated || self.let_in() || path == "README.md";
            if !open {
                let status = if self.token().is_some() { 403 } else { 401 };
                let message = format!(
                    "Access to model {id} is restricted. You must have access to it and be authenticated to access it."
                );
                return Err(refusal(status, "GatedRepo", &message));
            }
            let missing = || {
                let mut refusal = refusal(404, "EntryNotFound", "Entry not found");
                put(&mut refusal, REPO_COMMIT, &commit.sha);
                refusal
            };
            (
                commit.files.get(&path).cloned().ok_or_else(missing)?,
                commit.sha.clone(),
            )
        };
        if word == "raw" && file.large {
            return Ok(Response::new(Body::from(file.pointer())));
        }
        let mut etag = file.etag().to_owned();
        if fault == Some(Fault::WrongEtag) {
            etag = etag.chars().rev().collect();
        }
        let elsewhere = (!file.large && self.shared.state().small_elsewhere).then(|| {
            let location = format!("/api/resolve-cache/models/{id}/{sha}/{}", encoded(&path));
            sent_on(&location, StatusCode::TEMPORARY_REDIRECT)
        });
        let mut response = match elsewhere {
            Some(response) => response,
            None if file.large => {
                let location = format!(
                    "{}/large/{id}/{sha}/{}?path={}&X-Signature=0123456789abcdef",
                    self.shared.cdn(),
                    file.sha256(),
                    encoded(&path)
                );
                sent_on(&location, StatusCode::FOUND)
            }
            None => self.bytes(repository, &path, file.clone(), etag.clone()).await?,
        };
        put(&mut response, REPO_COMMIT, &sha);
        if file.large || response.status().is_redirection() {
            put(&mut response, LINKED_ETAG, format!("\"{etag}\""));
            put(&mut response, LINKED_SIZE, file.content.len().to_string());
        }
        Ok(response)
    }

    /// A small file at the address where the hub caches small files.
    async fn small_elsewhere(&self, id: &str, sha: &str, path: &str) -> Answer {
        let repository = self.repository(id)?;
        let file = repository
            .state()
            .commit(sha)
            .and_then(|commit| commit.files.get(path).cloned());
        let file = file.ok_or_else(|| refusal(404, "EntryNotFound", "Entry not found"))?;
        let etag = file.etag().to_owned();
        let mut response = self.bytes(repository, path, file, etag).await?;
        put(&mut response, REPO_COMMIT, sha);
        Ok(response)
    }

    /// A large file. Its signed address holds the content's name; its entity tag is the store's own.
    async fn large(&self, id: &str, sha: &str, oid: &str) -> Answer {
        let path = self.query.get("path").unwrap_or_default().to_owned();
        let repository = self.shared.state().repositories.get(id).cloned();
        let repository = repository.ok_or_else(|| refusal(403, "", "AccessDenied"))?;
        let file = repository
            .state()
            .commit(sha)
            .and_then(|commit| commit.files.get(&path).cloned());
        // The content may have been overwritten since the address was signed. It has another name then, and is still
        // sent.
        let file = file
            .filter(|file| file.large && !oid.is_empty())
            .ok_or_else(|| refusal(403, "", "AccessDenied"))?;
        let etag: String = file.sha256().chars().rev().take(32).collect();
        self.bytes(repository, &path, file, etag).await
    }

    async fn bytes(&self, repository: Repository, path: &str, file: Arc<File>, etag: String) -> Answer {
        let size = file.content.len();
        let known = self
            .headers
            .get(header::IF_NONE_MATCH)
            .and_then(|value| value.to_str().ok());
        if known.is_some_and(|known| known.trim_matches('"') == etag) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            put(&mut response, header::ETAG, format!("\"{etag}\""));
            return Ok(response);
        }
        let mut fault = None;
        if self.method != Method::HEAD {
            let id = repository.state().id.clone();
            let asked = Asked {
                target: FaultTarget::Body,
                repository: &id,
                path,
                range: body::range(self.headers, size, &etag).and_then(Result::ok),
                size,
            };
            fault = self.fault(asked).await?;
        }
        let order = Order {
            repository,
            path: path.to_owned(),
            file,
            etag,
            fault,
            cut: self.cut.clone(),
            sent: self.sent.clone(),
        };
        Ok(body::respond(order, self.method, self.headers))
    }
}

/// A revision and the rest of the path; `refs/pr/1` is one revision.
fn split_revision(parts: &[&str]) -> (String, String) {
    let length = if parts.first() == Some(&"refs") { 3 } else { 1 }.min(parts.len());
    (parts[..length].join("/"), parts[length..].join("/"))
}

/// Loopback with a port that the system chooses.
pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Limit of the time until a new imitation listens.
pub(crate) const START: Duration = Duration::from_secs(10);
