//! Where each stretch of text belongs: the state machine behind the channel parser. It sees text and markers, no tokens.

use super::format::{Format, Mark};
use super::Piece;

/// Where an opening marker stood whose label is still being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Where a thought may open.
    Boundary,
    /// Behind words of the answer.
    Answer,
    /// In a thought that has no words yet.
    Thought,
}

#[derive(Debug)]
enum State {
    Answer,
    Label { read: String, origin: Origin },
    Thought { begun: bool },
    Call { body: String },
}

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Machine {
    format: Format,
    thinking_on: bool,
    state: State,
    /// Whitespace that belongs to the text only if more text follows.
    held: String,
    /// Whether a thought may open: nothing but whitespace since the start or the last block.
    may_open: bool,
    /// Whether a block came before, so that whitespace before the first words is a boundary's.
    after_block: bool,
    /// Whether the answer has words.
    spoken: bool,
    /// Whether the next closing marker belongs to a channel whose opening one was dropped.
    unknown_open: bool,
    /// Whether a closing marker before any words repeats the prompt's.
    prompt_closed: bool,
    /// Whether a newline right behind the opening marker is still to be dropped.
    trim_newline: bool,
    reported: bool,
    refuted: bool,
    pieces: Vec<Piece>,
}

impl Machine {
    pub(super) fn new(format: Format, thinking_on: bool) -> Self {
        Self {
            format,
            thinking_on,
            state: State::Answer,
            held: String::new(),
            may_open: true,
            after_block: false,
            spoken: false,
            unknown_open: false,
            prompt_closed: false,
            trim_newline: false,
            reported: false,
            refuted: false,
            pieces: Vec::new(),
        }
    }

    /// The prompt ends with a closed thought.
    pub(super) fn begin_behind_thought(&mut self) {
        self.after_block = true;
        self.prompt_closed = true;
    }

    /// Whether the next text is a thought's, or the label's that decides it.
    pub(super) fn inside(&self) -> bool {
        matches!(self.state, State::Label { .. } | State::Thought { .. })
    }

