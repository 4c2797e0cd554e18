//! `POST /api/chat` and `/api/generate`: the answer, as lines of JSON or one body.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{json, Value};

use crate::answer::logprobs;
use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent};
use crate::figures::tokens::Tokens;
use crate::http::error_body::{Dialect, Refusal};
use crate::http::ids::call_id;

/// The media type of a stream.
const LINES: &str = "application/x-ndjson";

/// The place of an answer's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In a message.
    Chat,
    /// In `response`.
    Generate,
}

/// An answer in Ollama's form.
pub(crate) struct AnswerReply {
    stamp: ResponseIds,
    model: String,
    form: Form,
    begun: Instant,
    thinking: String,
    text: String,
    calls: Vec<Value>,
    /// The log probabilities of the text, if they were asked for.
    logprobs: Option<Vec<Value>>,
    /// The end, and the time until then.
    end: Option<(End, Duration)>,
}

impl AnswerReply {
    pub(crate) fn new(stamp: ResponseIds, model: &str, form: Form, logprobs: bool) -> Self {
        Self {
            stamp,
            model: model.to_owned(),
            form,
            begun: Instant::now(),
            thinking: String::new(),
            text: String::new(),
            calls: Vec::new(),
            logprobs: logprobs.then(Vec::new),
            end: None,
        }
    }

    /// A piece of the answer, or all of it.
    fn chunk(&self, text: &str, thinking: &str, calls: &[Value]) -> Value {
        let mut chunk = envelope(&self.model, &self.stamp);
        let said = match self.form {
            Form::Generate => {
                chunk["response"] = text.into();
                &mut chunk
            }
            Form::Chat => {
                chunk["message"] = json!({"role": "assistant", "content": text});
                &mut chunk["message"]
            }
        };
        if !thinking.is_empty() {
            said["thinking"] = thinking.into();
        }
        if !calls.is_empty() {
            said["tool_calls"] = calls.into();
        }
        chunk["done"] = false.into();
        chunk
    }

    /// Adds the reason and the figures of the end.
    fn finish(&self, mut chunk: Value) -> Value {
        chunk["done"] = true.into();
        let Some((end, total)) = &self.end else { return chunk };
        let (tokens, timing) = (end.usage, end.timing);
        // The rate leaves out the first token, which belongs to the prompt's time.
        let rate = timing.decode_tokens_per_second;
        let decoded = f64::from(tokens.completion.saturating_sub(1));
        let decoding = if rate > 0.0 { decoded / rate * 1000.0 } else { 0.0 };
        // Tool calls end an answer with "stop" too.
        chunk["done_reason"] = if end.is_cut() { "length" } else { "stop" }.into();
        chunk["total_duration"] = nanoseconds(total.as_secs_f64() * 1000.0).into();
        chunk["load_duration"] = nanoseconds(timing.load_ms).into();
        chunk["prompt_eval_count"] = tokens.prompt.into();
        chunk["prompt_eval_duration"] = nanoseconds(timing.first_token_ms).into();
        chunk["eval_count"] = tokens.completion.into();
        chunk["eval_duration"] = nanoseconds(decoding).into();
        chunk
    }
}

/// The fields at the beginning of every line.
fn envelope(model: &str, stamp: &ResponseIds) -> Value {
    let created = i64::try_from(stamp.created)
        .ok()
        .and_then(|second| Timestamp::from_second(second).ok());
    json!({"model": model, "created_at": created.unwrap_or_default().to_string()})
}

fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6) as u64
}

/// The response to a request that only loaded or freed its model, for this reason.
pub(crate) fn silent(form: Form, model: &str, stamp: ResponseIds, reason: &str) -> Value {
    let mut chunk = AnswerReply::new(stamp, model, form, false).chunk("", "", &[]);
    chunk["done"] = true.into();
    chunk["done_reason"] = reason.into();
    chunk
}

