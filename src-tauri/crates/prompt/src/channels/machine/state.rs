//! The state of one answer.

use std::ops::Range;
use std::sync::Arc;

use protocol::{Notice, NoticeCode};

use super::call::ToolCallBlock;
use crate::channels::event::{append, Event, Piece, Span};
use crate::channels::formats::{Body, ChannelFormat};
use crate::tool_calls::{OpenCall, Tools};

/// The place of an opening marker whose label or header is still being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// At a place where a thought may open.
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

#[derive(Debug, Clone, Default)]
pub(super) enum State {
    #[default]
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
    Call(ToolCallBlock),
    /// After a call, words that may be that call once more, without the marker that opens it.
    Echo(Span),
    /// The beginning of an answer that may be a call without markers.
    BareCall {
        body: Span,
        open: OpenCall,
        certain: bool,
    },
}

/// The reason why a call may not be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ambiguity {
    /// It stands in a thought; it is one if the thought is never closed and it is the first or the last thing in it.
    InThought,
    /// It ends a thought; unless the thought is closed after it.
    EndsThought,
    /// It begins with the label of a thought that nothing opened; a thought if it is closed.
    Unopened,
    /// Its texts cannot escape what ends them; unless closing tags follow that belong to nothing.
    Unescaped,
}

/// An open speculation: the state before it, and the source read since.
#[derive(Debug, Clone)]
pub(super) struct Speculation {
    pub(super) ambiguity: Ambiguity,
    pub(super) before: Machine,
    pub(super) raw: Span,
    /// True if nothing was thought before the call, so that its thought was skipped.
    pub(super) first: bool,
    /// True if the closing marker that was seen may be inside a string argument.
    pub(super) uncertain: bool,
    /// True if the form of a call cannot escape the end of a string.
    pub(super) unescaped: bool,
    /// True if a call had its markers, so that one without them may be quoted in a string.
    pub(super) wrapped: bool,
    /// True if a call deviates from its form, so that it may be the end of a string if there are other calls.
    pub(super) alone: bool,
    /// The places outside of calls that close nothing but what they opened.
    pub(super) passed: Vec<Range<usize>>,
}

/// The state of one answer.
#[derive(Debug, Clone, Default)]
pub(in crate::channels) struct Machine {
    pub(super) format: Arc<ChannelFormat>,
    pub(super) thinking_on: bool,
    pub(in crate::channels) tools: Arc<Tools>,
    pub(super) state: State,
    /// Whitespace that belongs to the text only if more text follows.
    pub(super) held: Span,
    /// True if a thought may open: nothing but whitespace since the start or the last block.
    pub(super) may_open: bool,
    /// True after a block, so that whitespace before the first words belongs to the boundary.
    pub(super) after_block: bool,
    /// True once the answer has words.
    pub(super) spoken: bool,
    /// True if the answer's words so far end a line.
    pub(super) line_ended: bool,
    /// A closing marker after words and the whitespace after it, which belong to the text only if more words follow.
    pub(super) dangling: Span,
    /// True after words and a marker without effect, so that whitespace belongs to the text only if more words follow.
    pub(super) after_section: bool,
    /// True if no text and no call came since the last thought that was shown.
    pub(super) last_thought: bool,
    /// The end of the last marker in a thought, which may have closed it.
    pub(super) thought_end: usize,
    /// The start of the message whose words come next, if it is not the answer's first.
    pub(super) next_message: Option<usize>,
    /// True if the next closing marker belongs to a channel whose opening marker was dropped.
    pub(super) unknown_open: bool,
    /// True right after a thought, so that another closing marker is a repetition.
    pub(super) after_thought: bool,
    /// True right after a call.
    pub(super) after_call: bool,
    /// The source of the last call. It is shared with the states that speculations keep.
    pub(super) called: Arc<str>,
    /// True once a call turned out to lack a closing tag, so that the markers after others count at once.
    pub(super) lenient: bool,
    /// True while the marker that closes the answer is expected.
    pub(super) wrapped: bool,
    /// True if the recipient of the message is no tool, so that calls in it are quoted.
    pub(super) quoting: bool,
    /// True while a newline right after the opening marker is to be dropped.
    pub(super) trim_newline: bool,
    pub(super) reported: bool,
    /// True once a thought was ended for the model: further thoughts and closing markers are hidden.
    pub(super) ended: bool,
    /// The open speculation on whether a call is one.
    pub(super) speculation: Option<Box<Speculation>>,
    /// The events before the open speculation.
    pub(super) committed: Vec<Event>,
    pub(super) events: Vec<Event>,
}

impl Machine {
    pub(in crate::channels) fn new(format: ChannelFormat, thinking_on: bool) -> Self {
        let mut machine = Self {
            format: Arc::new(format),
            thinking_on,
            may_open: true,
            line_ended: true,
            ..Self::default()
        };
        machine.state = machine.between();
        machine
    }

    /// The state between two blocks.
    pub(super) fn between(&self) -> State {
        let (read, origin) = (Span::default(), Origin::Boundary);
        match self.format.headers {
            Some(_) => State::Header { read, origin },
            None => State::Answer,
        }
    }

    /// The prompt ends with a closed thought.
    pub(in crate::channels) fn begin_after_thinking(&mut self) {
        self.after_block = true;
        self.after_thought = true;
    }

    /// The prompt ends with the marker that opens the answer.
    pub(in crate::channels) fn begin_wrapped(&mut self) {
        (self.after_block, self.wrapped) = (true, true);
    }

    /// The prompt ends in a message whose header is this.
    pub(in crate::channels) fn begin_message(&mut self, header: &str) {
        match self.format.headers.and_then(|headers| headers.body(header)) {
            Some(Body::Thought) => self.state = State::Thought { begun: false },
            Some(Body::Answer | Body::Calls) => self.state = State::Answer,
            Some(Body::Call(_)) | None => {}
        }
    }

    /// The prompt is read: what it says was shown before.
    pub(in crate::channels) fn begin_answer(&mut self, after_opening: bool) {
        self.events.clear();
        self.held.clear();
        self.trim_newline &= !after_opening;
        if let State::Label { read, .. } = &mut self.state {
            // Places count from the answer's beginning, which a label that the prompt began is not part of.
            read.at = 0;
        }
    }

    /// True if the next text belongs to a thought. A label that may open one is not part of it.
    pub(in crate::channels) fn in_thought(&self) -> bool {
        matches!(self.state, State::Thought { .. }) || self.may_call_in_thought()
    }

    /// True if the open thought ends a line, so that its closing marker needs no line end before it.
    pub(in crate::channels) fn thought_ends_line(&self) -> bool {
        match self.state {
            State::Thought { begun: true } => self.held.text.ends_with('\n'),
            // Its label ended one.
            State::Thought { begun: false } => self.format.label.is_some(),
            _ => false,
        }
    }

    /// Hides this thought and all further ones.
    pub(in crate::channels) fn end_thoughts(&mut self) {
        self.ended = true;
    }

    /// Takes the committed events.
    pub(in crate::channels) fn take(&mut self) -> Vec<Event> {
        if self.speculation.is_none() {
            self.commit();
        }
        std::mem::take(&mut self.committed)
    }

    pub(super) fn notice(&mut self, code: NoticeCode, message: &str, at: usize) {
        let piece = Piece::Notice(Notice::new(code, message));
        self.events.push(Event { piece, source: at..at });
    }

    pub(super) fn emit(&mut self, piece: Piece, at: usize) {
        if let Piece::Text(text) | Piece::Thinking(text) = &piece {
            let source = at..at + text.len();
            append(&mut self.events, Event { piece, source });
        }
    }
}
