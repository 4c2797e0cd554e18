//! The events of a response, each of a bounded size.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use futures::stream::{self, BoxStream, Stream, StreamExt};
use net::{Bytes, Response};
use rmcp_sse_stream::{Error, Sse, SseStream};

use super::failure::{of_events, Failure};

/// Milliseconds that a server may make its client wait before it asks for a stream again.
const WAITS: RangeInclusive<u64> = 200..=60_000;

/// The events of a response. `failed` hears why they end, if they do not end by themselves.
pub(super) fn events(
    response: Response,
    longest: usize,
    failed: impl Fn(Failure) + Send + 'static,
) -> BoxStream<'static, Result<Sse, Error>> {
    let body = stream::unfold(Some(response), |response| async {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(response))),
            // Some servers leave out the empty line after the last event.
            Ok(None) => Some((Ok(Bytes::from_static(b"\n\n")), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    bounded(body, longest)
        .map(move |event| {
            if let Err(error) = &event {
                failed(of_events(error));
            }
            event.map(|event| Sse {
                retry: event.retry.map(|wait| wait.clamp(*WAITS.start(), *WAITS.end())),
                ..event
            })
        })
        .boxed()
}

fn bounded(
    body: impl Stream<Item = net::Result<Bytes>> + Send + 'static,
    longest: usize,
) -> impl Stream<Item = Result<Sse, Error>> + Send + 'static {
    // Bytes since the last event that was complete, counted on both sides of the parser, which holds all of an event.
    let held = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&held);
    let bounded = body.map(move |bytes| {
        let bytes = bytes.map_err(Failure::Net)?;
        if counted.load(Ordering::Relaxed) == 0 && is_comment(&bytes) {
            return Ok(bytes);
        }
        match counted.fetch_add(bytes.len(), Ordering::Relaxed) {
            before if before + bytes.len() > longest => Err(Failure::TooLarge(longest)),
            _ => Ok(bytes),
        }
    });
    SseStream::from_bytes_stream(Box::pin(bounded)).inspect(move |_| held.store(0, Ordering::Relaxed))
}

/// True for whole lines that say nothing, by which servers keep a connection open.
fn is_comment(bytes: &[u8]) -> bool {
    let says_nothing = |line: &[u8]| matches!(line, [] | [b'\r'] | [b':', ..]);
    bytes.ends_with(b"\n") && bytes.split(|byte| *byte == b'\n').all(says_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(pieces: Vec<&'static str>, longest: usize) -> (Vec<String>, Option<Failure>) {
        let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
        let events: Vec<_> = bounded(stream::iter(pieces), longest).collect().await;
        let failure = events.iter().find_map(|event| Some(of_events(event.as_ref().err()?)));
        let data = events.into_iter().flatten().filter_map(|event| event.data);
        (data.collect(), failure)
    }

    #[tokio::test]
    async fn an_event_has_a_limit_and_a_stream_has_none() {
        let many = vec!["data: 12345\n\n"; 1000];
        assert_eq!(read(many, 20).await.0.len(), 1000);
        let alive = vec![": still here\n\n"; 1000];
        assert_eq!(read(alive, 20).await, (vec![], None));
        let (data, failure) = read(vec!["data: 1\n\n", "data: 123456789", "0123456789"], 20).await;
        assert_eq!((data.len(), failure), (1, Some(Failure::TooLarge(20))));
        for line in ["data: 1\n", ": still here\ndata: 1\n", "\ndata: 1\n"] {
            let lines = vec![line; 20];
            let (_, failure) = read(lines, 20).await;
            assert_eq!(failure.is_none(), line.starts_with('\n'), "{line}");
        }
    }
}
