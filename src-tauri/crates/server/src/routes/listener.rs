//! Accepts connections within limits, and runs the guard before the routes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONNECTION, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Router;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::http::auth::is_open;
use crate::http::connections::{Busy, Connection};
use crate::http::error_body::{Dialect, Kind, Refusal, Retry};
use crate::http::heap_trim::LargeRequest;
use crate::http::ids::fresh;
use crate::http::peer_user;
use crate::http::response::{dialect, refuse, Caller};
use crate::state::State;

/// The time that open connections get to end when the server stops.
const CLOSING: Duration = Duration::from_secs(1);

/// Accepts connections until the server is stopped, and returns once all are closed.
pub(crate) async fn listen(listener: TcpListener, state: Arc<State>, router: Router) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = state.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let own = stream.local_addr().unwrap_or(state.address);
                open.spawn(serve(stream, OpenConnection::new(&state, own, peer), router.clone()));
            }
            // Such as too many open files: a retry may succeed.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// The other end of a connection.
struct Peer {
    connection: Arc<Connection>,
    /// The addresses of this end and of the other one.
    own: SocketAddr,
    address: SocketAddr,
    /// True if it belongs to another user of this computer; found out with its first request.
    is_other_user: OnceCell<bool>,
}

impl Peer {
    async fn is_other_user(&self) -> bool {
        let (own, address) = (self.own, self.address);
        let find = || async move {
            let found = tokio::task::spawn_blocking(move || peer_user::is_other(own, address)).await;
            found.unwrap_or(true)
        };
        *self.is_other_user.get_or_init(find).await
    }
}

/// A connection, counted until it is dropped.
struct OpenConnection {
    state: Arc<State>,
    peer: Arc<Peer>,
    /// Cancelled by its first request.
    asked: CancellationToken,
}

impl OpenConnection {
    fn new(state: &Arc<State>, own: SocketAddr, address: SocketAddr) -> Self {
        state.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let peer = Peer {
            connection: Arc::new(state.connections.open(address.ip())),
            own,
            address,
            is_other_user: OnceCell::new(),
        };
        Self {
            state: state.clone(),
            peer: Arc::new(peer),
            asked: CancellationToken::new(),
        }
    }

    /// Ends when the connection has to be closed: others need its place, or its first request does not come.
    async fn unwanted(&self) {
        let silent = async {
            tokio::time::sleep(self.state.limits.first_header_time).await;
            if self.asked.is_cancelled() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.peer.connection.evicted.cancelled() => {}
            () = silent => {}
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.state.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response during which its connection keeps its place.
struct Answering {
    body: Body,
    _busy: Busy,
    /// Dropped last, after what the answer held.
    _large: Option<LargeRequest>,
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

async fn serve(stream: TcpStream, open: OpenConnection, router: Router) {
    // Nagle's algorithm would delay small tokens.
    let _ = stream.set_nodelay(true);
    let (state, asked, peer) = (open.state.clone(), open.asked.clone(), open.peer.clone());
    let (stop, limits) = (state.stop.clone(), state.limits);
    let service = service_fn(move |request| {
        asked.cancel();
        pass(state.clone(), peer.clone(), router.clone(), request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes);
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.reader_patience));
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = open.unwanted() => Ok(()),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(CLOSING, connection.as_mut()).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// One request: the guard, then the routes.
async fn pass(
    state: Arc<State>,
    peer: Arc<Peer>,
    mut router: Router,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let mut request = request.map(Body::new);
    let bytes = hyper::body::Body::size_hint(request.body()).upper();
    let request_id = fresh("req_");
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let dialect = dialect(&path, request.headers());
    let mut checked = state.guard.check(&method, request.uri(), request.headers());
    // A proxy may run as another user, and passes on what its own users ask.
    if !is_open(&path) && !state.guard.has_proxy() && peer.is_other_user().await {
        let message = "this server answers only programs of the user who started it";
        checked = Err(Refusal::new(Kind::Forbidden, message));
    }
    // Whoever is refused, or asks only for a sign of life, needs no place.
    let busy = (checked.is_ok() && !is_open(&path)).then(|| peer.connection.begin());
    let large = matches!(busy, Some(Some(_)))
        .then(|| state.heap_trim.watch(bytes))
        .flatten();
    let origin = checked
        .is_ok()
        .then(|| state.guard.listed_origin(request.headers()).map(str::to_owned))
        .flatten();
    let mut response = match checked {
        Err(refusal) => refuse(&refusal, dialect, &request_id),
        Ok(()) if matches!(busy, Some(None)) => no_place(dialect, &request_id),
        Ok(()) if method == Method::OPTIONS && origin.is_some() => preflight(request.headers()),
        Ok(()) => {
            let mut caller = Caller {
                request_id: request_id.clone(),
                ..Caller::default()
            };
            if route(&path) != "other" {
                let user_agent = request.headers().get(USER_AGENT).and_then(|name| name.to_str().ok());
                caller.client = state.clients.asked(user_agent);
            }
            request.extensions_mut().insert(caller);
            // A router is always ready and never fails.
            let mut response = router.call(request).await.unwrap_or_else(|never| match never {});
            match response.extensions_mut().remove::<Refusal>() {
                Some(refusal) => {
                    let methods = response.headers_mut().remove(ALLOW);
                    let mut refused = refuse(&refusal, dialect, &request_id);
                    refused.headers_mut().extend(methods.map(|methods| (ALLOW, methods)));
                    refused
                }
                None => response,
            }
        }
    };
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        headers.insert("x-request-id", id.clone());
        headers.insert("request-id", id);
    }
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        headers.insert("access-control-allow-origin", origin);
        headers.insert("vary", HeaderValue::from_static("origin"));
    }
    let (route, status) = (route(&path), response.status().as_u16());
    state.metrics.answered(route, status);
    tracing::debug!(request = request_id, route, status, "answered");
    Ok(match busy.flatten() {
        Some(busy) => response.map(|body| {
            Body::new(Answering {
                body,
                _busy: busy,
                _large: large,
            })
        }),
        None => response,
    })
}

/// The response beyond the maximum of connections.
fn no_place(dialect: Dialect, request_id: &str) -> Response {
    let mut refusal = Refusal::new(Kind::Unavailable, "too many connections are open; try again later");
    refusal.retry = Retry::After(1);
    let mut response = refuse(&refusal, dialect, request_id);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The preflight response for a listed page.
fn preflight(headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let allowed = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    allowed.insert("access-control-allow-methods", methods);
    allowed.insert("access-control-max-age", HeaderValue::from_static("600"));
    if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        allowed.insert("access-control-allow-headers", wanted.clone());
    }
    if headers.contains_key("access-control-request-private-network") {
        allowed.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    response
}

/// The route of a path for metrics, whose labels must not contain text of clients.
fn route(path: &str) -> &'static str {
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let known = [
        "/chat/completions",
        "/completions",
        "/messages",
        "/messages/count_tokens",
        "/embeddings",
        "/models/unload",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/embeddings",
        "/api/tags",
        "/api/ps",
        "/api/show",
        "/api/version",
    ];
    if let Some(known) = known.into_iter().find(|known| *known == path) {
        return known;
    }
    let below = ["/responses", "/models", "/api/v0/models"];
    let below = below.into_iter().find(|below| {
        path.strip_prefix(below)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    below.unwrap_or("other")
}
