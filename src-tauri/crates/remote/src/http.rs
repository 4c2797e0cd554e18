//! One question to an endpoint: the request, what a refusal means, and the answer's stream.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use api::Endpoint;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use net::{Net, Purpose, Response, Timeouts};
use serde_json::Value;
use sse_stream::SseByteStream;
use tokio::time::timeout;

use crate::endpoint::keys;
use crate::error::{Error, Result};
use crate::reply::{error_message, Reply};

/// Servers load models and read long prompts before the first byte.
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(600),
    first_bytes: Some(Duration::from_secs(600)),
    stall: Some(Duration::from_secs(300)),
};
/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest refusal that is read.
const LONGEST_REFUSAL: u64 = 64 << 10;
/// The longest answer that comes in one piece, and the longest list of models.
const LONGEST_JSON: u64 = 32 << 20;
/// The longest event of a stream, and the most white space before the first one. A parser holds all of an event until
/// it is complete.
const LONGEST_EVENT: usize = 32 << 20;
/// The most that an answer says, in bytes: more than any model's context holds.
const LONGEST_ANSWER: usize = 32 << 20;

/// The outcome of a request.
pub(crate) enum Outcome {
    /// The answer begins.
    Answer(Box<Response>),
    /// The server refused what it was asked: the status and its words.
    Refused(u16, String),
}

/// Sends a body to the endpoint.
///
/// # Errors
/// If no response arrives; a response with status 400 or 422 is not an error.
pub(crate) async fn ask(net: &Net, endpoint: &Endpoint, model: &str, body: &Value) -> Result<Outcome> {
    let key = keys::key(net, endpoint).await?;
    let address = format!("{}/chat/completions", endpoint.base_url);
    let mut request = net.post(&address, Purpose::Inference).json(body).timeouts(TIMEOUTS);
    if let Some(key) = &key {
        request = request.bearer(key);
    }
    let response = request.send().await?;
    let status = response.status();
    if (200..300).contains(&status) {
        return Ok(Outcome::Answer(Box::new(response)));
    }
    let retry_after = response.retry_after();
    let message = words(response.text_capped(LONGEST_REFUSAL).await?);
    let name = endpoint.name.clone();
    Err(match status {
        400 | 422 if !is_about_length(&message) => return Ok(Outcome::Refused(status, message)),
        400 | 413 | 422 => Error::ContextFull {
            endpoint: name,
            message,
        },
        401 | 403 => Error::KeyRefused {
            endpoint: name,
            with_key: key.is_some(),
        },
        404 => Error::NoModel {
            endpoint: name,
            model: model.into(),
        },
        429 => Error::TooManyRequests {
            endpoint: name,
            retry_after,
        },
        500.. => Error::Failed {
            endpoint: name,
            message,
        },
        status => Error::Refused {
            endpoint: name,
            status,
            message,
        },
    })
}

/// The list of an endpoint's models.
///
/// # Errors
/// If the list does not arrive.
pub(crate) async fn list(net: &Net, endpoint: &Endpoint) -> Result<Value> {
    let key = keys::key(net, endpoint).await?;
    let address = format!("{}/models", endpoint.base_url);
    let mut request = net.get(&address, Purpose::Inference);
    if let Some(key) = &key {
        request = request.bearer(key);
    }
    let name = endpoint.name.clone();
    let listed = async {
        let response = request.send().await?;
        match response.status() {
            200..300 => response.json_capped(LONGEST_JSON).await.map_err(Error::from),
            401 | 403 => Err(Error::KeyRefused {
                endpoint: name,
                with_key: key.is_some(),
            }),
            429 => Err(Error::TooManyRequests {
                endpoint: name,
                retry_after: response.retry_after(),
            }),
            status => {
                let message = words(response.text_capped(LONGEST_REFUSAL).await?);
                Err(Error::Refused {
                    endpoint: name,
                    status,
                    message,
                })
            }
        }
    };
    // The lists of other endpoints are shown together with this one.
    timeout(LIST_TIMEOUT, listed).await.unwrap_or_else(|_| {
        Err(Error::Net(net::Error::TimedOut {
            host: endpoint.name.clone(),
            after: LIST_TIMEOUT,
        }))
    })
}

/// The message in a refusal's body, cut to a readable length.
fn words(body: String) -> String {
    let said = serde_json::from_str(&body).ok().and_then(|value| error_message(&value));
    sentence(&said.unwrap_or(body))
}

