//! Where each stretch of text belongs: the state machine behind the channel parser. It sees text and markers, no tokens.

mod calls;
mod messages;
mod thoughts;
mod trial;

use std::sync::Arc;

use protocol::{Notice, NoticeCode};

use super::channel_format::{ChannelFormat, MarkerKind};
use super::event::{append, Event, Piece, Span};
use super::header::Body;
use crate::tool_calls::{OpenCall, Tools};
use calls::Call;
use trial::{Doubt, Trial};

/// Where an opening marker stood whose label or header is still being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Where a thought may open.
    Boundary,
    /// After the marker that begins a message.
    Message,
    /// After words of the answer.
    Answer,
    /// In a thought; whether it has words.
    Thought { begun: bool },
    /// After a thought that was closed; there is no opening marker.
    Repeated,
    /// At the beginning of the answer; there is no opening marker.
    Missing,
}

#[derive(Debug, Clone)]
enum State {
    Answer,
    /// After an opening marker whose label decides what it opens; `marker` is where that one begins.
    Label {
        read: Span,
        origin: Origin,
        marker: usize,
    },
    Header {
        read: Span,
        origin: Origin,
    },
    Thought {
        begun: bool,
    },
    Call(Call),
    /// After a call, words that may be that call once more, without the marker that opens it.
    Echo(Span),
    /// The beginning of an answer that may be a call without markers.
    BareCall {
        body: Span,
        open: OpenCall,
        sure: bool,
    },
}

/// The state of one answer.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    format: Arc<ChannelFormat>,
    thinking_on: bool,
    pub(super) tools: Arc<Tools>,
    state: State,
    /// Whitespace that belongs to the text only if more text follows.
    held: Span,
    /// Whether a thought may open: nothing but whitespace since the start or the last block.
    may_open: bool,
    /// Whether a block came before, so that whitespace before the first words is a boundary's.
    after_block: bool,
    /// Whether the answer has words.
    spoken: bool,
    /// Whether the answer's words so far end a line.
    line_ended: bool,
    /// A closing marker after words and the whitespace after it, which belong to the text only if more words follow.
    dangling: Span,
    /// Whether a marker that says nothing stood after words, so that whitespace belongs to the text only if more words follow.
    after_section: bool,
    /// Whether nothing was said or called since the last thought that was shown.
    last_thought: bool,
    /// Where the last marker in a thought ended, which may have closed it.
    thought_end: usize,
    /// Where the message began whose words come next, if it is not the answer's first.
    next_message: Option<usize>,
    /// Whether the next closing marker belongs to a channel whose opening one was dropped.
    unknown_open: bool,
    /// Whether a thought was closed and nothing was said since, so that another closing marker repeats that one.
    after_thought: bool,
    /// Whether a call was closed and nothing was said since.
    after_call: bool,
    /// What stood in the last call. It is shared with the states that trials keep.
    called: Arc<str>,
    /// Whether the marker that closes the answer is expected.
    wrapped: bool,
    /// Whether the message goes to somebody who calls nothing, so that calls in it are quoted.
    quoting: bool,
    /// Whether a newline right after the opening marker is still to be dropped.
    trim_newline: bool,
    reported: bool,
    /// Whether a thought was ended for the model: what it thinks from then on, and where it closes that, does not show.
    ended: bool,
    /// What is read on trial, because what follows decides whether it is a call.
    trial: Option<Box<Trial>>,
    /// What came before the trial.
    sure: Vec<Event>,
    events: Vec<Event>,
}

impl Machine {
    pub(super) fn new(format: ChannelFormat, thinking_on: bool) -> Self {
        let mut machine = Self {
            format: Arc::new(format),
            thinking_on,
            tools: Arc::default(),
            state: State::Answer,
            held: Span::default(),
            may_open: true,
            after_block: false,
            spoken: false,
            line_ended: true,
            dangling: Span::default(),
            after_section: false,
            last_thought: false,
            thought_end: 0,
            next_message: None,
            unknown_open: false,
            after_thought: false,
            after_call: false,
            called: Arc::default(),
            wrapped: false,
            quoting: false,
            trim_newline: false,
            reported: false,
            ended: false,
            trial: None,
            sure: Vec::new(),
            events: Vec::new(),
        };
        machine.state = machine.between();
        machine
    }

