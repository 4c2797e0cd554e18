//! `POST /v1/responses`: the answer, as items with events.

use std::sync::Arc;

use serde_json::{json, Map, Value};

use crate::answer::logprobs;
use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent};
use crate::answer::responses_store::StoredResponse;
use crate::figures::tokens::Tokens;
use crate::http::error_body::Refusal;
use crate::http::ids::{call_id, fresh};
use crate::openai::response_item::{output_text, Growing, Open};
use crate::openai::usage;

/// The parts of a request that its response needs.
#[derive(Debug, Default)]
pub(crate) struct EchoedRequest {
    /// True if later requests may name it.
    pub(crate) store: bool,
    /// True if thinking is also reported as a summary, the only form that some clients read.
    pub(crate) summary: bool,
    /// The echoed fields.
    pub(crate) echo: Map<String, Value>,
    /// All items before the answer.
    pub(crate) input: Vec<Arc<Value>>,
}

/// An answer as a response.
pub(crate) struct ResponsesReply {
    stamp: ResponseIds,
    model: String,
    request: EchoedRequest,
    sequence: u64,
    /// Completed items.
    output: Vec<Value>,
    open: Option<Open>,
    end: Option<End>,
    error: Option<Value>,
}

impl ResponsesReply {
    pub(crate) fn new(stamp: ResponseIds, model: &str, request: EchoedRequest) -> Self {
        Self {
            stamp,
            model: model.to_owned(),
            request,
            sequence: 0,
            output: Vec::new(),
            open: None,
            end: None,
            error: None,
        }
    }

    pub(super) fn event(&mut self, kind: &str, fields: Value) -> Frame {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        Frame::Event(event)
    }

    /// An event of the item that grows or was just added.
    fn item_event(&mut self, kind: &str, id: &str, mut fields: Value) -> Frame {
        fields["item_id"] = id.into();
        fields["output_index"] = self.output.len().into();
        self.event(kind, fields)
    }

    fn item_added(&mut self, item: Value) -> Frame {
        let fields = json!({"output_index": self.output.len(), "item": item});
        self.event("response.output_item.added", fields)
    }

    fn item_done(&mut self, item: Value) -> Frame {
        let fields = json!({"output_index": self.output.len(), "item": item});
        self.output.push(item);
        self.event("response.output_item.done", fields)
    }

