//! The parser of one answer, fed with token ids.

use std::sync::Arc;

use serde_json::Value;

use super::end_of_thinking::EndOfThinking;
use super::event::{Event, Piece};
use super::formats::{ChannelFormat, Marker, MarkerKind};
use super::splitter::Splitter;
use crate::prompt::Prompt;
use crate::tokenizer::{Detokenizer, Tokenizer};

/// The parser of one answer. Every generated id but the stop token goes through [`push`](Self::push), then
/// [`finish`](Self::finish) is called once.
#[derive(Debug)]
pub struct ChannelParser {
    splitter: Splitter,
    detokenizer: Detokenizer,
    thinking_tokens: u32,
    /// True while the ids of the end of a thought are pushed.
    terminating: bool,
    /// Ids since the scanner began to hold back what may become a marker.
    held_ids: u32,
    /// Ids of text that is a thought unless it turns out to be a call.
    speculative_ids: u32,
    /// True once all further ids are the answer's text, whatever they spell.
    verbatim: bool,
}

/// The place in an answer to which the next id belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParserState {
    /// A thought.
    Thought,
    /// The answer's text; a block may open here if nothing was said yet.
    Answer,
    /// A call, a label, a header, or a marker whose spelling has begun.
    InBlock,
}

impl ChannelParser {
    pub(crate) fn new(
        tokenizer: Arc<Tokenizer>,
        format: ChannelFormat,
        prompt: &Prompt,
        thinking_on: bool,
        stop_texts: &[String],
    ) -> Self {
        let mut parser = Self {
            detokenizer: Detokenizer::new(tokenizer.clone()),
            splitter: Splitter::new(format, thinking_on, stop_texts),
            thinking_tokens: 0,
            terminating: false,
            held_ids: 0,
            speculative_ids: 0,
            verbatim: false,
        };
        parser.begin(&tokenizer, prompt);
        parser
    }

    /// Tells which tools the model was offered, in the OpenAI form, so that arguments get the types of their schemas.
    #[must_use]
    pub fn with_tools(mut self, tools: &[Value]) -> Self {
        self.splitter = self.splitter.with_tools(tools);
        self
    }

    /// Takes over what the prompt left: a thought, an answer or a message it opened, or a thought it opened and closed.
    fn begin(&mut self, tokenizer: &Arc<Tokenizer>, prompt: &Prompt) {
        let format = &self.splitter.format;
        if format.headers.is_some() {
            return self.begin_message(tokenizer, prompt);
        }
        let kinds = [
            MarkerKind::Open,
            MarkerKind::Close,
            MarkerKind::MessageClose,
            MarkerKind::AnswerOpen,
        ];
        let markers: Vec<Marker> = kinds.iter().filter_map(|kind| format.marker(*kind).copied()).collect();
        let Some((last, rest)) = last_marker(&markers, tokenizer, prompt) else {
            return;
        };
        let machine = &mut self.splitter.machine;
        match last {
            MarkerKind::Open => {
                machine.mark(MarkerKind::Open, "", 0);
                machine.text(&rest, 0);
                machine.begin_answer(!rest.is_empty());
            }
            _ if !rest.trim().is_empty() => {}
            MarkerKind::AnswerOpen => machine.begin_wrapped(),
            _ => machine.begin_after_thinking(),
        }
    }

    fn begin_message(&mut self, tokenizer: &Arc<Tokenizer>, prompt: &Prompt) {
        let id = |mark| self.splitter.format.marker(mark).and_then(|marker| marker.id);
        let last = |mark| prompt.ids.iter().rposition(|known| Some(*known) == id(mark));
        let (Some(start), Some(message)) = (last(MarkerKind::HeaderOpen), last(MarkerKind::HeaderClose)) else {
            return;
        };
        if message < start || last(MarkerKind::MessageClose).is_some_and(|end| end > message) {
            return;
        }
        let header = tokenizer.decode(&prompt.ids[start + 1..message]);
        let rest = tokenizer.decode(&prompt.ids[message + 1..]);
        let machine = &mut self.splitter.machine;
        machine.begin_message(&header);
        machine.text(&rest, 0);
        machine.begin_answer(!rest.is_empty());
    }

    /// Takes one generated id. Never called with a stop token.
    pub fn push(&mut self, id: u32) -> Vec<Piece> {
        pieces(self.push_event(id))
    }

    /// The same, with the place of every piece in the text that the ids are.
    pub fn push_event(&mut self, id: u32) -> Vec<Event> {
        if self.splitter.stopped_by_text() {
            return Vec::new();
        }
        if self.verbatim {
            let text = self.detokenizer.push(id);
            return self.splitter.say(&text);
        }
        let was_inside = self.splitter.machine.in_thought();
        let mut markers = self.splitter.format.markers.iter();
        if let Some(marker) = markers.find(|marker| marker.id == Some(id)).copied() {
            let broken = self.detokenizer.finish();
            self.splitter.scan(&broken);
            self.splitter.mark(&marker);
        } else {
            let text = self.detokenizer.push(id);
            self.splitter.scan(&text);
        }
        self.count(was_inside);
        self.splitter.out()
    }

    /// Ends the answer: everything held back comes out, what is open is closed.
    pub fn finish(&mut self) -> Vec<Piece> {
        pieces(self.finish_events())
    }