    /// The state between two blocks.
    fn between(&self) -> State {
        if self.format.headers.is_some() {
            let (read, origin) = (Span::default(), Origin::Boundary);
            State::Header { read, origin }
        } else {
            State::Answer
        }
    }

    /// The prompt ends with a closed thought.
    pub(super) fn begin_behind_thought(&mut self) {
        self.after_block = true;
        self.after_thought = true;
    }

    /// The prompt ends with the marker that opens the answer.
    pub(super) fn begin_wrapped(&mut self) {
        (self.after_block, self.wrapped) = (true, true);
    }

    /// The prompt ends in a message whose header is this.
    pub(super) fn begin_message(&mut self, header: &str) {
        match self.format.headers.and_then(|headers| headers.body(header)) {
            Some(Body::Thought) => self.state = State::Thought { begun: false },
            Some(Body::Answer | Body::Calls) => self.state = State::Answer,
            Some(Body::Call(_)) | None => {}
        }
    }

    /// The prompt is read: what it says was shown before.
    pub(super) fn begin_answer(&mut self, after_opening: bool) {
        self.events.clear();
        self.held.clear();
        self.trim_newline &= !after_opening;
        if let State::Label { read, .. } = &mut self.state {
            // Places count from the answer's beginning, which a label that the prompt began is not part of.
            read.at = 0;
        }
    }

    /// Whether the next text is a thought's. A label that may open one is not part of it.
    pub(super) fn in_thought(&self) -> bool {
        matches!(self.state, State::Thought { .. }) || self.may_call_in_thought()
    }

    /// Whether the thought that runs ends a line, so that its closing marker needs none before it.
    pub(super) fn thought_ends_line(&self) -> bool {
        match self.state {
            State::Thought { begun: true } => self.held.text.ends_with('\n'),
            // Its label ended one.
            State::Thought { begun: false } => self.format.label.is_some(),
            _ => false,
        }
    }

    /// No more is shown of this thought or of another one.
    pub(super) fn end_thoughts(&mut self) {
        self.ended = true;
    }

    /// What is sure by now.
    pub(super) fn take(&mut self) -> Vec<Event> {
        if self.trial.is_none() {
            self.settle();
        }
        std::mem::take(&mut self.sure)
    }

    /// Text that begins at this place of the source.
    pub(super) fn text(&mut self, text: &str, at: usize) {
        if text.is_empty() {
            return;
        }
        self.note(text, at);
        self.read_text(text, at);
        self.doubt();
    }

    /// A marker, spelled like this, that begins at this place of the source.
    pub(super) fn mark(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        self.doubt_at(mark);
        self.note(spelled, at);
        self.read_mark(mark, spelled, at);
        self.doubt();
    }

    pub(super) fn read_text(&mut self, text: &str, at: usize) {
        if text.is_empty() {
            return;
        }
        match &mut self.state {
            State::Answer => self.answer(text, at),
            State::Thought { .. } => self.thought(text, at),
            State::Call(call) => {
                call.push(text, at);
                self.end_if_over();
            }
            State::Label { read, .. } => {
                read.push(text, at);
                self.label();
            }
            State::Header { read, .. } => {
                read.push(text, at);
                self.header(text.len());
            }
            State::Echo(read) => {
                read.push(text, at);
                self.echo(text.len());
            }
            State::BareCall { body, .. } => {
                body.push(text, at);
                self.bare();
            }
        }
    }