    /// Opens an item of this kind, after closing another.
    fn open(&mut self, kind: Growing) -> Vec<Frame> {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return Vec::new();
        }
        let id = fresh(if kind == Growing::Reasoning { "rs_" } else { "msg_" });
        let mut frames = self.close("completed");
        frames.extend(self.open_as(kind, id));
        frames
    }

    /// Opens an item of this id; none is open.
    pub(super) fn open_as(&mut self, kind: Growing, id: String) -> Vec<Frame> {
        let mut frames = Vec::new();
        let open = Open {
            kind,
            id,
            text: String::new(),
            logprobs: Vec::new(),
        };
        let id = open.id.clone();
        frames.push(self.item_added(open.item("in_progress", false)));
        match kind {
            Growing::Reasoning => {
                let part = json!({"content_index": 0, "part": {"type": "reasoning_text", "text": ""}});
                frames.push(self.item_event("response.content_part.added", &id, part));
                if self.request.summary {
                    let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}});
                    frames.push(self.item_event("response.reasoning_summary_part.added", &id, part));
                }
            }
            Growing::Message => {
                let part = json!({"content_index": 0, "part": output_text("", &[])});
                frames.push(self.item_event("response.content_part.added", &id, part));
            }
        }
        self.open = Some(open);
        frames
    }

    /// More text of the item that is open.
    pub(super) fn grow(&mut self, text: &str, logprobs: Vec<Value>) -> Vec<Frame> {
        let Some(open) = &mut self.open else { return Vec::new() };
        open.text.push_str(text);
        open.logprobs.extend(logprobs.iter().cloned());
        let (id, kind) = (open.id.clone(), open.kind);
        match kind {
            Growing::Reasoning => {
                let delta = json!({"content_index": 0, "delta": text});
                let mut frames = vec![self.item_event("response.reasoning_text.delta", &id, delta)];
                if self.request.summary {
                    let delta = json!({"summary_index": 0, "delta": text});
                    frames.push(self.item_event("response.reasoning_summary_text.delta", &id, delta));
                }
                frames
            }
            Growing::Message => {
                let delta = json!({"content_index": 0, "delta": text, "logprobs": logprobs});
                vec![self.item_event("response.output_text.delta", &id, delta)]
            }
        }
    }

    /// Ends the item that is open.
    pub(super) fn close(&mut self, status: &str) -> Vec<Frame> {
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        let (id, text) = (open.id.as_str(), open.text.as_str());
        let mut frames = Vec::new();
        match open.kind {
            Growing::Reasoning => {
                let done = json!({"content_index": 0, "text": text});
                frames.push(self.item_event("response.reasoning_text.done", id, done));
                let part = json!({"content_index": 0, "part": {"type": "reasoning_text", "text": text}});
                frames.push(self.item_event("response.content_part.done", id, part));
                if self.request.summary {
                    let done = json!({"summary_index": 0, "text": text});
                    frames.push(self.item_event("response.reasoning_summary_text.done", id, done));
                    let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
                    frames.push(self.item_event("response.reasoning_summary_part.done", id, part));
                }
            }
            Growing::Message => {
                let done = json!({"content_index": 0, "text": text, "logprobs": open.logprobs});
                frames.push(self.item_event("response.output_text.done", id, done));
                let part = json!({"content_index": 0, "part": output_text(text, &open.logprobs)});
                frames.push(self.item_event("response.content_part.done", id, part));
            }
        }
        frames.push(self.item_done(open.item(status, self.request.summary)));
        frames
    }

    /// A call; `status` is `completed` or `incomplete`.
    fn call(&mut self, call_id: &str, name: &str, arguments: &str, status: &str) -> Vec<Frame> {
        let mut frames = self.close("completed");
        frames.extend(self.call_as(&fresh("fc_"), call_id, name, arguments, status));
        frames
    }

    /// The same of this id; no item is open.
    pub(super) fn call_as(&mut self, id: &str, call_id: &str, name: &str, arguments: &str, status: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        let item = |status: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments, "status": status});
        frames.push(self.item_added(item("in_progress", "")));
        let delta = json!({"delta": arguments});
        frames.push(self.item_event("response.function_call_arguments.delta", id, delta));
        let done = json!({"arguments": arguments, "name": name});
        frames.push(self.item_event("response.function_call_arguments.done", id, done));
        frames.push(self.item_done(item(status, arguments)));
        frames
    }

    fn is_cut(&self) -> bool {
        self.end.as_ref().is_some_and(End::is_cut)
    }

    fn status(&self) -> &'static str {
        match &self.end {
            _ if self.error.is_some() => "failed",
            None => "in_progress",
            Some(_) if self.is_cut() => "incomplete",
            Some(_) => "completed",
        }
    }

    fn response(&self) -> Value {
        let mut response = json!({
            "id": self.stamp.id,
            "object": "response",
            "created_at": self.stamp.created,
            "status": self.status(),
            "error": self.error,
            "incomplete_details": self.is_cut().then(|| json!({"reason": "max_output_tokens"})),
            "model": self.model,
            "output": self.output,
            "usage": self.end.as_ref().map(|end| usage::response(end.usage)),
        });
        if let Value::Object(fields) = &mut response {
            fields.extend(self.request.echo.clone());
        }
        response
    }

    fn response_event(&mut self, kind: &str) -> Frame {
        let response = self.response();
        self.event(kind, json!({ "response": response }))
    }
}

impl Reply for ResponsesReply {
    fn begin(&mut self, _prompt_tokens: Option<u32>) -> Vec<Frame> {
        vec![
            self.response_event("response.created"),
            self.response_event("response.in_progress"),
        ]
    }

    fn say(&mut self, _answer: usize, said: ReplyEvent) -> Vec<Frame> {
        match said {
            ReplyEvent::Thinking(text) => {
                let mut frames = self.open(Growing::Reasoning);
                frames.extend(self.grow(&text, Vec::new()));
                frames
            }
            ReplyEvent::Text { text, logprobs } => {
                let mut frames = self.open(Growing::Message);
                frames.extend(self.grow(&text, logprobs::entries(&logprobs)));
                frames
            }
            ReplyEvent::Call(call) => self.call(
                &call_id("call_", &call.id),
                &call.name,
                &call.arguments.to_string(),
                "completed",
            ),
            ReplyEvent::CutCall(call) => self.call(&fresh("call_"), &call.name, &call.arguments, "incomplete"),
            ReplyEvent::End(end) => {
                self.end = Some(end);
                self.close(self.status())
            }
        }
    }

    fn keep_alive(&mut self, counted: bool) -> Vec<Frame> {
        if counted {
            // Codex does not count comments.
            return vec![self.response_event("response.in_progress")];
        }
        vec![Frame::Comment]
    }

    fn end(&mut self) -> Vec<Frame> {
        vec![self.response_event(&format!("response.{}", self.status()))]
    }

