//! Turns the chunks of a server into the events of an answer.

use std::time::Instant;

use prompt::Piece;
use protocol::{
    Content, Done, EndedBy, EngineEvent, FinishReason, Notice, NoticeCode, Request, Thinking, Timing, ToolCall, Usage,
};

use super::calls::{PartialCall, PartialCalls};
use super::chunk::{Chunk, Counts};
use super::content_parser::{ContentParser, Parsed};

/// The state of one streamed answer.
pub(crate) struct StreamAssembler {
    request: Request,
    parser: ContentParser,
    /// True if the server separates thoughts, so that blanks before the answer are the model's separator.
    apart: bool,
    thought: bool,
    reported: bool,
    calls: PartialCalls,
    made_calls: bool,
    finish_reason: Option<String>,
    stop_text: Option<String>,
    counts: Option<Counts>,
    asked: Instant,
    first: Option<Instant>,
    last: Instant,
}

impl StreamAssembler {
    /// Nothing has come yet. `opened` says that this model's prompt opens a thought, so that its first words are one.
    pub(crate) fn new(request: &Request, opened: bool) -> Self {
        let asked = Instant::now();
        Self {
            parser: ContentParser::new(request, opened),
            apart: false,
            thought: false,
            reported: false,
            calls: PartialCalls::default(),
            made_calls: false,
            finish_reason: None,
            stop_text: None,
            counts: None,
            request: request.clone(),
            asked,
            first: None,
            last: asked,
        }
    }

    /// Takes a chunk.
    pub(crate) fn push(&mut self, chunk: Chunk) -> Vec<EngineEvent> {
        let mut events = Vec::new();
        if !chunk.reasoning.is_empty() || !chunk.content.is_empty() || !chunk.calls.is_empty() {
            self.last = Instant::now();
            self.first.get_or_insert(self.last);
        }
        if !chunk.reasoning.is_empty() {
            self.apart = true;
            self.parser.thoughts_are_apart();
            self.thinking(chunk.reasoning, &mut events);
        }
        let content = if self.apart {
            chunk.content.trim_start()
        } else {
            &chunk.content
        };
        if !content.is_empty() {
            self.apart = false;
            let parsed = self.parser.push(content);
            self.tell(parsed, &mut events);
        }
        for piece in chunk.calls {
            self.calls.push(piece);
        }
        self.finish_reason = chunk.finish_reason.or(self.finish_reason.take());
        self.stop_text = chunk.stop_text.or(self.stop_text.take());
        self.counts = chunk.usage.or(self.counts);
        events
    }