    fn read_mark(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        if self.end_echo(mark, spelled, at) {
            return;
        }
        match self.state {
            State::Label { .. } => self.end_label(mark == MarkerKind::Close),
            State::Header { .. } => return self.mark_in_header(mark, spelled, at),
            State::BareCall { .. } if matches!(mark, MarkerKind::CallOpen | MarkerKind::Section) && !self.is_quoted() => self.end_bare(),
            State::Call(_) => return self.mark_in_call(mark, spelled, at),
            _ => {}
        }
        if matches!(self.state, State::Thought { .. }) {
            self.thought_end = at + spelled.len();
        }
        let (ends_thoughts, ends_line) = (self.format.ends_thoughts, self.thought_ends_line());
        match (&mut self.state, mark) {
            (State::Answer, MarkerKind::Open) if self.may_open => self.open(Origin::Boundary, at),
            // After words only a label shows that a marker is meant.
            (State::Answer, MarkerKind::Open) if self.format.label.is_some() => self.open(Origin::Answer, at),
            (State::Answer, MarkerKind::Close) if self.ended => self.boundary(),
            (State::Answer, MarkerKind::Close) if self.unknown_open || self.after_thought => {
                self.unknown_open = false;
                self.drop_held();
            }
            (State::Answer, MarkerKind::Close) if self.format.label.is_some() && !self.may_open => self.dangling.push(spelled, at),
            (State::Answer, MarkerKind::CallClose) if self.after_call => self.drop_held(),
            (State::Answer, MarkerKind::AnswerOpen) if self.may_open => {
                (self.wrapped, self.after_block) = (true, true);
                self.drop_held();
            }
            (State::Answer, MarkerKind::AnswerClose) if self.wrapped => {
                self.wrapped = false;
                self.boundary();
            }
            (State::Answer, MarkerKind::Section) if self.may_open => self.drop_held(),
            (State::Answer, MarkerKind::Section) => {
                let Span { text, at } = self.dangling.take();
                self.emit(Piece::Text(text), at);
                self.after_section = true;
            }
            (State::Answer, MarkerKind::CallOpen | MarkerKind::CallWord) if !self.quoting => {
                self.call_on_trial(Doubt::Unescaped, mark, spelled, at)
            }
            (State::Answer, MarkerKind::CallHead) if self.may_open || self.line_ended => {
                self.call_on_trial(Doubt::Unescaped, mark, spelled, at);
            }
            (State::Answer, MarkerKind::HeaderClose) if self.may_open => self.drop_held(),
            (State::Answer, MarkerKind::Channel) => self.open_header(Origin::Answer, spelled, at),
            (State::Thought { begun }, MarkerKind::Channel) => {
                let begun = *begun;
                self.open_header(Origin::Thought { begun }, spelled, at);
            }
            (State::Thought { begun: false }, MarkerKind::Open) => self.open(Origin::Thought { begun: false }, at),
            // After words only the label of an answer counts.
            (State::Thought { begun: true }, MarkerKind::Open) if self.format.label.is_some() => {
                self.open(Origin::Thought { begun: true }, at);
            }
            (State::Thought { .. }, MarkerKind::Close) => {
                self.boundary();
                self.after_thought = true;
            }
            (State::Thought { .. }, MarkerKind::CallOpen) if ends_thoughts => {
                self.call_on_trial(Doubt::EndsThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::CallOpen) if self.trial.is_none() => {
                self.call_on_trial(Doubt::InThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::CallHead) if self.trial.is_none() && ends_line => {
                self.call_on_trial(Doubt::InThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::AnswerOpen) if ends_thoughts => {
                self.boundary();
                self.wrapped = true;
            }
            (State::Thought { .. }, MarkerKind::Section) if ends_thoughts => {
                self.try_out(Doubt::EndsThought, spelled, at);
                self.boundary();
            }
            (State::Answer | State::Thought { .. }, MarkerKind::MessageClose) => self.boundary(),
            (State::Answer | State::Thought { .. }, MarkerKind::HeaderOpen) => self.begin_header(spelled, at),
            _ => self.read_text(spelled, at),
        }
    }

    /// The answer has ended.
    pub(super) fn finish(&mut self) {
        self.finish_state();
        self.decide();
    }

    fn finish_state(&mut self) {
        match std::mem::replace(&mut self.state, State::Answer) {
            // Whitespace after a block is a boundary's; whitespace alone is an answer of whitespace.
            State::Answer if !self.after_block => self.emit_held(),
            State::Answer => {}
            state @ State::Label { .. } => {
                self.state = state;
                self.cut_label();
            }
            State::Header { read, origin } => {
                self.cut_header(&read, origin, true);
                if !self.after_block && !matches!(self.state, State::Thought { .. }) {
                    self.emit_held();
                }
                if let State::Thought { begun } = self.state {
                    self.cut_thought(begun);
                }
            }
            State::Thought { begun } => self.cut_thought(begun),
            state @ State::Call(_) => {
                self.state = state;
                self.end_call(None);
            }
            State::Echo(read) => self.say(&read.text, read.at),
            state @ State::BareCall { .. } => {
                self.state = state;
                self.end_bare();
            }
        }
    }

    fn answer(&mut self, text: &str, at: usize) {
        let words = text.trim_start();
        if self.format.bare_calls && self.may_open && !self.spoken && words.starts_with(['{', '[']) {
            let blank = text.len() - words.len();
            self.hold(&text[..blank], at);
            let body = Span::new(words, at + blank);
            let (open, sure) = (OpenCall::new(), false);
            self.state = State::BareCall { body, open, sure };
            return self.bare();
        }
        if let Some(origin) = self.may_be_label(words) {
            let marker = at + text.len() - words.len();
            self.hold(&text[..marker - at], at);
            let read = Span::new(words, marker);
            self.state = State::Label { read, origin, marker };
            return self.label();
        }
        if self.may_be_echo(words) {
            let blank = text.len() - words.len();
            self.hold(&text[..blank], at);
            self.state = State::Echo(Span::new(words, at + blank));
            return;
        }
        self.say(text, at);
    }

    /// Text that is the answer's, whatever it looks like.
    fn say(&mut self, text: &str, at: usize) {
        if !self.may_open {
            return self.speak(text, at);
        }
        let words = text.trim_start();
        let blank = text.len() - words.len();
        self.hold(&text[..blank], at);
        if !words.is_empty() {
            self.begin_words();
            self.speak(words, at + blank);
        }
    }

    fn hold(&mut self, blank: &str, at: usize) {
        if !blank.is_empty() {
            self.held.push(blank, at);
        }
    }

    fn begin_words(&mut self) {
        let message = self.next_message.take().filter(|_| self.spoken && !self.line_ended);
        if let Some(at) = message {
            // The words of two messages do not run together.
            self.held.clear();
            let source = at..at;
            let piece = Piece::Text("\n\n".into());
            self.events.push(Event { piece, source });
        }
        // Between two stretches of an answer whitespace stays, so that their words do not run together.
        if self.after_block && !self.spoken {
            self.held.clear();
        }
        self.emit_held();
        (self.may_open, self.spoken) = (false, true);
        (self.after_thought, self.after_call) = (false, false);
    }

    fn speak(&mut self, text: &str, at: usize) {
        if self.after_section || !self.dangling.text.is_empty() {
            self.dangling.push(text, at);
            if text.trim().is_empty() {
                return;
            }
            self.after_section = false;
            let Span { text, at } = self.dangling.take();
            return self.speak(&text, at);
        }
        self.last_thought = false;
        self.line_ended = text.ends_with('\n');
        self.emit(Piece::Text(text.to_owned()), at);
    }

    fn emit_held(&mut self) {
        let held = self.held.take();
        self.emit(Piece::Text(held.text), held.at);
    }

    /// Whitespace before a marker that was dropped where nothing but whitespace stood is the boundary's.
    fn drop_held(&mut self) {
        if self.may_open {
            self.held.clear();
        }
    }

    fn boundary(&mut self) {
        self.held.clear();
        self.dangling.clear();
        (self.may_open, self.after_block) = (true, true);
        (self.unknown_open, self.after_thought, self.after_call, self.after_section) = (false, false, false, false);
        (self.next_message, self.quoting) = (None, false);
        self.state = self.between();
    }

    fn notice(&mut self, code: NoticeCode, message: &str, at: usize) {
        let piece = Piece::Notice(Notice::new(code, message));
        self.events.push(Event { piece, source: at..at });
    }

    fn emit(&mut self, piece: Piece, at: usize) {
        if let Piece::Text(text) | Piece::Thinking(text) = &piece {
            let source = at..at + text.len();
            append(&mut self.events, Event { piece, source });
        }
    }
}
