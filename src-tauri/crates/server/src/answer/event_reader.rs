//! Translates engine events: the same for every surface, streamed or not.

use protocol::{Content, Done, EndedBy, EngineEvent, FinishReason, TokenLogprobs, Usage};
use serde_json::Value;

use crate::answer::broken_call::BrokenCall;
use crate::answer::reply_event::{End, ReplyEvent, ReplyFilter, StopCause};
use crate::figures::tokens::Tokens;
use crate::http::error_body::{Kind, Refusal};

/// Translates the events of one job.
#[derive(Debug)]
pub(crate) struct EventReader {
    filter: ReplyFilter,
    /// Tokens of an answer that is continued, which the client sent.
    prefix: u32,
    /// Tokens generated so far, for an engine without usage at the end.
    written: u32,
    called: bool,
    done: bool,
    /// The log probabilities of the next text.
    logprobs: Vec<TokenLogprobs>,
    broken_call: BrokenCall,
}

/// The outcome of an event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct EventOutcome {
    /// The events for the client, in order.
    pub(crate) events: Vec<ReplyEvent>,
    /// The number of new tokens.
    pub(crate) tokens: u32,
    /// True if the job should be cancelled, because nothing more is reported.
    pub(crate) cancel_job: bool,
}

impl EventOutcome {
    /// This event, which is none of the engine.
    pub(crate) fn of(event: ReplyEvent) -> Self {
        Self {
            events: vec![event],
            ..Self::default()
        }
    }
}

impl EventReader {
    /// A reader of the answer to a request that names these tools.
    pub(crate) fn new(filter: ReplyFilter, tools: &[Value]) -> Self {
        Self {
            filter,
            prefix: 0,
            written: 0,
            called: false,
            done: false,
            logprobs: Vec::new(),
            broken_call: BrokenCall::new(tools),
        }
    }

    /// True once a call was reported and no other may be.
    fn one_is_enough(&self) -> bool {
        self.called && !self.filter.parallel_calls
    }

    /// Reads one event.
    ///
    /// # Errors
    /// If the job failed, or was stopped on this computer.
    pub(crate) fn read(&mut self, event: EngineEvent) -> Result<EventOutcome, Refusal> {
        let count = |tokens: Vec<u32>| u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let mut outcome = EventOutcome::default();
        match event {
            EngineEvent::Continued { tokens, .. } => self.prefix = count(tokens),
            EngineEvent::Delta { content, tokens, .. } => {
                outcome.tokens = count(tokens);
                self.written = self.written.saturating_add(outcome.tokens);
                outcome.events = self.say(content);
                outcome.cancel_job = self.one_is_enough() && !std::mem::replace(&mut self.done, true);
            }
            EngineEvent::Logprobs(logprobs) => self.logprobs = logprobs,
            EngineEvent::Notice(notice) if notice.code.shows_a_call() => {
                self.broken_call.announce(&notice);
            }
            EngineEvent::Done(done) => {
                let end = self.end(done)?;
                let broken = self.broken_call.tell(end.is_cut()).filter(|_| !self.one_is_enough());
                outcome.events = broken.into_iter().chain([ReplyEvent::End(end)]).collect();
            }
            EngineEvent::Failed(error) => return Err(error.into()),
            EngineEvent::Progress { .. }
            | EngineEvent::Waiting { .. }
            | EngineEvent::Started { .. }
            | EngineEvent::ThinkingEnded
            | EngineEvent::Notice(_) => {}
        }
        Ok(outcome)
    }

    fn say(&mut self, content: Content) -> Vec<ReplyEvent> {
        let logprobs = std::mem::take(&mut self.logprobs);
        if self.one_is_enough() {
            return Vec::new();
        }
        let says_something = content.as_text().is_none_or(|text| !text.is_empty());
        let before = says_something.then(|| self.broken_call.flush()).flatten();
        before.into_iter().chain(self.piece(content, logprobs)).collect()
    }

    fn piece(&mut self, content: Content, logprobs: Vec<TokenLogprobs>) -> Option<ReplyEvent> {
        match content {
            Content::Thinking { text } => {
                (self.filter.thoughts && !text.is_empty()).then_some(ReplyEvent::Thinking(text))
            }
            Content::ToolCall { call } => {
                self.called = true;
                Some(ReplyEvent::Call(call))
            }
            other => {
                let text = other.as_text()?;
                let text = self.broken_call.set_aside(&text);
                (!text.is_empty()).then(|| ReplyEvent::Text {
                    logprobs: of_text(logprobs, &text),
                    text,
                })
            }
        }
    }

