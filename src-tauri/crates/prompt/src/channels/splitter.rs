//! The parser of text whose markers may stand in it as text.

use std::sync::Arc;

use protocol::Argument;

use super::event::{append, Event, Piece, SourceMap};
use super::formats::{self, ChannelFormat, Marker, MarkerKind};
use super::machine::Machine;
use super::scanner::{Scanned, Scanner};
use super::stop_strings::StopStrings;
use crate::tool_calls::Tools;

/// Separates reasoning, answer and tool calls in a text that arrives in pieces of any size.
#[derive(Debug)]
pub struct Splitter {
    pub(super) format: ChannelFormat,
    pub(super) scanner: Scanner,
    pub(super) machine: Machine,
    stop_text: StopStrings,
    /// Searches for stop strings while speculating.
    lookahead: Option<Lookahead>,
    places: SourceMap,
}

/// Searches for stop strings in speculative text.
#[derive(Debug)]
struct Lookahead {
    stop_text: StopStrings,
    /// The number of events examined so far.
    seen: usize,
    /// The end of the text examined so far.
    at: usize,
}

impl Lookahead {
    /// True if a stop string appears in these events, of which the last one may grow.
    fn finds(&mut self, events: &[Event]) -> bool {
        for event in events.get(self.seen..).unwrap_or_default() {
            if let Piece::Text(text) = &event.piece {
                let known = self.at.saturating_sub(event.source.start).min(text.len());
                self.stop_text.push(&text[known..]);
            } else {
                self.stop_text.flush();
            }
            self.at = event.source.end;
        }
        self.seen = events.len().saturating_sub(1);
        self.stop_text.matched()
    }
}

impl Splitter {
    /// A splitter for the format of this name, see [`Splitter::names`]; every marker is looked for in the text.
    /// `opened` says that the prompt opened a thought. `None` for a name that is not known.
    pub fn named(name: &str, opened: bool, thinking_on: bool) -> Option<Self> {
        let mut splitter = Self::new(ChannelFormat::named(name)?, thinking_on, &[]);
        if opened {
            splitter.begin_thought();
        }
        Some(splitter)
    }

    /// The names of the formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        formats::names()
    }

    /// The markers of a format, as they are spelled.
    pub fn markers(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.format.markers.iter().map(|marker| marker.text)
    }

    /// Tells which tools there are, in the OpenAI form, so that arguments get the types of their schemas.
    #[must_use]
    pub fn with_tools(mut self, tools: &[serde_json::Value]) -> Self {
        self.machine.tools = Arc::new(Tools::new(tools));
        self
    }

    /// Texts that end the answer where they first appear in it; they are cut off.
    #[must_use]
    pub fn with_stop_texts(mut self, stop_texts: &[String]) -> Self {
        self.stop_text = StopStrings::new(stop_texts);
        self
    }

    pub(super) fn new(format: ChannelFormat, thinking_on: bool, stop_texts: &[String]) -> Self {
        Self {
            scanner: Scanner::new(&format.markers),
            machine: Machine::new(format.clone(), thinking_on),
            stop_text: StopStrings::new(stop_texts),
            lookahead: None,
            places: SourceMap::default(),
            format,
        }
    }

    /// The answer goes on in a thought that nothing was said in.
    pub(super) fn begin_thought(&mut self) {
        if let Some(headers) = self.format.headers {
            self.machine.begin_message(headers.thought());
        } else if let Some(open) = self.format.marker(MarkerKind::Open) {
            self.machine.mark(MarkerKind::Open, open.text, 0);
            self.machine.text(&self.format.label_line(), 0);
            self.machine.begin_answer(true);
        }
    }

    /// Takes more of the text.
    pub fn push(&mut self, text: &str) -> Vec<Event> {
        if self.stop_text.matched() {
            return Vec::new();
        }
        self.scan(text);
        self.out()
    }

    /// Ends the text: everything held back comes out, what is open is closed.
    pub fn finish(&mut self) -> Vec<Event> {
        if self.stop_text.matched() {
            return Vec::new();
        }
        self.flush();
        self.machine.finish();
        let mut events = self.out();
        let rest = self.stop_text.flush();
        self.places.leave(&rest, &mut events);
        events
    }

    /// True once a stop string has ended the answer. No more events follow; generation should end.
    pub fn stopped_by_text(&self) -> bool {
        self.stop_text.matched()
    }

    /// The stop text that has ended the answer.
    pub fn stop_text(&self) -> Option<&str> {
        self.stop_text.found()
    }

    pub(super) fn scan(&mut self, text: &str) {
        let machine = &mut self.machine;
        self.scanner.push(text, |found| match found {
            Scanned::Text(text, at) => machine.text(text, at),
            Scanned::Marker(mark, spelled, at) => machine.mark(mark, spelled, at),
        });
    }

    /// A marker that came as a token.
    pub(super) fn mark(&mut self, marker: &Marker) {
        self.flush();
        let at = self.scanner.pass(marker.text);
        self.machine.mark(marker.kind, marker.text, at);
    }

    /// Text that is the answer's, whatever it looks like.
    pub(super) fn say(&mut self, text: &str) -> Vec<Event> {
        let at = self.scanner.pass(text);
        let mut out = Vec::new();
        let event = Event {
            piece: Piece::Text(text.to_owned()),
            source: at..at + text.len(),
        };
        append(&mut out, event);
        out
    }

    fn flush(&mut self) {
        let (held, at) = self.scanner.flush();
        self.machine.text(&held, at);
    }

    /// Decides the open speculation if a stop string has appeared in it, because no more evidence follows.
    fn look_ahead(&mut self) {
        let Some(events) = self.machine.speculative_events() else {
            self.lookahead = None;
            return;
        };
        let lookahead = self.lookahead.get_or_insert_with(|| Lookahead {
            stop_text: self.stop_text.clone(),
            seen: 0,
            at: 0,
        });
        if lookahead.finds(events) {
            self.lookahead = None;
            self.machine.decide();
        }
    }

    pub(super) fn out(&mut self) -> Vec<Event> {
        if self.stop_text.is_empty() {
            return self.machine.take();
        }
        self.look_ahead();
        let mut out = Vec::new();
        for event in self.machine.take() {
            if self.stop_text.matched() {
                // The text of a call that is none may be shown without its markers, also if it was cut.
                if tells_of(&event.piece, out.last()) {
                    append(&mut out, event);
                }
                break;
            }
            if let Piece::Text(text) = &event.piece {
                self.places.enter(text.len(), event.source);
                let shown = self.stop_text.push(text);
                self.places.leave(&shown, &mut out);
            } else {
                // A stop text does not reach across a thought or a call.
                let rest = self.stop_text.flush();
                self.places.leave(&rest, &mut out);
                append(&mut out, event);
            }
        }
        out
    }
}

/// True if the notice reports a broken call in this text.
fn tells_of(piece: &Piece, shown: Option<&Event>) -> bool {
    let (Piece::Notice(notice), Some(Piece::Text(text))) = (piece, shown.map(|event| &event.piece)) else {
        return false;
    };
    let Some(Argument::Text(opening)) = notice.arguments.get("opening") else {
        return false;
    };
    notice.code.shows_a_call() && !opening.is_empty() && text.contains(opening.as_str())
}