    fn fail(&mut self, refusal: &Refusal, _request_id: &str) -> Vec<Frame> {
        let mut frames = self.close("incomplete");
        self.error = Some(json!({"code": refusal.response_code(), "message": refusal.message}));
        frames.push(self.response_event("response.failed"));
        frames
    }

    fn tokens(&self) -> Tokens {
        self.end.as_ref().map(|end| end.usage).unwrap_or_default()
    }

    fn whole(&self) -> Value {
        self.response()
    }

    fn stored(&self) -> Option<StoredResponse> {
        let stored = self.request.store && self.end.is_some();
        stored.then(|| StoredResponse::new(&self.stamp.id, self.request.input.clone(), self.response()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::answer::reply::tests::{call, data, end, stamp};
    use crate::answer::reply_event::StopCause;
    use crate::http::error_body::Kind;

    fn reply(summary: bool) -> ResponsesReply {
        let answered = EchoedRequest {
            store: true,
            summary,
            ..EchoedRequest::default()
        };
        ResponsesReply::new(stamp("resp_1"), "pebble", answered)
    }

    /// The events and the body of an answer with a thought, a text and a call.
    pub(in crate::openai) fn answer(summary: bool) -> (Vec<Value>, Value) {
        let mut reply = reply(summary);
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
        (data(&frames), reply.whole())
    }

    #[test]
    fn items_open_grow_and_close_in_order() {
        let (events, whole) = answer(false);
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.content_part.added",
                "response.reasoning_text.delta",
                "response.reasoning_text.delta",
                "response.reasoning_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "response.output_item.done",
                "response.completed",
            ]
        );
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
        }
        let done: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .collect();
        for (index, event) in done.iter().enumerate() {
            assert_eq!(
                (&event["output_index"], &event["item"]),
                (&json!(index), &whole["output"][index])
            );
            let added = events
                .iter()
                .find(|other| other["type"] == "response.output_item.added" && other["output_index"] == index);
            assert_eq!(added.unwrap()["item"]["id"], event["item"]["id"]);
        }
        assert_eq!(events.last().unwrap()["response"], whole);
        assert_eq!(
            whole["output"][0]["content"],
            json!([{"type": "reasoning_text", "text": "hm"}])
        );
        assert_eq!(whole["output"][0]["summary"], json!([]));
        assert_eq!(whole["output"][2]["call_id"], "call_abcdefghi");
        assert!(whole["output"][2]["id"].as_str().unwrap().starts_with("fc_"));
        assert_eq!(
            whole["usage"],
            json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 17})
        );
    }

    #[test]
    fn a_summary_that_was_asked_for_says_the_thought_again() {
        let (events, whole) = answer(true);
        let kinds = events.iter().filter_map(|event| event["type"].as_str());
        let summary: Vec<&str> = kinds.filter(|kind| kind.contains("summary")).collect();
        assert_eq!(
            summary,
            [
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
            ]
        );
        assert_eq!(
            whole["output"][0]["summary"],
            json!([{"type": "summary_text", "text": "hm"}])
        );
    }

    #[test]
    fn an_answer_that_was_cut_is_incomplete_and_one_that_failed_says_why() {
        let mut cut = reply(false);
        cut.say(0, ReplyEvent::text("4"));
        cut.say(0, end(StopCause::TokenLimit));
        let last = data(&cut.end());
        assert_eq!(last[0]["type"], "response.incomplete");
        assert_eq!(
            last[0]["response"]["incomplete_details"],
            json!({"reason": "max_output_tokens"})
        );
        assert_eq!(last[0]["response"]["output"][0]["status"], "incomplete");
        assert!(cut.stored().is_some());

        let mut failed = reply(false);
        failed.say(0, ReplyEvent::text("4"));
        let last = data(&failed.fail(&Refusal::new(Kind::Internal, "broken"), "req_1"))
            .pop()
            .unwrap();
        assert_eq!(
            (&last["type"], &last["response"]["status"]),
            (&json!("response.failed"), &json!("failed"))
        );
        assert_eq!(
            last["response"]["error"],
            json!({"code": "server_error", "message": "broken"})
        );
        assert!(failed.stored().is_none());
    }

    #[test]
    fn a_client_that_waited_long_is_sent_what_it_counts() {
        let mut reply = reply(false);
        reply.begin(None);
        assert_eq!(reply.keep_alive(false), [Frame::Comment]);
        let counted = data(&reply.keep_alive(true));
        assert_eq!(
            (&counted[0]["type"], &counted[0]["sequence_number"]),
            (&json!("response.in_progress"), &json!(2))
        );
    }
}
