//! Answers in the format of a surface: wire events while generating, or one body at the end, from the same state.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::{FolderSource, Request, Thinking};
use serde_json::Value;

use crate::answer::file_search::FileSearchPlan;
use crate::answer::reply_event::{ReplyEvent, ReplyFilter};
use crate::answer::responses_store::StoredResponse;
use crate::figures::tokens::Tokens;
use crate::http::error_body::{Dialect, Refusal};
use crate::http::response::EVENT_STREAM;

/// One piece of a stream: of Server-Sent Events, or of lines of JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// `data:` alone.
    Data(Value),
    /// `event:` with the `type` of the data.
    Event(Value),
    /// A comment that keeps the connection alive.
    Comment,
    /// `data: [DONE]`
    Done,
    /// A line of JSON without a prefix, as Ollama's clients read it.
    Line(Value),
}

impl Frame {
    /// These pieces as bytes.
    pub(crate) fn bytes(frames: &[Frame]) -> Bytes {
        let mut bytes = BytesMut::new();
        for frame in frames {
            match frame {
                Frame::Data(data) => bytes.put(format!("data: {data}\n\n").as_bytes()),
                Frame::Event(data) => {
                    let name = data["type"].as_str().unwrap_or("error");
                    bytes.put(format!("event: {name}\ndata: {data}\n\n").as_bytes());
                }
                Frame::Comment => bytes.put(&b": still working\n\n"[..]),
                Frame::Done => bytes.put(&b"data: [DONE]\n\n"[..]),
                Frame::Line(data) => bytes.put(format!("{data}\n").as_bytes()),
            }
        }
        bytes.freeze()
    }
}

/// An answer in the format of a surface. It receives every event in order, streaming or not.
pub(crate) trait Reply: Send {
    /// True if a stream begins with the number of prompt tokens.
    fn begins_with_prompt_tokens(&self) -> bool {
        false
    }

    /// The media type of a stream.
    fn stream_type(&self) -> &'static str {
        EVENT_STREAM
    }

    /// The first frames, before any engine event; `prompt_tokens` if they are wanted and could be counted in time.
    fn begin(&mut self, prompt_tokens: Option<u32>) -> Vec<Frame>;

    /// The frames for an event of the answer with this index.
    fn say(&mut self, answer: usize, said: ReplyEvent) -> Vec<Frame>;

    /// A keep-alive. `counted` is true if the client was silent for so much time that only an event it counts as
    /// progress helps.
    fn keep_alive(&mut self, _counted: bool) -> Vec<Frame> {
        vec![Frame::Comment]
    }

    /// The last frames, after all answers have ended.
    fn end(&mut self) -> Vec<Frame>;

    /// The last frames if an answer failed after its start.
    fn fail(&mut self, refusal: &Refusal, request_id: &str) -> Vec<Frame> {
        vec![Frame::Data(refusal.body(Dialect::OpenAi, request_id))]
    }

    /// The token counts of all answers, after the end.
    fn tokens(&self) -> Tokens;

    /// The whole answer as one body, after the end.
    fn whole(&self) -> Value;

    /// The response that later requests may name, after the end.
    fn stored(&self) -> Option<StoredResponse> {
        None
    }
}

/// A translated request.
pub(crate) struct TranslatedRequest {
    /// One for each answer, in order.
    pub(crate) requests: Vec<Request>,
    /// True if the answer streams.
    pub(crate) stream: bool,
    pub(crate) filter: ReplyFilter,
    pub(crate) reply: Box<dyn Reply>,
    /// The path of the first image in the request, if there is one.
    pub(crate) image: Option<String>,
    /// The search of documents that the model may call; its request is the only one.
    pub(crate) file_search: Option<FileSearchPlan>,
}

impl TranslatedRequest {
    /// Thinking is reported unless it was switched off.
    pub(crate) fn filter(request: &Request, parallel_calls: bool) -> ReplyFilter {
        ReplyFilter {
            thoughts: request.thinking != Some(Thinking::Off),
            parallel_calls,
        }
    }

    /// Lets this model draft every answer, if there is one.
    pub(crate) fn draft_with(&mut self, draft_model: Option<&FolderSource>) {
        for request in &mut self.requests {
            request.draft_model = draft_model.cloned();
        }
    }
}

/// The id and date of an answer; passed in, so that translations are pure.
#[derive(Debug, Clone)]
pub(crate) struct ResponseIds {
    /// Its id, with the surface's prefix.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{FolderSource, ModelSource, Timing, ToolCall};
    use serde_json::json;

    use super::*;
    use crate::answer::reply_event::{End, StopCause};

    /// A model for translations.
    pub(crate) fn pebble() -> ModelSource {
        ModelSource::Folder(FolderSource {
            reference: "pebble".into(),
            path: "/models/pebble".into(),
            revision: None,
            adapter: None,
        })
    }

    /// A stamp that tests compare with.
    pub(crate) fn stamp(id: &str) -> ResponseIds {
        ResponseIds {
            id: id.into(),
            created: 7,
        }
    }

    /// A call of a tool that adds.
    pub(crate) fn call() -> ReplyEvent {
        ReplyEvent::Call(ToolCall {
            id: "abcdefghi".into(),
            name: "add".into(),
            arguments: json!({"a": 2}),
        })
    }

    /// The end of an answer of 7 tokens.
    pub(crate) fn end(reason: StopCause) -> ReplyEvent {
        ReplyEvent::End(End {
            reason,
            usage: Tokens {
                prompt: 10,
                cached: 4,
                completion: 7,
                reasoning: 3,
            },
            timing: Timing {
                load_ms: 1.0,
                first_token_ms: 20.0,
                prefill_tokens_per_second: 500.0,
                decode_tokens_per_second: 12.0,
            },
        })
    }

    /// The data of frames.
    pub(crate) fn data(frames: &[Frame]) -> Vec<Value> {
        let data = |frame: &Frame| match frame {
            Frame::Data(data) | Frame::Event(data) | Frame::Line(data) => Some(data.clone()),
            Frame::Comment | Frame::Done => None,
        };
        frames.iter().filter_map(data).collect()
    }

    #[test]
    fn frames_are_server_sent_events_or_lines() {
        let frames = [
            Frame::Data(json!({"a": "x\ny"})),
            Frame::Event(json!({"type": "ping"})),
            Frame::Comment,
            Frame::Done,
        ];
        assert_eq!(
            Frame::bytes(&frames),
            "data: {\"a\":\"x\\ny\"}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n: still working\n\ndata: [DONE]\n\n"
        );
        let lines = [Frame::Line(json!({"a": "x\ny"})), Frame::Line(json!({"done": true}))];
        assert_eq!(Frame::bytes(&lines), "{\"a\":\"x\\ny\"}\n{\"done\":true}\n");
    }
}