    /// Whether a label turned out to open nothing since this was last asked.
    pub(super) fn take_refuted(&mut self) -> bool {
        std::mem::take(&mut self.refuted)
    }

    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &mut self.state {
            State::Answer => self.answer(text),
            State::Thought { .. } => self.thought(text),
            State::Call { body } => body.push_str(text),
            State::Label { read, .. } => {
                read.push_str(text);
                self.label();
            }
        }
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        if let State::Label { .. } = self.state {
            self.end_label(mark == Mark::Close);
        }
        match (&mut self.state, mark) {
            (State::Answer, Mark::Open) if self.may_open => self.open(Origin::Boundary),
            // Behind words only a label shows that a marker is meant.
            (State::Answer, Mark::Open) if self.format.label.is_some() => self.open(Origin::Answer),
            (State::Answer, Mark::Close) if self.unknown_open || self.prompt_closed => {
                (self.unknown_open, self.prompt_closed) = (false, false);
            }
            (State::Answer, Mark::CallOpen) => self.open_call(),
            (State::Thought { begun: false }, Mark::Open) => self.open(Origin::Thought),
            (State::Thought { .. }, Mark::Close) => self.boundary(),
            (State::Thought { .. }, Mark::CallOpen) if self.format.calls_end_thoughts => {
                self.boundary();
                self.open_call();
            }
            (State::Call { .. }, Mark::CallOpen) => {
                self.end_call();
                self.open_call();
            }
            (State::Call { .. }, Mark::CallClose) => self.end_call(),
            (_, mark) => self.text(self.format.spelled(mark)),
        }
    }

    pub(super) fn finish(&mut self) {
        match std::mem::replace(&mut self.state, State::Answer) {
            // Whitespace behind a block is a boundary's; whitespace alone is an answer of whitespace.
            State::Answer if !self.after_block => self.emit_held(),
            State::Answer => {}
            State::Label {
                read,
                origin: Origin::Answer,
            } => self.answer(&format!("{}{read}", self.format.spelled(Mark::Open))),
            // An opening marker that was cut off within its label.
            State::Label { .. } => {}
            State::Thought { begun } => {
                if begun && self.thinking_on {
                    let rest = std::mem::take(&mut self.held);
                    self.emit(Piece::Thinking(rest));
                    self.notice("thinking_truncated", "The answer ended in the middle of the thought.");
                }
            }
            State::Call { body } => {
                self.state = State::Call { body };
                self.end_call();
            }
        }
    }

    fn answer(&mut self, text: &str) {
        if !self.may_open {
            return self.emit(Piece::Text(text.to_owned()));
        }
        let words = text.trim_start();
        self.held.push_str(&text[..text.len() - words.len()]);
        if words.is_empty() {
            return;
        }
        // Between two stretches of an answer whitespace stays, so that their words do not run together.
        if self.after_block && !self.spoken {
            self.held.clear();
        }
        self.emit_held();
        self.emit(Piece::Text(words.to_owned()));
        (self.may_open, self.spoken, self.prompt_closed) = (false, true, false);
    }

    fn emit_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.emit(Piece::Text(held));
    }

    fn thought(&mut self, text: &str) {
        let State::Thought { begun } = &mut self.state else { return };
        self.held.push_str(text);
        let words = self.held.trim_end().len();
        if words == 0 {
            return;
        }
        let rest = self.held.split_off(words);
        let text = std::mem::replace(&mut self.held, rest);
        let first = !std::mem::replace(begun, true);
        let text = if first && self.trim_newline {
            text.strip_prefix('\n').unwrap_or(&text)
        } else {
            &text
        };
        if self.thinking_on {
            self.emit(Piece::Thinking(text.to_owned()));
        } else if !std::mem::replace(&mut self.reported, true) {
            self.notice(
                "thought_while_off",
                "This model thought anyway; its thought is kept out of the answer.",
            );
        }
    }

    fn open(&mut self, origin: Origin) {
        // Behind words nothing is decided yet, and whitespace there was emitted with them.
        if origin != Origin::Answer {
            self.held.clear();
        }
        self.trim_newline = self.format.label.is_none();
        self.state = match self.format.label {
            Some(_) => State::Label {
                read: String::new(),
                origin,
            },
            None => State::Thought { begun: false },
        };
    }

    /// Decides as soon as it can whether what stands behind an opening marker is the label and a line's end.
    fn label(&mut self) {
        let (State::Label { read, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        if let Some((line, _)) = read.split_once('\n') {
            self.decide_label(line.trim_end() == label);
        } else if !label.starts_with(read.as_str()) && read.trim_end() != label {
            self.decide_label(false);
        }
    }

    /// A marker comes where a label was being read. A closing one makes an empty thought of a whole or missing label.
    fn end_label(&mut self, closing: bool) {
        let (State::Label { read, origin }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        let whole = read.trim_end() == label;
        let missing = read.is_empty() && closing && *origin != Origin::Answer;
        self.decide_label(whole || missing);
    }

    fn decide_label(&mut self, is_thought: bool) {
        let State::Label { read, origin } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        if is_thought {
            self.state = State::Thought { begun: false };
            if let Some((_, rest)) = read.split_once('\n') {
                self.thought(rest);
            }
            return;
        }
        match origin {
            Origin::Boundary => {
                self.refuted = true;
                self.answer(&read);
                // Its own closing marker is as little an answer's word as the opening one.
                self.unknown_open = true;
            }
            Origin::Answer => {
                self.refuted = true;
                self.answer(&format!("{}{read}", self.format.spelled(Mark::Open)));
            }
            Origin::Thought => {
                self.state = State::Thought { begun: false };
                self.thought(&read);
            }
        }
    }

    fn boundary(&mut self) {
        self.state = State::Answer;
        self.held.clear();
        (self.may_open, self.after_block) = (true, true);
        (self.unknown_open, self.prompt_closed) = (false, false);
    }

    fn open_call(&mut self) {
        self.held.clear();
        self.state = State::Call { body: String::new() };
    }

    fn end_call(&mut self) {
        let State::Call { body } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        match self.format.calls.read(&body) {
            Some(calls) => calls
                .into_iter()
                .for_each(|(name, arguments)| self.emit(Piece::ToolCall { name, arguments })),
            None => {
                self.answer(&body);
                self.notice(
                    "broken_tool_call",
                    "The model began to call a tool and did not write it in full; what it wrote is shown as text.",
                );
            }
        }
        self.boundary();
    }

    fn notice(&mut self, code: &str, message: &str) {
        self.pieces.push(Piece::Notice {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Neighbouring text becomes one piece.
    fn emit(&mut self, piece: Piece) {
        match (self.pieces.last_mut(), piece) {
            (_, Piece::Text(text) | Piece::Thinking(text)) if text.is_empty() => {}
            (Some(Piece::Text(last)), Piece::Text(text)) | (Some(Piece::Thinking(last)), Piece::Thinking(text)) => last.push_str(&text),
            (_, piece) => self.pieces.push(piece),
        }
    }
}