/// A server's message as one short line, without the control characters that a terminal would obey.
fn sentence(said: &str) -> String {
    let words: Vec<&str> = said
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let said = words.join(" ");
    match said.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None if said.is_empty() => "it gives no reason".into(),
        None => said,
    }
}

/// True if a refusal is about the context length, in the words of OpenAI, vLLM, llama-server, SGLang and Anthropic's
/// proxies.
fn is_about_length(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "context length",
        "context_length",
        "context size",
        "context window",
        "prompt is too long",
        "too many tokens",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// One item of an answer's stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    /// An object.
    Reply(Reply),
    /// The server says that nothing follows.
    End,
}

/// The frames of an answer, whether the server streams or answers at once. Ends without [`Frame::End`] if the body
/// ends.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Result<Frame>> + Send>>;

/// Reads the body of an answer.
///
/// # Errors
/// If its beginning does not arrive.
pub(crate) async fn frames(mut response: Response, endpoint: &str) -> Result<Frames> {
    let mut beginning = Vec::new();
    let name = endpoint.to_owned();
    // Servers that do not stream are known by their first character, whatever they call the content.
    let first = loop {
        let Some(bytes) = response.chunk().await? else {
            break None;
        };
        beginning.extend_from_slice(&bytes);
        let first = bytes.iter().copied().find(|byte: &u8| !byte.is_ascii_whitespace());
        if first.is_some() {
            break first;
        }
        if beginning.len() > LONGEST_EVENT {
            return Err(unreadable(&name, "it sends nothing but white space"));
        }
    };
    if matches!(first, Some(b'{')) {
        while let Some(bytes) = response.chunk().await? {
            if (beginning.len() + bytes.len()) as u64 > LONGEST_JSON {
                return Err(unreadable(&name, "its answer is too long"));
            }
            beginning.extend_from_slice(&bytes);
        }
        let reply = read(&name, &beginning)?.ok_or_else(|| unreadable(&name, "it sent something else"))?;
        return Ok(stream::iter([Ok(Frame::Reply(reply)), Ok(Frame::End)]).boxed());
    }
    Ok(sse(name, Bytes::from(beginning), response))
}