impl Reply for AnswerReply {
    fn stream_type(&self) -> &'static str {
        LINES
    }

    fn begin(&mut self, _prompt_tokens: Option<u32>) -> Vec<Frame> {
        Vec::new()
    }

    fn say(&mut self, _answer: usize, said: ReplyEvent) -> Vec<Frame> {
        let chunk = match said {
            ReplyEvent::Thinking(text) => {
                self.thinking.push_str(&text);
                self.chunk("", &text, &[])
            }
            ReplyEvent::Text { text, logprobs } => {
                self.text.push_str(&text);
                let mut chunk = self.chunk(&text, "", &[]);
                if let Some(all) = &mut self.logprobs {
                    let told = logprobs::entries(&logprobs);
                    all.extend(told.iter().cloned());
                    chunk["logprobs"] = told.into();
                }
                chunk
            }
            ReplyEvent::Call(call) => {
                let function = json!({"index": self.calls.len(), "name": call.name, "arguments": call.arguments});
                let call = json!({"id": call_id("call_", &call.id), "function": function});
                self.calls.push(call.clone());
                self.chunk("", "", &[call])
            }
            // Arguments are an object here, so half of them has no form, and clients would run the call without them.
            ReplyEvent::CutCall(_) | ReplyEvent::Search(_) => return Vec::new(),
            ReplyEvent::End(end) => {
                self.end = Some((end, self.begun.elapsed()));
                return Vec::new();
            }
        };
        vec![Frame::Line(chunk)]
    }

    /// A piece without text; lines have no comments.
    fn keep_alive(&mut self, _counted: bool) -> Vec<Frame> {
        vec![Frame::Line(self.chunk("", "", &[]))]
    }

    fn end(&mut self) -> Vec<Frame> {
        vec![Frame::Line(self.finish(self.chunk("", "", &[])))]
    }

    fn fail(&mut self, refusal: &Refusal, request_id: &str) -> Vec<Frame> {
        vec![Frame::Line(refusal.body(Dialect::Ollama, request_id))]
    }

    fn tokens(&self) -> Tokens {
        self.end.as_ref().map(|(end, _)| end.usage).unwrap_or_default()
    }

    fn whole(&self) -> Value {
        let mut whole = self.finish(self.chunk(&self.text, &self.thinking, &self.calls));
        if let Some(logprobs) = &self.logprobs {
            whole["logprobs"] = logprobs.clone().into();
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{call, data, end, stamp};
    use crate::answer::reply_event::{CutCall, StopCause};
    use crate::http::error_body::Kind;

    fn reply(form: Form) -> AnswerReply {
        AnswerReply::new(stamp(""), "pebble", form, false)
    }

    fn told(reply: &mut AnswerReply, said: Vec<ReplyEvent>) -> Vec<Value> {
        let mut frames = reply.begin(None);
        frames.extend(said.into_iter().flat_map(|said| reply.say(0, said)));
        frames.extend(reply.end());
        data(&frames)
    }

    #[test]
    fn lines_carry_thought_text_and_calls_and_the_last_the_figures() {
        let mut reply = reply(Form::Chat);
        let said = vec![
            ReplyEvent::Thinking("hm".into()),
            ReplyEvent::text("4"),
            call(),
            end(StopCause::ToolCalls),
        ];
        let lines = told(&mut reply, said);
        let called = json!([{"id": "call_abcdefghi", "function": {"index": 0, "name": "add", "arguments": {"a": 2}}}]);
        let messages: Vec<&Value> = lines.iter().map(|line| &line["message"]).collect();
        assert_eq!(
            messages,
            [
                &json!({"role": "assistant", "content": "", "thinking": "hm"}),
                &json!({"role": "assistant", "content": "4"}),
                &json!({"role": "assistant", "content": "", "tool_calls": called}),
                &json!({"role": "assistant", "content": ""}),
            ]
        );
        for line in &lines {
            assert_eq!(
                (&line["model"], &line["created_at"]),
                (&json!("pebble"), &json!("1970-01-01T00:00:07Z"))
            );
        }
        let done: Vec<bool> = lines.iter().map(|line| line["done"].as_bool().unwrap()).collect();
        assert_eq!(done, [false, false, false, true]);
        let whole = reply.whole();
        assert_eq!(
            whole["message"],
            json!({"role": "assistant", "content": "4", "thinking": "hm", "tool_calls": called})
        );
        for last in [&lines[3], &whole] {
            let count = |field: &str| last[field].as_u64().unwrap();
            assert_eq!(last["done_reason"], "stop");
            assert_eq!((count("prompt_eval_count"), count("eval_count")), (10, 7));
            assert_eq!(
                (count("load_duration"), count("prompt_eval_duration")),
                (1_000_000, 20_000_000)
            );
            // Six tokens after the first, twelve a second.
            assert_eq!(count("eval_duration"), 500_000_000);
            assert!(last["total_duration"].is_u64());
        }
    }

    #[test]
    fn a_generated_text_stands_in_the_response() {
        let mut reply = reply(Form::Generate);
        let lines = told(
            &mut reply,
            vec![
                ReplyEvent::Thinking("hm".into()),
                ReplyEvent::text("4"),
                end(StopCause::TokenLimit),
            ],
        );
        let texts: Vec<(&Value, &Value)> = lines
            .iter()
            .map(|line| (&line["thinking"], &line["response"]))
            .collect();
        let (empty, null) = (json!(""), Value::Null);
        assert_eq!(texts, [(&json!("hm"), &empty), (&null, &json!("4")), (&null, &empty)]);
        assert_eq!(
            (&lines[2]["done_reason"], &reply.whole()["response"]),
            (&json!("length"), &json!("4"))
        );
        assert!(lines[0].get("message").is_none());
    }

    #[test]
    fn a_call_that_was_cut_is_left_out() {
        let mut reply = reply(Form::Chat);
        let cut = CutCall {
            name: "add".into(),
            arguments: "{\"a\": 2".into(),
        };
        let lines = told(&mut reply, vec![ReplyEvent::CutCall(cut), end(StopCause::TokenLimit)]);
        assert_eq!((lines.len(), &lines[0]["done_reason"]), (1, &json!("length")));
        assert!(reply.whole()["message"].get("tool_calls").is_none());
    }

    #[test]
    fn an_error_is_a_line_of_its_own_and_waiting_an_empty_piece() {
        let mut reply = reply(Form::Chat);
        let refusal = Refusal::new(Kind::Internal, "broken");
        assert_eq!(reply.fail(&refusal, "r"), [Frame::Line(json!({"error": "broken"}))]);
        let waiting = data(&reply.keep_alive(true));
        assert_eq!(
            (&waiting[0]["message"]["content"], &waiting[0]["done"]),
            (&json!(""), &json!(false))
        );
    }

    #[test]
    fn a_model_that_was_only_loaded_says_so() {
        let body = silent(Form::Generate, "pebble", stamp(""), "load");
        assert_eq!(
            body,
            json!({"model": "pebble", "created_at": "1970-01-01T00:00:07Z", "response": "", "done": true, "done_reason": "load"})
        );
    }
}
