//! What a surface makes of an answer: wire events while it comes, or one body at its end, from the same state.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::{Request, Thinking};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::reply_event::{ReplyEvent, ReplyFilter, Tokens};
use crate::responses_store::StoredResponse;

/// One piece of a stream of Server-Sent Events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// `data:` alone.
    Data(Value),
    /// `event:` with the `type` of the data.
    Event(Value),
    /// A comment, which says that the connection lives.
    Comment,
    /// `data: [DONE]`
    Done,
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
            }
        }
        bytes.freeze()
    }
}

/// An answer in the form of a surface. It is told everything in order, whether it streams or not.
pub(crate) trait Reply: Send {
    /// Whether a stream begins with the tokens of its prompt.
    fn begins_with_prompt_tokens(&self) -> bool {
        false
    }

    /// What is sent before the engine has said anything; `prompt_tokens` if they are wanted and could be counted at once.
    fn begin(&mut self, prompt_tokens: Option<u32>) -> Vec<Frame>;

    /// More of the answer of this number.
    fn say(&mut self, answer: usize, said: ReplyEvent) -> Vec<Frame>;

    /// What keeps a client waiting. `counted`: it was silent for so long that only what the client takes for progress helps.
    fn keep_alive(&mut self, counted: bool) -> Vec<Frame>;

    /// What is sent after all answers have ended.
    fn end(&mut self) -> Vec<Frame>;

    /// What is sent if an answer failed after it had begun.
    fn fail(&mut self, refusal: &Refusal, request_id: &str) -> Vec<Frame>;

    /// What all answers took, after the end.
    fn tokens(&self) -> Tokens;

    /// The whole answer as one body, after the end.
    fn whole(&self) -> Value;

    /// What later requests may name, after the end.
    fn stored(&self) -> Option<StoredResponse> {
        None
    }
}

/// A request as a surface understood it.
pub(crate) struct Ask {
    /// One for each answer, in order.
    pub(crate) requests: Vec<Request>,
    /// Whether the answer streams.
    pub(crate) stream: bool,
    pub(crate) filter: ReplyFilter,
    pub(crate) reply: Box<dyn Reply>,
    /// The place of the first picture in the request, if there are any.
    pub(crate) picture: Option<String>,
}

impl Ask {
    /// Thoughts are told unless they were switched off.
    pub(crate) fn filter(request: &Request, parallel_calls: bool) -> ReplyFilter {
        ReplyFilter {
            thoughts: request.thinking != Some(Thinking::Off),
            parallel_calls,
        }
    }
}

/// What names and dates an answer; given from outside, so that translations are pure.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    /// Its id, with the surface's prefix.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{FolderSource, ModelSource, ToolCall};
    use serde_json::json;

    use super::*;
    use crate::reply_event::{End, Reason};

    /// A model for translations.
    pub(crate) fn pebble() -> ModelSource {
        ModelSource::Folder(FolderSource {
            reference: "pebble".into(),
            path: "/models/pebble".into(),
            revision: None,
        })
    }

    /// A stamp that tests compare with.
    pub(crate) fn stamp(id: &str) -> Stamp {
        Stamp { id: id.into(), created: 7 }
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
    pub(crate) fn end(reason: Reason) -> ReplyEvent {
        ReplyEvent::End(End {
            reason,
            usage: Tokens {
                prompt: 10,
                cached: 4,
                completion: 7,
                reasoning: 3,
            },
        })
    }

    /// The data of frames.
    pub(crate) fn data(frames: &[Frame]) -> Vec<Value> {
        let data = |frame: &Frame| match frame {
            Frame::Data(data) | Frame::Event(data) => Some(data.clone()),
            Frame::Comment | Frame::Done => None,
        };
        frames.iter().filter_map(data).collect()
    }

    #[test]
    fn frames_are_server_sent_events() {
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
    }
}