    /// The same, with the place of every piece in the text that the ids are.
    pub fn finish_events(&mut self) -> Vec<Event> {
        let broken = self.detokenizer.finish();
        if self.verbatim {
            return self.splitter.say(&broken);
        }
        if !self.splitter.stopped_by_text() {
            self.splitter.scan(&broken);
        }
        let events = self.splitter.finish();
        if events.iter().any(|event| matches!(event.piece, Piece::ToolCall { .. })) {
            self.thinking_tokens -= self.speculative_ids.min(self.thinking_tokens);
        }
        events
    }

    /// Ids between the markers of thoughts so far, suppressed ones included; neither a label nor what ended a thought
    /// for the model counts.
    pub fn thinking_tokens(&self) -> u32 {
        self.thinking_tokens
    }

    /// True if the next id continues a thought, shown or hidden.
    pub fn is_thinking(&self) -> bool {
        self.splitter.machine.in_thought() && !self.splitter.stopped_by_text()
    }

    /// The place to which the next id belongs.
    pub fn state(&self) -> ParserState {
        match () {
            () if self.verbatim => ParserState::Answer,
            () if self.is_thinking() => ParserState::Thought,
            () if self.splitter.machine.in_answer() && !self.splitter.scanner.holds() => ParserState::Answer,
            () => ParserState::InBlock,
        }
    }

    /// The ids that open a thought where the answer may begin, if thoughts show.
    pub fn thought_openers(&self) -> impl Iterator<Item = u32> + '_ {
        let shows = self.splitter.machine.shows_thoughts();
        let opening = self.splitter.format.markers_of(&[MarkerKind::Open]);
        opening.filter_map(move |marker| marker.id.filter(|_| shows))
    }

    /// The ids that open something else there: a call, if tools were offered, and the answer, if the model wraps it.
    pub fn openers(&self) -> impl Iterator<Item = u32> + '_ {
        let kinds: &'static [MarkerKind] = match self.splitter.machine.tools.any() {
            true => &[MarkerKind::CallOpen, MarkerKind::Section, MarkerKind::AnswerOpen],
            false => &[MarkerKind::AnswerOpen],
        };
        self.splitter.format.markers_of(kinds).filter_map(|marker| marker.id)
    }

    /// From here on everything is the answer's text: what is spelled in it opens neither a thought nor a call. Stop
    /// texts are not looked for any more.
    pub fn begin_verbatim(&mut self) {
        self.verbatim = true;
    }

    /// The ids that would end the thought here. Blanks that the thought ends with, and those that would stand after the
    /// beginning of a character, are left out.
    pub fn end_of_thinking_here<'a>(&self, terminator: &'a EndOfThinking) -> &'a [u32] {
        if self.detokenizer.is_in_character() || self.splitter.machine.thought_ends_line() {
            terminator.bare()
        } else {
            terminator.ids()
        }
    }

    /// Ends the thought for the model: the ids of [`end_of_thinking_here`](Self::end_of_thinking_here) are pushed next.
    /// A character or marker that was begun is dropped, and neither another closing marker nor another thought shows
    /// from now on. After a thought, only the latter.
    pub fn end_thinking(&mut self) {
        if self.is_thinking() {
            self.detokenizer.finish();
            self.splitter.scanner.drop_held();
            self.terminating = true;
        }
        self.splitter.machine.end_thoughts();
    }

    /// True once a stop string has ended the answer. No more events follow; generation should end.
    pub fn stopped_by_text(&self) -> bool {
        self.splitter.stopped_by_text()
    }

    /// The stop text that has ended the answer.
    pub fn stop_text(&self) -> Option<&str> {
        self.splitter.stop_text()
    }

    fn count(&mut self, was_inside: bool) {
        match (was_inside, self.splitter.machine.in_thought()) {
            (true, true) if !self.terminating => self.thinking_tokens += 1,
            // The ids of a closing marker that is spelled out were taken for the thought's.
            (true, false) if !self.terminating => self.thinking_tokens -= self.held_ids.min(self.thinking_tokens),
            (true, true) => {}
            (_, inside) => self.terminating &= inside,
        }
        self.speculative_ids = match (self.splitter.machine.may_call_in_thought(), self.speculative_ids) {
            (false, _) => 0,
            // Its marker may have been held back.
            (true, 0) => self.held_ids + 1,
            (true, ids) => ids + 1,
        };
        self.held_ids = match self.splitter.scanner.holds() {
            true => self.held_ids + 1,
            false => 0,
        };
    }
}

fn pieces(events: Vec<Event>) -> Vec<Piece> {
    events.into_iter().map(|event| event.piece).collect()
}

/// The marker that a prompt ends with and what stands after it.
fn last_marker(markers: &[Marker], tokenizer: &Arc<Tokenizer>, prompt: &Prompt) -> Option<(MarkerKind, String)> {
    if markers.iter().any(|marker| marker.id.is_none()) {
        let text = prompt.text.trim_end();
        let last = markers.iter().find(|marker| text.ends_with(marker.text))?;
        return Some((last.kind, prompt.text[text.len()..].to_owned()));
    }
    let of = |id: &u32| markers.iter().find(|marker| marker.id == Some(*id));
    let at = prompt.ids.iter().rposition(|id| of(id).is_some())?;
    let rest = &prompt.ids[at + 1..];
    // Another control token means that the marker was an earlier turn's.
    let earlier = rest.iter().any(|id| tokenizer.is_control(*id));
    (!earlier).then(|| Some((of(&prompt.ids[at])?.kind, tokenizer.decode(rest))))?
}
