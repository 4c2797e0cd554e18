//! `POST /v1/chat/completions`: the answer.

use serde_json::{json, Value};

use crate::answer::logprobs;
use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent, StopCause};
use crate::figures::tokens::Tokens;
use crate::http::ids::{call_id, fresh};
use crate::openai::usage;

/// An answer as a chat completion.
pub(crate) struct ChatReply {
    stamp: ResponseIds,
    model: String,
    choices: Vec<Choice>,
    options: ChatOptions,
}

/// Options of an answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChatOptions {
    /// The usage in a chunk of its own.
    pub(crate) usage_chunk: bool,
    /// The log probabilities of the answer's tokens.
    pub(crate) logprobs: bool,
}

#[derive(Default)]
struct Choice {
    reasoning: String,
    text: String,
    logprobs: Vec<Value>,
    calls: Vec<Value>,
    end: Option<End>,
}

impl Choice {
    /// Adds a call; returns its deltas.
    fn call(&mut self, id: String, name: &str, arguments: String) -> Vec<Value> {
        let index = self.calls.len();
        let function = |arguments: &str| json!({"name": name, "arguments": arguments});
        let call = json!({"id": id, "type": "function", "function": function(&arguments)});
        self.calls.push(call);
        vec![
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function("")}]}),
            json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}),
        ]
    }
}

impl ChatReply {
    pub(crate) fn new(stamp: ResponseIds, model: &str, choices: usize, options: ChatOptions) -> Self {
        Self {
            stamp,
            model: model.to_owned(),
            choices: (0..choices).map(|_| Choice::default()).collect(),
            options,
        }
    }

    fn envelope(&self, object: &str, choices: Value) -> Value {
        json!({"id": self.stamp.id, "object": object, "created": self.stamp.created, "model": self.model, "choices": choices})
    }

    /// Log probabilities as a choice has them, if they were asked for.
    fn content(&self, logprobs: Vec<Value>) -> Value {
        match self.options.logprobs {
            true => json!({"content": logprobs, "refusal": null}),
            false => Value::Null,
        }
    }

    fn chunk(&self, index: usize, delta: Value, finish_reason: Option<&str>) -> Value {
        self.likely_chunk(index, delta, Value::Null, finish_reason)
    }

    fn likely_chunk(&self, index: usize, delta: Value, logprobs: Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason});
        let mut chunk = self.envelope("chat.completion.chunk", json!([choice]));
        if self.options.usage_chunk {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// OpenAI's finish reason.
pub(crate) fn finish_reason(reason: &StopCause) -> &'static str {
    match reason {
        StopCause::Stop | StopCause::StopText(_) => "stop",
        StopCause::TokenLimit | StopCause::Context => "length",
        StopCause::ToolCalls => "tool_calls",
    }
}

impl Reply for ChatReply {
    fn begin(&mut self, _prompt_tokens: Option<u32>) -> Vec<Frame> {
        let first = |index| Frame::Data(self.chunk(index, json!({"role": "assistant", "content": ""}), None));
        (0..self.choices.len()).map(first).collect()
    }

