//! `POST /v1/messages`: the answer, as blocks with events.

use serde_json::{json, Value};

use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent, StopCause};
use crate::figures::tokens::Tokens;
use crate::http::error_body::{Dialect, Refusal};
use crate::http::ids::{call_id, fresh};

/// The signature of thinking blocks. Clients return a thinking block only if it is signed, and do not verify it.
const SIGNATURE: &str = "cG9uZGVy";

/// An answer as a message.
pub(crate) struct MessagesReply {
    stamp: ResponseIds,
    model: String,
    /// True if thinking is on, so that the first block is probably thinking.
    thinks: bool,
    /// The prompt's tokens, as they were counted beforehand.
    counted: u32,
    /// Completed blocks.
    content: Vec<Value>,
    open: Option<Open>,
    end: Option<End>,
}

/// A block that grows.
struct Open {
    kind: Growing,
    text: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Growing {
    Thinking,
    Text,
}

impl Growing {
    fn delta(self, text: &str) -> Value {
        match self {
            Growing::Thinking => json!({"type": "thinking_delta", "thinking": text}),
            Growing::Text => json!({"type": "text_delta", "text": text}),
        }
    }

    fn block(self, text: &str, signature: &str) -> Value {
        match self {
            Growing::Thinking => json!({"type": "thinking", "thinking": text, "signature": signature}),
            Growing::Text => json!({"type": "text", "text": text}),
        }
    }
}

impl MessagesReply {
    pub(crate) fn new(stamp: ResponseIds, model: &str, thinks: bool) -> Self {
        Self {
            stamp,
            model: model.to_owned(),
            thinks,
            counted: 0,
            content: Vec::new(),
            open: None,
            end: None,
        }
    }

    fn delta(&self, delta: Value) -> Frame {
        Frame::Event(json!({"type": "content_block_delta", "index": self.content.len(), "delta": delta}))
    }

    fn start(&self, block: Value) -> Frame {
        Frame::Event(json!({"type": "content_block_start", "index": self.content.len(), "content_block": block}))
    }

    fn stop(&self) -> Frame {
        Frame::Event(json!({"type": "content_block_stop", "index": self.content.len()}))
    }

    /// Opens a block of this kind, after closing another.
    fn open(&mut self, kind: Growing) -> Vec<Frame> {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return Vec::new();
        }
        let mut frames = self.close();
        frames.push(self.start(kind.block("", "")));
        self.open = Some(Open {
            kind,
            text: String::new(),
        });
        frames
    }

    fn grow(&mut self, kind: Growing, text: &str) -> Vec<Frame> {
        let mut frames = self.open(kind);
        frames.push(self.delta(kind.delta(text)));
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        frames
    }

    /// Ends the block that is open.
    fn close(&mut self) -> Vec<Frame> {
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        let mut frames = Vec::new();
        if open.kind == Growing::Thinking {
            frames.push(self.delta(json!({"type": "signature_delta", "signature": SIGNATURE})));
        }
        frames.push(self.stop());
        self.content.push(open.kind.block(&open.text, SIGNATURE));
        frames
    }

    /// A call; `input` is its part that the final message reports.
    fn call(&mut self, id: &str, name: &str, arguments: &str, input: &Value) -> Vec<Frame> {
        let mut frames = self.close();
        let block = |input: &Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
        frames.push(self.start(block(&json!({}))));
        frames.push(self.delta(json!({"type": "input_json_delta", "partial_json": arguments})));
        frames.push(self.stop());
        self.content.push(block(input));
        frames
    }

    fn usage(&self) -> Value {
        let tokens = self.tokens();
        // The cached part is known later; the last event repeats all counts.
        let uncached = match self.end {
            Some(_) => tokens.prompt.saturating_sub(tokens.cached),
            None => self.counted,
        };
        json!({
            // Clients add the cached tokens to these.
            "input_tokens": uncached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": tokens.completion,
        })
    }

    fn stop_reason(&self) -> (Option<&'static str>, Option<&str>) {
        match self.end.as_ref().map(|end| &end.reason) {
            None => (None, None),
            Some(StopCause::Stop) => (Some("end_turn"), None),
            Some(StopCause::StopText(text)) => (Some("stop_sequence"), Some(text)),
            Some(StopCause::TokenLimit) => (Some("max_tokens"), None),
            Some(StopCause::Context) => (Some("model_context_window_exceeded"), None),
            Some(StopCause::ToolCalls) => (Some("tool_use"), None),
        }
    }