    /// True once the server has sent a finish reason.
    pub(crate) fn has_reason(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// True once a stop string has appeared, after which all text is ignored.
    pub(crate) fn stopped_by_text(&self) -> bool {
        self.parser.stopped_by_text()
    }

    /// True if the model thought although the switch was off.
    pub(crate) fn thought_while_off(&self) -> bool {
        self.reported
    }

    /// True if the prompt turned out to open a thought, false if not; `None` if that is unknown.
    pub(crate) fn opens_thought(&self) -> Option<bool> {
        self.parser.opens_thought().filter(|_| self.thought)
    }

    /// The text held back; the calls too if the answer is `complete`.
    pub(crate) fn flush(&mut self, complete: bool) -> Vec<EngineEvent> {
        let mut events = Vec::new();
        let ended = complete && self.finish_reason.as_deref() == Some("stop");
        for parsed in self.parser.finish(ended) {
            self.tell(parsed, &mut events);
        }
        for call in self.calls.take() {
            match call.object().filter(|_| complete && !call.name.is_empty()) {
                Some(arguments) if call.is_of(&self.request.tools) => {
                    self.made_calls = true;
                    events.push(called(call.name, arguments));
                }
                Some(_) => shown(&call, call.unknown(), &mut events),
                None => shown(&call, call.broken(), &mut events),
            }
        }
        events
    }

    /// The end of the answer, after [`StreamAssembler::flush`].
    pub(crate) fn done(&self, cancelled: bool) -> Done {
        let (finish_reason, ended_by) = if cancelled {
            (FinishReason::Cancelled, EndedBy::Cancelled)
        } else {
            self.end()
        };
        Done {
            finish_reason,
            ended_by,
            usage: self.counts.map(usage),
            timing: self.timing(),
            tokens: Vec::new(),
        }
    }

    fn end(&self) -> (FinishReason, EndedBy) {
        if let Some(text) = self.parser.stop_text() {
            return (FinishReason::Stop, EndedBy::StopText { text: text.into() });
        }
        let reason = self.finish_reason.as_deref().unwrap_or("stop");
        if matches!(reason, "length" | "max_tokens") {
            let made = self.counts.map(|counts| counts.completion);
            let limited = self
                .request
                .max_tokens
                .is_some_and(|most| made.is_none_or(|made| made >= most));
            let rule = if limited {
                EndedBy::TokenLimit
            } else {
                EndedBy::Endpoint { reason: reason.into() }
            };
            return (FinishReason::Length, rule);
        }
        if self.made_calls || matches!(reason, "tool_calls" | "function_call") {
            return (FinishReason::ToolCalls, EndedBy::Endpoint { reason: reason.into() });
        }
        let rule = match &self.stop_text {
            Some(text) => EndedBy::StopText { text: text.clone() },
            None => EndedBy::Endpoint { reason: reason.into() },
        };
        (FinishReason::Stop, rule)
    }

    /// Figures as seen from here: the way to the server and its queue are in the first token's time.
    fn timing(&self) -> Timing {
        let milliseconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1000.0;
        let Some(first) = self.first else {
            return Timing::default();
        };
        let after = self.last.duration_since(first).as_secs_f64();
        let made = self.counts.map_or(0, |counts| counts.completion.saturating_sub(1));
        Timing {
            load_ms: 0.0,
            first_token_ms: milliseconds(self.asked, first),
            prefill_tokens_per_second: 0.0,
            decode_tokens_per_second: if after > 0.0 { f64::from(made) / after } else { 0.0 },
        }
    }

    fn thinking(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        // The line's end after the marker, which servers pass on.
        let text = if self.thought {
            text
        } else {
            text.trim_start_matches('\n').to_owned()
        };
        if text.is_empty() {
            return;
        }
        self.thought = true;
        if self.request.thinking == Some(Thinking::Off) && !self.reported {
            self.reported = true;
            let message =
                "This endpoint did not follow the Thinking switch; ask for an answer without thinking in words.";
            events.push(notice(NoticeCode::ThinkingSwitchIgnored, message));
        }
        delta(Content::Thinking { text }, events);
    }

    fn tell(&mut self, parsed: Parsed, events: &mut Vec<EngineEvent>) {
        let mut told = Vec::new();
        for event in parsed.events {
            // Adjacent pieces are joined with earlier events, except in an answer that is replaced.
            let events = if parsed.replaces { &mut told } else { &mut *events };
            match event.piece {
                Piece::Text(text) => delta(Content::Text { text }, events),
                Piece::Thinking(text) => self.thinking(text, events),
                Piece::ToolCall { name, arguments } => {
                    self.made_calls = true;
                    events.push(called(name, arguments));
                }
                Piece::Notice(notice) => events.push(EngineEvent::Notice(notice)),
            }
        }
        if parsed.replaces {
            let (mut parts, mut others) = (Vec::new(), Vec::new());
            for event in told {
                match event {
                    EngineEvent::Delta { content, .. } if content.growing_text().is_some() => parts.push(content),
                    other => others.push(other),
                }
            }
            events.push(EngineEvent::Continued {
                parts,
                notices: Vec::new(),
                tokens: Vec::new(),
            });
            events.extend(others);
        }
    }
}

fn notice(code: NoticeCode, message: &str) -> EngineEvent {
    EngineEvent::Notice(Notice::new(code, message))
}

fn delta(content: Content, events: &mut Vec<EngineEvent>) {
    if content.growing_text() == Some("") {
        return;
    }
    let rest = match events.last_mut() {
        Some(EngineEvent::Delta { content: last, .. }) => last.coalesce(content),
        _ => Some(content),
    };
    events.extend(rest.map(|content| EngineEvent::Delta {
        content,
        tokens: Vec::new(),
        thinking_tokens: None,
    }));
}

fn called(name: String, arguments: serde_json::Value) -> EngineEvent {
    EngineEvent::Delta {
        // The server's ids may restart with every answer, and a chat may continue with another model.
        content: Content::ToolCall {
            call: ToolCall::new(name, arguments),
        },
        tokens: Vec::new(),
        thinking_tokens: None,
    }
}

/// A call that cannot be made is shown as it came.
fn shown(call: &PartialCall, notice: Notice, events: &mut Vec<EngineEvent>) {
    events.push(EngineEvent::Notice(notice));
    delta(Content::text(format!("{}({})", call.name, call.arguments)), events);
}

fn usage(counts: Counts) -> Usage {
    let cached = counts.cached.unwrap_or(0).min(counts.prompt);
    Usage {
        prompt_tokens: counts.prompt,
        cached_tokens: cached,
        prefilled_tokens: counts.prompt - cached,
        completion_tokens: counts.completion,
        thinking_tokens: counts.reasoning,
        speculation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::chunk::CallPiece;
    use protocol::{Message, ModelSource, Role};

    fn request(thinking: Option<Thinking>) -> Request {
        let model = ModelSource::Remote {
            endpoint: "lab".into(),
            name: "m".into(),
        };
        Request {
            thinking,
            ..Request::new(model, vec![Message::text(Role::User, "question")])
        }
    }

    fn content(text: &str) -> Chunk {
        Chunk {
            content: text.into(),
            ..Chunk::default()
        }
    }

    fn end(reason: &str) -> Chunk {
        Chunk {
            finish_reason: Some(reason.into()),
            ..Chunk::default()
        }
    }

    /// Thought, text and calls as a reader has them at the end, and the codes of the notices.
    fn read(assembler: &mut StreamAssembler, chunks: Vec<Chunk>) -> (String, String, Vec<ToolCall>, Vec<NoticeCode>) {
        let mut events: Vec<EngineEvent> = chunks.into_iter().flat_map(|chunk| assembler.push(chunk)).collect();
        events.extend(assembler.flush(true));
        let (mut thought, mut text, mut calls, mut notices) = (String::new(), String::new(), Vec::new(), Vec::new());
        for event in events {
            match event {
                EngineEvent::Delta {
                    content: Content::Thinking { text: more },
                    ..
                } => thought.push_str(&more),
                EngineEvent::Delta {
                    content: Content::Text { text: more },
                    ..
                } => text.push_str(&more),
                EngineEvent::Delta {
                    content: Content::ToolCall { call },
                    ..
                } => calls.push(call),
                EngineEvent::Notice(notice) => notices.push(notice.code),
                EngineEvent::Continued { parts, .. } => {
                    (thought, text) = (String::new(), String::new());
                    for part in parts {
                        match part {
                            Content::Thinking { text } => thought.push_str(&text),
                            Content::Text { text: more } => text.push_str(&more),
                            other => panic!("{other:?}"),
                        }
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        (thought, text, calls, notices)
    }

    #[test]
    fn an_answer_that_turns_out_to_begin_with_a_thought_is_told_anew() {
        let mut assembler = StreamAssembler::new(&request(Some(Thinking::Off)), false);
        assert_eq!(assembler.opens_thought(), None);
        let chunks = vec![
            content("hm, hm"),
            content("\n</think>\n\nHel"),
            content("lo"),
            end("stop"),
        ];
        let (thought, text, _, notices) = read(&mut assembler, chunks);
        assert_eq!((thought.trim(), text.trim()), ("hm, hm", "Hello"));
        assert_eq!(notices, [NoticeCode::ThinkingSwitchIgnored]);
        assert_eq!(assembler.opens_thought(), Some(true));
    }

    #[test]
    fn a_thought_apart_ends_where_the_content_begins() {
        let thought = |text: &str| Chunk {
            reasoning: text.into(),
            ..Chunk::default()
        };
        let mut assembler = StreamAssembler::new(&request(Some(Thinking::Off)), false);
        let chunks = vec![
            thought("hm"),
            thought(", hm"),
            content("\n\n"),
            content(" Hello"),
            content("\n"),
            end("stop"),
        ];
        let (heard, text, _, notices) = read(&mut assembler, chunks);
        assert_eq!((heard.as_str(), text.as_str()), ("hm, hm", "Hello\n"));
        assert_eq!(notices, [NoticeCode::ThinkingSwitchIgnored]);
        assert!(assembler.thought_while_off());
        assert_eq!(assembler.opens_thought(), Some(false));
    }

    #[test]
    fn calls_are_told_when_they_are_whole_and_of_a_known_tool_and_shown_when_they_are_not() {
        let piece = |name: &str, arguments: &str, index: u64| CallPiece {
            index: Some(index),
            id: Some(format!("call_{index}")),
            name: Some(name.into()),
            arguments: arguments.into(),
        };
        let chunk = Chunk {
            calls: vec![
                piece("f", "{\"x\": 1}", 0),
                piece("g", "{\"x\": ", 1),
                piece("h", "{\"x\": 2}", 2),
            ],
            finish_reason: Some("tool_calls".into()),
            ..Chunk::default()
        };
        let mut asked = request(None);
        asked.tools = ["f", "g"]
            .map(|name| serde_json::json!({"type": "function", "function": {"name": name}}))
            .to_vec();
        let mut assembler = StreamAssembler::new(&asked, false);
        let (_, text, calls, notices) = read(&mut assembler, vec![chunk]);
        assert_eq!(
            (calls.len(), calls[0].name.as_str(), calls[0].arguments["x"].as_i64()),
            (1, "f", Some(1))
        );
        assert!(
            calls[0].id.len() == 9 && calls[0].id.chars().all(|c| c.is_ascii_alphanumeric()),
            "{}",
            calls[0].id
        );
        assert_eq!(
            (text.as_str(), notices),
            (
                "g({\"x\": )h({\"x\": 2})",
                vec![NoticeCode::BrokenToolCall, NoticeCode::UnknownTool]
            )
        );
        assert_eq!(assembler.done(false).finish_reason, FinishReason::ToolCalls);
    }

    #[test]
    fn a_stop_text_ends_the_answer_also_if_the_server_goes_on() {
        let mut assembler = StreamAssembler::new(
            &Request {
                stop: vec!["END".into()],
                ..request(None)
            },
            false,
        );
        let (_, text, ..) = read(&mut assembler, vec![content("one E"), content("ND two")]);
        assert_eq!(text, "one ");
        assert!(assembler.stopped_by_text());
        assert_eq!(assembler.done(false).ended_by, EndedBy::StopText { text: "END".into() });
    }

    #[test]
    fn the_end_is_the_servers_word() {
        let done = |chunk: Chunk, most: Option<u32>| {
            let mut assembler = StreamAssembler::new(
                &Request {
                    max_tokens: most,
                    ..request(None)
                },
                false,
            );
            assembler.push(chunk);
            assembler.done(false)
        };
        let counted = |reason: &str, completion: u32| Chunk {
            usage: Some(Counts {
                prompt: 5,
                completion,
                cached: Some(3),
                reasoning: Some(1),
            }),
            ..end(reason)
        };
        assert_eq!(done(counted("length", 8), Some(8)).ended_by, EndedBy::TokenLimit);
        assert_eq!(
            done(counted("length", 8), None).ended_by,
            EndedBy::Endpoint {
                reason: "length".into()
            }
        );
        assert_eq!(done(end("length"), None).finish_reason, FinishReason::Length);
        assert_eq!(done(end("content_filter"), None).finish_reason, FinishReason::Stop);
        assert_eq!(done(end("stop"), None).usage, None);
        let usage = done(counted("stop", 8), None).usage.expect("it was told");
        assert_eq!(
            (usage.prompt_tokens, usage.cached_tokens, usage.prefilled_tokens),
            (5, 3, 2)
        );
        assert_eq!((usage.completion_tokens, usage.thinking_tokens), (8, Some(1)));
    }
}