    fn say(&mut self, answer: usize, said: ReplyEvent) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(answer) else {
            return Vec::new();
        };
        let deltas = match said {
            ReplyEvent::Thinking(text) => {
                choice.reasoning.push_str(&text);
                vec![json!({"reasoning_content": text})]
            }
            ReplyEvent::Text { text, logprobs } => {
                choice.text.push_str(&text);
                let logprobs = logprobs::entries(&logprobs);
                choice.logprobs.extend(logprobs.iter().cloned());
                let (delta, told) = (json!({"content": text}), self.content(logprobs));
                return vec![Frame::Data(self.likely_chunk(answer, delta, told, None))];
            }
            ReplyEvent::Call(call) => choice.call(call_id("call_", &call.id), &call.name, call.arguments.to_string()),
            ReplyEvent::CutCall(call) => choice.call(fresh("call_"), &call.name, call.arguments),
            ReplyEvent::Search(_) => return Vec::new(),
            ReplyEvent::End(end) => {
                let reason = finish_reason(&end.reason);
                choice.end = Some(end);
                let mut chunk = self.chunk(answer, json!({}), Some(reason));
                if !self.options.usage_chunk && self.choices.iter().all(|choice| choice.end.is_some()) {
                    chunk["usage"] = usage::chat(self.tokens());
                }
                return vec![Frame::Data(chunk)];
            }
        };
        let frame = |delta| Frame::Data(self.chunk(answer, delta, None));
        deltas.into_iter().map(frame).collect()
    }

    fn end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.options.usage_chunk {
            let mut last = self.envelope("chat.completion.chunk", json!([]));
            last["usage"] = usage::chat(self.tokens());
            frames.push(Frame::Data(last));
        }
        frames.push(Frame::Done);
        frames
    }

    fn tokens(&self) -> Tokens {
        let ends = self.choices.iter().filter_map(|choice| choice.end.as_ref());
        ends.fold(Tokens::default(), |all, end| all.and(end.usage))
    }

    fn whole(&self) -> Value {
        let choice = |(index, choice): (usize, &Choice)| {
            let silent = choice.text.is_empty() && !choice.calls.is_empty();
            let text = (!silent).then_some(&choice.text);
            let mut message = json!({"role": "assistant", "content": text, "refusal": null});
            if !choice.reasoning.is_empty() {
                message["reasoning_content"] = choice.reasoning.as_str().into();
            }
            if !choice.calls.is_empty() {
                message["tool_calls"] = choice.calls.clone().into();
            }
            let reason = choice.end.as_ref().map(|end| finish_reason(&end.reason));
            let logprobs = self.content(choice.logprobs.clone());
            json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": reason})
        };
        let choices = self.choices.iter().enumerate().map(choice).collect();
        let mut whole = self.envelope("chat.completion", choices);
        whole["usage"] = usage::chat(self.tokens());
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{call, data, end, stamp};

    const USAGE: &str = r#"{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}"#;

    fn usage_value() -> Value {
        serde_json::from_str(USAGE).unwrap()
    }

    #[test]
    fn a_stream_begins_with_the_role_and_ends_with_reason_usage_and_done() {
        let mut reply = ChatReply::new(stamp("chatcmpl-1"), "pebble", 1, ChatOptions::default());
        let mut frames = reply.begin(None);
        for said in [
            ReplyEvent::Thinking("hm".into()),
            ReplyEvent::text("4"),
            call(),
            end(StopCause::ToolCalls),
        ] {
            frames.extend(reply.say(0, said));
        }
        frames.extend(reply.end());
        assert_eq!(frames.last(), Some(&Frame::Done));
        let chunks = data(&frames);
        let deltas: Vec<Value> = chunks
            .iter()
            .map(|chunk| chunk["choices"][0]["delta"].clone())
            .collect();
        assert_eq!(
            deltas,
            [
                json!({"role": "assistant", "content": ""}),
                json!({"reasoning_content": "hm"}),
                json!({"content": "4"}),
                json!({"tool_calls": [{"index": 0, "id": "call_abcdefghi", "type": "function", "function": {"name": "add", "arguments": ""}}]}),
                json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":2}"}}]}),
                json!({}),
            ]
        );
        let last = chunks.last().unwrap();
        assert_eq!(
            (&last["choices"][0]["finish_reason"], &last["usage"]),
            (&json!("tool_calls"), &usage_value())
        );
        let known = ["id", "object", "created", "model"].map(|field| last[field].clone());
        assert_eq!(
            known,
            [
                json!("chatcmpl-1"),
                json!("chat.completion.chunk"),
                json!(7),
                json!("pebble")
            ]
        );
    }

    #[test]
    fn usage_that_was_asked_for_has_a_chunk_of_its_own() {
        let mut reply = ChatReply::new(
            stamp("chatcmpl-1"),
            "pebble",
            2,
            ChatOptions {
                usage_chunk: true,
                logprobs: false,
            },
        );
        let mut frames = reply.begin(None);
        frames.extend(reply.say(1, end(StopCause::Stop)));
        frames.extend(reply.say(0, end(StopCause::Context)));
        frames.extend(reply.end());
        let chunks = data(&frames);
        assert!(chunks[..4]
            .iter()
            .all(|chunk| chunk["usage"].is_null() && chunk["choices"].as_array().unwrap().len() == 1));
        let reasons: Vec<_> = chunks[2..4]
            .iter()
            .map(|chunk| chunk["choices"][0]["finish_reason"].clone())
            .collect();
        assert_eq!(reasons, ["stop", "length"]);
        assert_eq!(chunks[4]["choices"], json!([]));
        // One prompt, two answers.
        assert_eq!(
            (
                &chunks[4]["usage"]["prompt_tokens"],
                &chunks[4]["usage"]["completion_tokens"]
            ),
            (&json!(10), &json!(14))
        );
    }

    #[test]
    fn log_probabilities_come_with_the_text_if_they_were_asked_for() {
        let token = protocol::TokenLogprobs {
            token: 1,
            bytes: b"4".to_vec(),
            logprob: -0.5,
            top: Vec::new(),
        };
        let entry = json!({"token": "4", "bytes": [52], "logprob": -0.5, "top_logprobs": []});
        let options = ChatOptions {
            logprobs: true,
            ..ChatOptions::default()
        };
        let mut reply = ChatReply::new(stamp("chatcmpl-1"), "pebble", 1, options);
        let said = ReplyEvent::Text {
            text: "4".into(),
            logprobs: vec![token],
        };
        let chunks = data(&reply.say(0, said));
        let expected = json!({"content": [entry], "refusal": null});
        assert_eq!(chunks[0]["choices"][0]["logprobs"], expected);
        reply.say(0, end(StopCause::Stop));
        assert_eq!(reply.whole()["choices"][0]["logprobs"], expected);
    }

    #[test]
    fn a_whole_answer_says_the_same() {
        let mut reply = ChatReply::new(stamp("chatcmpl-1"), "pebble", 1, ChatOptions::default());
        for said in [ReplyEvent::Thinking("hm".into()), call(), end(StopCause::ToolCalls)] {
            reply.say(0, said);
        }
        let whole = reply.whole();
        let message = json!({"role": "assistant", "content": null, "refusal": null, "reasoning_content": "hm",
            "tool_calls": [{"id": "call_abcdefghi", "type": "function", "function": {"name": "add", "arguments": "{\"a\":2}"}}]});
        assert_eq!(whole["choices"][0]["message"], message);
        assert_eq!(
            (&whole["object"], &whole["usage"]),
            (&json!("chat.completion"), &usage_value())
        );
        let mut plain = ChatReply::new(stamp("chatcmpl-1"), "pebble", 1, ChatOptions::default());
        plain.say(0, end(StopCause::StopText("END".into())));
        assert_eq!(
            plain.whole()["choices"][0]["message"],
            json!({"role": "assistant", "content": "", "refusal": null})
        );
    }
}