    fn end(&self, done: Done) -> Result<End, Refusal> {
        let reason = match (done.finish_reason, done.ended_by) {
            (FinishReason::ToolCalls, _) => StopCause::ToolCalls,
            // Cancelled by us, after its only call.
            (FinishReason::Cancelled, _) if self.one_is_enough() => StopCause::ToolCalls,
            (FinishReason::Cancelled, _) => {
                let message = "the answer was stopped on the computer that gives it";
                return Err(Refusal::new(Kind::Unavailable, message));
            }
            (_, EndedBy::StopText { text }) => StopCause::StopText(text),
            (FinishReason::Length, EndedBy::Context) => StopCause::Context,
            (FinishReason::Length, _) => StopCause::TokenLimit,
            (FinishReason::Stop, _) => StopCause::Stop,
        };
        let usage = done.usage.unwrap_or(Usage {
            completion_tokens: self.written + self.prefix,
            ..Usage::default()
        });
        Ok(End {
            reason,
            usage: Tokens {
                // The prefix of an answer that a client sends counts as prompt.
                prompt: usage.prompt_tokens + self.prefix,
                cached: usage.cached_tokens,
                completion: usage.completion_tokens.saturating_sub(self.prefix),
                reasoning: usage.thinking_tokens.unwrap_or(0),
            },
            timing: done.timing,
        })
    }
}

