//! `POST /v1/responses`: the answer, as items with events.

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use protocol::QuotedPassage;
use serde_json::{json, Map, Value};

use crate::answer::logprobs;
use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent, SearchEvent};
use crate::answer::responses_store::StoredResponse;
use crate::figures::tokens::Tokens;
use crate::http::error_body::Refusal;
use crate::http::ids::{call_id, fresh};
use crate::openai::file_search;
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
    /// The passages that the model sees of earlier responses.
    pub(crate) given: Vec<QuotedPassage>,
    /// True if the client wants the passages of searches.
    pub(crate) shows_results: bool,
    /// True if marks such as [1] cite passages.
    pub(crate) cites: bool,
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
    /// The id and the query of the search that is being made.
    search: Option<(String, String)>,
    /// The items of searches with their results, by their places, if the client does not want those.
    unshown: Vec<(usize, Value)>,
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
            search: None,
            unshown: Vec::new(),
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
            annotations: Vec::new(),
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
                let part = json!({"content_index": 0, "part": output_text("", &[], &[])});
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
        let text = self.open.as_ref().filter(|_| self.request.cites);
        let text = text.map(|open| open.text.as_str()).unwrap_or_default();
        let annotations = file_search::annotations(text, &self.request.given);
        self.close_with(status, annotations)
    }

    /// The same with these annotations of its text.
    pub(super) fn close_with(&mut self, status: &str, annotations: Vec<Value>) -> Vec<Frame> {
        let Some(mut open) = self.open.take() else {
            return Vec::new();
        };
        if open.kind == Growing::Message {
            open.annotations = annotations;
        }
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
                for (index, annotation) in open.annotations.iter().enumerate() {
                    let added = json!({"content_index": 0, "annotation_index": index, "annotation": annotation});
                    frames.push(self.item_event("response.output_text.annotation.added", id, added));
                }
                let done = json!({"content_index": 0, "text": text, "logprobs": open.logprobs});
                frames.push(self.item_event("response.output_text.done", id, done));
                let part = json!({"content_index": 0, "part": output_text(text, &open.logprobs, &open.annotations)});
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

    /// The beginning of a search; no item is open.
    pub(super) fn begin_search(&mut self, id: &str, query: &str) -> Vec<Frame> {
        self.search = Some((id.to_owned(), query.to_owned()));
        vec![
            self.item_added(file_search::item(id, "in_progress", query, None)),
            self.item_event("response.file_search_call.in_progress", id, json!({})),
            self.item_event("response.file_search_call.searching", id, json!({})),
        ]
    }

    /// The end of the search that is being made.
    pub(super) fn end_search(&mut self, status: &str, results: Value, shown: bool) -> Vec<Frame> {
        let Some((id, query)) = self.search.take() else {
            return Vec::new();
        };
        let mut item = file_search::item(&id, status, &query, Some(results));
        if !shown {
            self.unshown.push((self.output.len(), item.clone()));
            file_search::without_results(&mut item);
        }
        // OpenAI has no event for one that failed; the item says so.
        let completed =
            (status == "completed").then(|| self.item_event("response.file_search_call.completed", &id, json!({})));
        let mut frames = Vec::from_iter(completed);
        frames.push(self.item_done(item));
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
            ReplyEvent::Search(SearchEvent::Begun { id, query }) => {
                let mut frames = self.close("completed");
                frames.extend(self.begin_search(&id, &query));
                frames
            }
            ReplyEvent::Search(SearchEvent::Found(passages)) => {
                let results = file_search::results(&passages);
                self.request.given.extend(passages);
                self.end_search("completed", results, self.request.shows_results)
            }
            ReplyEvent::Search(SearchEvent::Failed) => self.end_search("failed", json!([]), self.request.shows_results),
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
        frames.extend(self.end_search("incomplete", json!([]), self.request.shows_results));
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
        stored.then(|| {
            let sent = StoredResponse::new(&self.stamp.id, self.request.input.clone(), self.response());
            let unshown = self.unshown.iter().cloned();
            unshown.fold(sent, |stored, (at, item)| stored.with_item(at, item))
        })
    }
}
