//! The response with a file's bytes: ranges, entity tags, and the faults on the way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{header, HeaderMap, Method, Response, StatusCode};
use bytes::Bytes;
use futures::stream;

use crate::content::{Content, File};
use crate::fault::Fault;
use crate::line::Cut;
use crate::repository::Repository;

/// Bytes written to the connection at once.
const PIECE: u64 = 256 << 10;
/// Time for written bytes to leave before the connection is cut.
const FLUSHED: Duration = Duration::from_millis(3);

/// A request for bytes, and the fault on the way.
pub(crate) struct Order {
    pub(crate) repository: Repository,
    pub(crate) path: String,
    pub(crate) file: Arc<File>,
    /// The entity tag at this address, without quotes.
    pub(crate) etag: String,
    pub(crate) fault: Option<Fault>,
    pub(crate) cut: Cut,
    pub(crate) sent: Arc<AtomicU64>,
}

/// The requested range as its first byte and the one after its last; `Err` if the file has no such range.
pub(crate) fn range(headers: &HeaderMap, size: u64, etag: &str) -> Option<Result<(u64, u64), ()>> {
    let asked = headers.get(header::RANGE)?.to_str().ok()?.strip_prefix("bytes=")?;
    if let Some(only_if) = headers.get(header::IF_RANGE) {
        if only_if.to_str().ok()? != format!("\"{etag}\"") {
            return None;
        }
    }
    let (from, to) = asked.split_once('-')?;
    Some(match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), _) if from >= size => Err(()),
        (Ok(from), Ok(to)) if to < from => Err(()),
        (Ok(from), Ok(to)) => Ok((from, size.min(to + 1))),
        (Ok(from), Err(_)) => Ok((from, size)),
        (Err(_), Ok(0)) => Err(()),
        (Err(_), Ok(last)) => Ok((size.saturating_sub(last), size)),
        (Err(_), Err(_)) => return None,
    })
}

fn refused(size: u64) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    put(&mut response, header::CONTENT_RANGE, format!("bytes */{size}"));
    response
}

pub(crate) fn put(response: &mut Response<Body>, name: header::HeaderName, value: impl AsRef<str>) {
    if let Ok(value) = header::HeaderValue::from_str(value.as_ref()) {
        response.headers_mut().insert(name, value);
    }
}

/// Responds with a file's bytes, as far as the fault allows.
pub(crate) fn respond(order: Order, method: &Method, headers: &HeaderMap) -> Response<Body> {
    let size = order.file.content.len();
    let asked = match (range(headers, size, &order.etag), &order.fault) {
        (Some(_), Some(Fault::RangeRefused)) | (Some(Err(())), _) => return refused(size),
        (_, Some(Fault::RangeIgnored)) | (None, _) => None,
        (Some(Ok((from, end))), Some(Fault::RangeShifted { by })) => Some((end.min(from + by), end)),
        (Some(Ok(asked)), _) => Some(asked),
    };
    let (from, end) = asked.unwrap_or((0, size));
    let mut length = end - from;
    let mut last = end;
    if let Some(Fault::Short { bytes }) = order.fault {
        length = length.min(bytes);
        last = from + length;
    }
    let mut response = Response::new(Body::empty());
    if asked.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        put(
            &mut response,
            header::CONTENT_RANGE,
            format!("bytes {from}-{}/{size}", end.saturating_sub(1)),
        );
    }
    put(&mut response, header::CONTENT_LENGTH, length.to_string());
    put(&mut response, header::ETAG, format!("\"{}\"", order.etag));
    put(&mut response, header::ACCEPT_RANGES, "bytes");
    put(&mut response, header::CONTENT_TYPE, "application/octet-stream");
    if method != Method::HEAD {
        *response.body_mut() = body(order, from, last);
    }
    response
}

struct Flow {
    order: Order,
    content: Content,
    at: u64,
    end: u64,
    given: u64,
}

fn body(order: Order, from: u64, end: u64) -> Body {
    let flow = Flow {
        content: order.file.content.clone(),
        order,
        at: from,
        end,
        given: 0,
    };
    Body::from_stream(stream::unfold(flow, |mut flow| async move {
        flow.next().await.map(|item| (item, flow))
    }))
}

impl Flow {
    /// The next bytes; an error closes the connection.
    async fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        let broken = || Some(Err(std::io::ErrorKind::ConnectionReset.into()));
        let mut most = PIECE;
        match self.order.fault {
            Some(Fault::Cut { after } | Fault::NewCommit { after } | Fault::Overwritten { after })
                if self.given >= after =>
            {
                tokio::time::sleep(FLUSHED).await;
                match self.order.fault {
                    Some(Fault::NewCommit { .. }) => self.order.repository.state().change(&self.order.path, false),
                    Some(Fault::Overwritten { .. }) => self.order.repository.state().change(&self.order.path, true),
                    _ => {}
                }
                self.order.cut.cut();
                return broken();
            }
            Some(Fault::Broken { bytes }) if self.given >= bytes => {
                tokio::time::sleep(FLUSHED).await;
                return broken();
            }
            Some(Fault::Stall { after }) if self.given >= after => std::future::pending().await,
            Some(
                Fault::Cut { after: limit }
                | Fault::NewCommit { after: limit }
                | Fault::Overwritten { after: limit }
                | Fault::Broken { bytes: limit }
                | Fault::Stall { after: limit },
            ) => most = most.min(limit - self.given),
            Some(Fault::Drip { bytes, pause }) => {
                most = bytes.max(1);
                tokio::time::sleep(pause).await;
            }
            _ => {}
        }
        let mut piece = self.content.piece(self.at, most.min(self.end - self.at));
        if piece.is_empty() {
            return None;
        }
        let until = self.at + piece.len() as u64;
        if let Some(Fault::Corrupt { at }) = self.order.fault {
            if (self.at..until).contains(&at) {
                let mut other = piece.to_vec();
                other[(at - self.at) as usize] ^= 0x20;
                piece = other.into();
            }
        }
        self.at = until;
        self.given += piece.len() as u64;
        self.order.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Some(Ok(piece))
    }
}