/// The events of a body in the form of Server-Sent Events.
fn sse(name: String, beginning: Bytes, response: Response) -> Frames {
    let body = stream::unfold(Some(response), |response| async {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(response))),
            // Some servers leave out the empty line after the last event.
            Ok(None) => Some((Ok(Bytes::from_static(b"\n\n")), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    events(name, stream::iter([Ok(beginning)]).chain(body))
}

/// The frames of the bytes of Server-Sent Events, until one of them is too long or all of them say too much.
fn events(name: String, body: impl Stream<Item = net::Result<Bytes>> + Send + 'static) -> Frames {
    // Bytes since the last event that was complete, counted on both sides of the parser.
    let held = Arc::new(AtomicUsize::new(0));
    let (counted, endpoint) = (Arc::clone(&held), name.clone());
    let bounded = body.map(move |bytes| {
        let bytes = bytes.map_err(Error::Net)?;
        match counted.fetch_add(bytes.len(), Ordering::Relaxed) {
            before if before + bytes.len() > LONGEST_EVENT => {
                Err(unreadable(&endpoint, "an event of its answer does not end"))
            }
            _ => Ok(bytes),
        }
    });
    let mut said = 0;
    let frames = SseByteStream::new(Box::pin(bounded)).filter_map(move |event| {
        held.store(0, Ordering::Relaxed);
        let frame = match event {
            Ok(event) => event.data.and_then(|data| {
                let frame = frame(&name, data.trim()).transpose()?;
                if let Ok(Frame::Reply(Reply::Chunk(chunk))) = &frame {
                    said += chunk.bytes();
                }
                Some(if said > LONGEST_ANSWER {
                    Err(unreadable(&name, "its answer does not end"))
                } else {
                    frame
                })
            }),
            Err(sse_stream::Error::Body(error)) => Some(Err(match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(other) => unreadable(&name, &other.to_string()),
            })),
            Err(other) => Some(Err(unreadable(&name, &other.to_string()))),
        };
        std::future::ready(frame)
    });
    frames.boxed()
}

fn frame(name: &str, data: &str) -> Result<Option<Frame>> {
    match data {
        "" => Ok(None),
        "[DONE]" => Ok(Some(Frame::End)),
        data => Ok(read(name, data.as_bytes())?.map(Frame::Reply)),
    }
}

fn read(name: &str, json: &[u8]) -> Result<Option<Reply>> {
    let value: Value = serde_json::from_slice(json).map_err(|error| unreadable(name, &error.to_string()))?;
    Ok(Reply::read(&value).map(|reply| match reply {
        Reply::Error(message) => Reply::Error(sentence(&message)),
        reply @ Reply::Chunk(_) => reply,
    }))
}

fn unreadable(name: &str, reason: &str) -> Error {
    Error::Unreadable {
        endpoint: name.into(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Chunk;

    async fn read(pieces: Vec<net::Result<Bytes>>) -> Vec<Result<Frame>> {
        events("lab".into(), stream::iter(pieces)).collect().await
    }

    fn said(text: &str) -> Frame {
        Frame::Reply(Reply::Chunk(Chunk {
            content: text.into(),
            ..Chunk::default()
        }))
    }

    const STREAM: &str = "\u{feff}: keep-alive\r\n\r\nevent: message\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Zü\"}}]}\r\n\r\n\
        : ping\n\ndata:{\"choices\":[{\"delta\":\ndata: {\"content\":\"rich\"}}]}\n\nretry: 5\n\ndata: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n";

    #[tokio::test]
    async fn a_stream_reads_the_same_wherever_it_is_cut() {
        for cut in 0..=STREAM.len() {
            let (first, second) = STREAM.as_bytes().split_at(cut);
            let frames = read(vec![
                Ok(Bytes::copy_from_slice(first)),
                Ok(Bytes::copy_from_slice(second)),
            ])
            .await;
            let frames: Vec<Frame> = frames.into_iter().map(|frame| frame.expect("it can be read")).collect();
            assert_eq!(frames, [said("Zü"), said("rich"), Frame::End], "cut at {cut}");
        }
        let bytes = STREAM.bytes().map(|byte| Ok(Bytes::copy_from_slice(&[byte]))).collect();
        assert_eq!(read(bytes).await.len(), 3);
    }

    #[tokio::test]
    async fn errors_in_a_stream_are_told_and_keep_what_came() {
        let pieces = vec![
            Ok(Bytes::from_static(
                b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"no\"}}\n\n",
            )),
            Err(net::Error::ConnectionLost { host: "lab".into() }),
        ];
        let frames = read(pieces).await;
        assert!(matches!(&frames[0], Ok(frame) if *frame == said("a")));
        assert!(matches!(&frames[1], Ok(Frame::Reply(Reply::Error(message))) if message == "no"));
        assert!(matches!(
            &frames[2..],
            [Err(Error::Net(net::Error::ConnectionLost { .. }))]
        ));
        let frames = read(vec![Ok(Bytes::from_static(b"data: <html>\n\n"))]).await;
        assert!(matches!(&frames[..], [Err(Error::Unreadable { .. })]));
    }

    #[tokio::test]
    async fn what_does_not_end_is_ended() {
        let mebibyte = || Ok(Bytes::from(vec![b'x'; 1 << 20]));
        let line = stream::once(async { Ok(Bytes::from_static(b"data: ")) }).chain(stream::repeat_with(mebibyte));
        let mut frames = events("lab".into(), line);
        assert!(matches!(frames.next().await, Some(Err(Error::Unreadable { .. }))));

        let event = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
            "x".repeat(1 << 20)
        );
        let answer = stream::repeat_with(move || Ok(Bytes::from(event.clone())));
        let frames: Vec<_> = events("lab".into(), answer).take(33).collect().await;
        assert!(frames[..32].iter().all(Result::is_ok));
        assert!(matches!(&frames[32], Err(Error::Unreadable { .. })));
    }

    #[test]
    fn a_refusal_is_cut_to_what_a_person_reads() {
        assert_eq!(words("{\"error\":{\"message\":\"no\"}}".into()), "no");
        assert_eq!(words(" ".into()), "it gives no reason");
        assert_eq!(words("x".repeat(900)).chars().count(), 501);
        assert_eq!(
            words("out of\n memory\u{1b}[2J\u{9b}31m".into()),
            "out of memory [2J 31m"
        );
        assert!(is_about_length("This model's maximum context length is 8192 tokens"));
        assert!(is_about_length("the request exceeds the available context size"));
        assert!(!is_about_length("unknown field top_k"));
    }
}