/// Drops the tokens of markers before the text, such as the end of thinking.
fn of_text(mut logprobs: Vec<TokenLogprobs>, text: &str) -> Vec<TokenLogprobs> {
    let spelled: usize = logprobs.iter().map(|token| token.bytes.len()).sum();
    let mut before = spelled.saturating_sub(text.len());
    let markers = logprobs.iter().position(|token| {
        let whole = before == 0;
        before = before.saturating_sub(token.bytes.len());
        whole
    });
    let rest: Vec<u8> = logprobs[markers.unwrap_or(0)..]
        .iter()
        .flat_map(|token| token.bytes.iter().copied())
        .collect();
    // Held back or cut text spells something else; then every token is reported.
    if rest == text.as_bytes() {
        logprobs.drain(..markers.unwrap_or(0));
    }
    logprobs
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{Error, ErrorCode, Notice, NoticeCode, Timing, ToolCall};
    use serde_json::json;

    use super::*;

    pub(crate) fn done(finish_reason: FinishReason, ended_by: EndedBy) -> EngineEvent {
        EngineEvent::Done(Done {
            finish_reason,
            ended_by,
            usage: Some(Usage {
                prompt_tokens: 10,
                cached_tokens: 4,
                prefilled_tokens: 6,
                completion_tokens: 7,
                thinking_tokens: Some(3),
                speculation: None,
            }),
            timing: Timing::default(),
            tokens: Vec::new(),
        })
    }

    fn delta(content: Content) -> EngineEvent {
        EngineEvent::Delta {
            content,
            tokens: vec![1, 2],
            thinking_tokens: Some(0),
        }
    }

    fn call(name: &str) -> Content {
        Content::ToolCall {
            call: ToolCall {
                id: "abcdefghi".into(),
                name: name.into(),
                arguments: json!({}),
            },
        }
    }

    const ALL: ReplyFilter = ReplyFilter {
        thoughts: true,
        parallel_calls: true,
    };

    fn said(filter: ReplyFilter, events: Vec<EngineEvent>) -> Vec<ReplyEvent> {
        let mut reader = EventReader::new(filter, &[]);
        events
            .into_iter()
            .flat_map(|event| reader.read(event).unwrap().events)
            .collect()
    }

    #[test]
    fn a_thought_that_was_switched_off_is_left_out() {
        let events = || vec![delta(Content::thinking("hm")), delta(Content::text("4"))];
        assert_eq!(
            said(ALL, events()),
            [ReplyEvent::Thinking("hm".into()), ReplyEvent::text("4")]
        );
        let off = ReplyFilter { thoughts: false, ..ALL };
        assert_eq!(said(off, events()), [ReplyEvent::text("4")]);
    }

    #[test]
    fn a_marker_before_the_text_is_none_of_its_tokens() {
        let token = |text: &str| TokenLogprobs {
            token: 1,
            bytes: text.into(),
            logprob: -0.5,
            top: Vec::new(),
        };
        for (tokens, text, expected) in [
            (vec!["</think>", "\n\n", "4", "2"], "42", vec!["4", "2"]),
            (vec!["4", "2"], "42", vec!["4", "2"]),
            (vec!["4", "2x"], "42", vec!["4", "2x"]),
            (vec![], "42", vec![]),
        ] {
            let mut reader = EventReader::new(ALL, &[]);
            reader
                .read(EngineEvent::Logprobs(tokens.into_iter().map(token).collect()))
                .unwrap();
            let said = reader.read(delta(Content::text(text))).unwrap().events;
            let [ReplyEvent::Text { logprobs, .. }] = said.as_slice() else {
                panic!("no text")
            };
            assert_eq!(*logprobs, expected.into_iter().map(token).collect::<Vec<_>>());
        }
    }

    #[test]
    fn broken_calls_are_told_in_their_order() {
        let shown = |code| EngineEvent::Notice(Notice::new(code, "shown").with("opening", "<call>"));
        let events = vec![
            shown(NoticeCode::BrokenToolCall),
            delta(Content::text("<call>a")),
            shown(NoticeCode::UnknownTool),
            delta(Content::text("<call>b")),
            delta(call("c")),
            delta(Content::text("d")),
        ];
        let told: Vec<Option<String>> = said(ALL, events)
            .into_iter()
            .map(|said| match said {
                ReplyEvent::Text { text, .. } => Some(text),
                _ => None,
            })
            .collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(told, [text("a"), text("b"), None, text("d")]);
    }

    #[test]
    fn only_one_call_is_told_if_only_one_may_be_made() {
        let one = ReplyFilter {
            parallel_calls: false,
            ..ALL
        };
        let mut reader = EventReader::new(one, &[]);
        let first = reader.read(delta(call("a"))).unwrap();
        assert!(first.cancel_job && matches!(first.events[..], [ReplyEvent::Call(_)]));
        let second = reader.read(delta(call("b"))).unwrap();
        assert!(!second.cancel_job && second.events.is_empty());
        let ended = reader
            .read(done(FinishReason::Cancelled, EndedBy::Cancelled))
            .unwrap()
            .events;
        let [ReplyEvent::End(end)] = ended.as_slice() else {
            panic!("no end")
        };
        assert_eq!(end.reason, StopCause::ToolCalls);
        assert_eq!(said(ALL, vec![delta(call("a")), delta(call("b"))]).len(), 2);
    }

    #[test]
    fn every_end_has_its_reason() {
        let stop_token = EndedBy::StopToken {
            token: 2,
            text: "</s>".into(),
            sources: Vec::new(),
        };
        let text = || EndedBy::StopText { text: "END".into() };
        for (finish, ended_by, reason) in [
            (FinishReason::Stop, stop_token.clone(), StopCause::Stop),
            (FinishReason::Stop, text(), StopCause::StopText("END".into())),
            (FinishReason::ToolCalls, stop_token, StopCause::ToolCalls),
            (FinishReason::Length, EndedBy::TokenLimit, StopCause::TokenLimit),
            (FinishReason::Length, EndedBy::Repetition, StopCause::TokenLimit),
            (FinishReason::Length, EndedBy::Context, StopCause::Context),
        ] {
            let end = said(ALL, vec![done(finish, ended_by)]);
            let [ReplyEvent::End(end)] = end.as_slice() else {
                panic!("{end:?}")
            };
            assert_eq!(end.reason, reason);
        }
        let stopped = EventReader::new(ALL, &[]).read(done(FinishReason::Cancelled, EndedBy::Cancelled));
        assert_eq!(stopped.unwrap_err().kind, Kind::Unavailable);
        let failed = EventReader::new(ALL, &[]).read(EngineEvent::Failed(Error::new(ErrorCode::Engine, "broken")));
        assert_eq!(failed.unwrap_err().kind, Kind::Internal);
    }

    #[test]
    fn the_beginning_of_an_answer_that_was_sent_counts_as_prompt() {
        let continued = EngineEvent::Continued {
            parts: vec![Content::text("The")],
            notices: Vec::new(),
            tokens: vec![1, 2],
        };
        let said = said(ALL, vec![continued, done(FinishReason::Length, EndedBy::TokenLimit)]);
        let [ReplyEvent::End(end)] = said.as_slice() else {
            panic!("{said:?}")
        };
        let expected = Tokens {
            prompt: 12,
            cached: 4,
            completion: 5,
            reasoning: 3,
        };
        assert_eq!(end.usage, expected);
    }
}