    fn message(&self) -> Value {
        let (stop_reason, stop_sequence) = self.stop_reason();
        json!({
            "id": self.stamp.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.content,
            "stop_reason": stop_reason,
            "stop_sequence": stop_sequence,
            "usage": self.usage(),
        })
    }
}

impl Reply for MessagesReply {
    fn begins_with_prompt_tokens(&self) -> bool {
        true
    }

    fn begin(&mut self, prompt_tokens: Option<u32>) -> Vec<Frame> {
        self.counted = prompt_tokens.unwrap_or(0);
        let start = json!({"type": "message_start", "message": self.message()});
        vec![Frame::Event(start)]
    }

    fn say(&mut self, _answer: usize, said: ReplyEvent) -> Vec<Frame> {
        match said {
            ReplyEvent::Thinking(text) => self.grow(Growing::Thinking, &text),
            ReplyEvent::Text { text, .. } => self.grow(Growing::Text, &text),
            ReplyEvent::Call(call) => self.call(
                &call_id("toolu_", &call.id),
                &call.name,
                &call.arguments.to_string(),
                &call.arguments,
            ),
            ReplyEvent::CutCall(call) => self.call(&fresh("toolu_"), &call.name, &call.arguments, &json!({})),
            ReplyEvent::Search(_) => Vec::new(),
            ReplyEvent::End(end) => {
                self.end = Some(end);
                self.close()
            }
        }
    }

    fn keep_alive(&mut self, counted: bool) -> Vec<Frame> {
        let mut frames = vec![Frame::Event(json!({"type": "ping"}))];
        if counted {
            // Claude Code ignores pings but counts empty deltas.
            let kind = match &self.open {
                Some(open) => open.kind,
                None if self.thinks && self.content.is_empty() => Growing::Thinking,
                None => Growing::Text,
            };
            frames.extend(self.grow(kind, ""));
        }
        frames
    }

    fn end(&mut self) -> Vec<Frame> {
        let (stop_reason, stop_sequence) = self.stop_reason();
        let delta = json!({"stop_reason": stop_reason, "stop_sequence": stop_sequence});
        vec![
            Frame::Event(json!({"type": "message_delta", "delta": delta, "usage": self.usage()})),
            Frame::Event(json!({"type": "message_stop"})),
        ]
    }

    fn fail(&mut self, refusal: &Refusal, request_id: &str) -> Vec<Frame> {
        vec![Frame::Event(refusal.body(Dialect::Anthropic, request_id))]
    }

    fn tokens(&self) -> Tokens {
        self.end.as_ref().map(|end| end.usage).unwrap_or_default()
    }

    fn whole(&self) -> Value {
        self.message()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{call, data, end, stamp};

    fn reply() -> MessagesReply {
        MessagesReply::new(stamp("msg_1"), "pebble", true)
    }

    /// Reassembles the message as a client does, checking the order of events.
    fn accumulate(events: &[Value]) -> Vec<Value> {
        let mut blocks: Vec<Value> = Vec::new();
        let mut open = false;
        for event in events {
            let index = event["index"].as_u64().map(|index| index as usize);
            match event["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert_eq!((index, open), (Some(blocks.len()), false));
                    blocks.push(event["content_block"].clone());
                    open = true;
                }
                "content_block_delta" => {
                    assert_eq!((index, open), (Some(blocks.len() - 1), true));
                    let (delta, block) = (&event["delta"], blocks.last_mut().unwrap());
                    let (field, more) = match delta["type"].as_str().unwrap() {
                        "thinking_delta" => ("thinking", &delta["thinking"]),
                        "text_delta" => ("text", &delta["text"]),
                        "signature_delta" => ("signature", &delta["signature"]),
                        "input_json_delta" => {
                            block["input"] = serde_json::from_str(delta["partial_json"].as_str().unwrap()).unwrap();
                            continue;
                        }
                        other => panic!("{other}"),
                    };
                    block[field] = format!("{}{}", block[field].as_str().unwrap(), more.as_str().unwrap()).into();
                }
                "content_block_stop" => {
                    assert_eq!((index, open), (Some(blocks.len() - 1), true));
                    open = false;
                }
                _ => assert!(!open || event["type"] == "ping"),
            }
        }
        blocks
    }

    #[test]
    fn blocks_open_grow_and_close_in_order() {
        let mut reply = reply();
        let mut frames = reply.begin(None);
        for said in [
            ReplyEvent::Thinking("h".into()),
            ReplyEvent::Thinking("m".into()),
            ReplyEvent::text("4"),
            call(),
            end(StopCause::ToolCalls),
        ] {
            frames.extend(reply.say(0, said));
        }
        frames.extend(reply.end());
        let (events, whole) = (data(&frames), reply.whole());
        assert_eq!(
            whole["content"],
            json!([{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}, {"type": "text", "text": "4"},
                {"type": "tool_use", "id": "toolu_abcdefghi", "name": "add", "input": {"a": 2}}])
        );
        assert_eq!(Value::from(accumulate(&events)), whole["content"]);
        let usage = json!({"input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 7});
        assert_eq!((&whole["usage"], &whole["stop_reason"]), (&usage, &json!("tool_use")));
        assert_eq!(events[0]["message"]["stop_reason"], Value::Null);
        let [delta, stop] = &events[events.len() - 2..] else {
            panic!()
        };
        assert_eq!(
            (&delta["usage"], &delta["delta"]["stop_reason"]),
            (&usage, &json!("tool_use"))
        );
        assert_eq!(stop, &json!({"type": "message_stop"}));
    }

    #[test]
    fn a_stream_begins_with_the_prompts_tokens_if_they_are_known() {
        for (counted, told) in [(Some(10), 10), (None, 0)] {
            let mut reply = reply();
            let mut frames = reply.begin(counted);
            frames.extend(reply.say(0, end(StopCause::Stop)));
            frames.extend(reply.end());
            let events = data(&frames);
            let start = &events[0]["message"]["usage"];
            assert_eq!(
                (&start["input_tokens"], &start["cache_read_input_tokens"]),
                (&json!(told), &json!(0))
            );
            let last = &events[events.len() - 2]["usage"];
            assert_eq!(
                (&last["input_tokens"], &last["cache_read_input_tokens"]),
                (&json!(6), &json!(4))
            );
        }
    }

    #[test]
    fn a_call_that_was_cut_is_a_block_whose_input_is_not_whole() {
        let mut reply = reply();
        let cut = crate::answer::reply_event::CutCall {
            name: "add".into(),
            arguments: "{\"a\": 2".into(),
        };
        let mut frames = reply.say(0, ReplyEvent::CutCall(cut));
        frames.extend(reply.say(0, end(StopCause::TokenLimit)));
        let events = data(&frames);
        assert_eq!(
            events[1]["delta"],
            json!({"type": "input_json_delta", "partial_json": "{\"a\": 2"})
        );
        let whole = reply.whole();
        assert_eq!(
            (
                &whole["content"][0]["name"],
                &whole["content"][0]["input"],
                &whole["stop_reason"]
            ),
            (&json!("add"), &json!({}), &json!("max_tokens"))
        );
    }

    #[test]
    fn a_client_that_waited_long_is_sent_empty_words_in_an_open_block() {
        let mut reply = reply();
        let mut frames = reply.begin(None);
        frames.extend(reply.keep_alive(false));
        assert_eq!(frames.len(), 2);
        frames.extend(reply.keep_alive(true));
        frames.extend(reply.keep_alive(true));
        frames.extend(reply.say(0, ReplyEvent::text("4")));
        frames.extend(reply.keep_alive(true));
        frames.extend(reply.say(0, end(StopCause::Stop)));
        let blocks = accumulate(&data(&frames));
        assert_eq!(
            blocks,
            [
                json!({"type": "thinking", "thinking": "", "signature": SIGNATURE}),
                json!({"type": "text", "text": "4"})
            ]
        );
    }

    #[test]
    fn every_end_has_its_reason() {
        for (reason, word, sequence) in [
            (StopCause::Stop, "end_turn", None),
            (StopCause::StopText("END".into()), "stop_sequence", Some("END")),
            (StopCause::TokenLimit, "max_tokens", None),
            (StopCause::Context, "model_context_window_exceeded", None),
        ] {
            let mut reply = reply();
            reply.say(0, end(reason));
            assert_eq!(reply.stop_reason(), (Some(word), sequence));
        }
    }
}
