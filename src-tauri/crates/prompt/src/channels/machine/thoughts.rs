//! Thoughts and the labels after their opening markers.

use protocol::NoticeCode;

use super::state::{Ambiguity, Machine, Origin, State};
use crate::channels::event::{Event, Piece, Span};
use crate::channels::formats::MarkerKind;

impl Machine {
    /// True if the next text belongs to the answer, unless it is a marker.
    pub(in crate::channels) fn in_answer(&self) -> bool {
        matches!(self.state, State::Answer) && self.speculation.is_none()
    }

    /// True if a thought that opens now would be shown.
    pub(in crate::channels) fn shows_thoughts(&self) -> bool {
        self.thinking_on && !self.ended
    }

    pub(super) fn thought(&mut self, text: &str, at: usize) {
        let State::Thought { begun } = &mut self.state else {
            return;
        };
        let words = text.trim_end();
        if self.ended {
            self.held.clear();
        }
        if words.is_empty() || self.ended {
            return self.held.push(text, at);
        }
        // Only blanks are held, so that those after the words are the new text's.
        self.held.push(words, at);
        let blanks = Span::new(&text[words.len()..], at + words.len());
        let Span { text, at } = std::mem::replace(&mut self.held, blanks);
        let first = !std::mem::replace(begun, true);
        let newline = usize::from(first && self.trim_newline && text.starts_with('\n'));
        if self.thinking_on {
            if first && self.last_thought {
                // The words of two thoughts do not run together.
                let piece = Piece::Thinking("\n\n".into());
                // A marker that is this thought's first word did not end the other one.
                let end = self.thought_end.min(at);
                let source = end..end;
                self.events.push(Event { piece, source });
            }
            self.last_thought = true;
            let text = if newline == 0 { text } else { text[newline..].to_owned() };
            self.emit(Piece::Thinking(text), at + newline);
        } else if !std::mem::replace(&mut self.reported, true) {
            let message = "This model thought anyway; its thought is kept out of the answer.";
            self.notice(NoticeCode::ThoughtWhileOff, message, at);
        }
    }

    /// The answer ends within a thought.
    pub(super) fn cut_thought(&mut self, begun: bool) {
        if begun && self.thinking_on && !self.ended {
            let rest = self.held.take();
            self.emit(Piece::Thinking(rest.text), rest.at);
            self.notice(
                NoticeCode::ThinkingTruncated,
                "The answer ended in the middle of the thought.",
                rest.at,
            );
        }
    }

    /// A thought whose label is missing.
    pub(super) fn open_thought(&mut self) {
        self.held.clear();
        self.trim_newline = true;
        self.state = State::Thought { begun: false };
    }

    pub(super) fn open(&mut self, origin: Origin, marker: usize) {
        // After words nothing is decided yet, and whitespace there was emitted with them.
        if !matches!(origin, Origin::Answer | Origin::Thought { begun: true }) {
            self.held.clear();
            self.trim_newline = self.format.label.is_none();
        }
        self.state = match self.format.label {
            Some(_) => State::Label {
                read: Span::default(),
                origin,
                marker,
            },
            None => State::Thought { begun: false },
        };
    }

    /// Decides as early as possible whether a label and a line end follow an opening marker.
    pub(super) fn label(&mut self) {
        let (State::Label { read, origin, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        let text = read.text.as_str();
        if *origin == Origin::Repeated {
            if text.len() > LONGEST_LABEL || text.trim_end() != label && !label.starts_with(text) {
                self.decide_label(Labelled::Words);
            }
        } else if let Some((line, _)) = text.split_once('\n') {
            self.decide_label(Labelled::of(line.trim_end(), label));
        } else if text.len() > LONGEST_LABEL || !begins_a_label(text, label) {
            self.decide_label(Labelled::Words);
        }
    }

    /// A marker comes where a label was being read. A closing one makes an empty thought of a whole or missing label.
    pub(super) fn end_label(&mut self, closing: bool) {
        let (State::Label { read, origin, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        let missing = read.text.is_empty() && closing && *origin != Origin::Answer;
        let labelled = match Labelled::of(read.text.trim_end(), label) {
            Labelled::Answer => Labelled::Words,
            _ if missing => Labelled::Thought,
            labelled => labelled,
        };
        if matches!(origin, Origin::Repeated | Origin::Missing) && !closing {
            return self.decide_label(Labelled::Words);
        }
        self.decide_label(labelled);
    }

    fn decide_label(&mut self, labelled: Labelled) {
        let State::Label { read, origin, marker } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let rest = read.text.find('\n').map_or(read.text.len(), |end| end + 1);
        let (after, at) = (&read.text[rest..], read.at + rest);
        match (labelled, origin) {
            // The closing marker that comes next repeats the one before.
            (Labelled::Thought, Origin::Repeated) => self.held.clear(),
            (
                Labelled::Thought,
                Origin::Boundary | Origin::Message | Origin::Answer | Origin::Thought { begun: false },
            ) => {
                self.state = State::Thought { begun: false };
                self.thought(after, at);
            }
            (Labelled::Answer, Origin::Thought { .. } | Origin::Boundary | Origin::Message) => {
                self.boundary();
                self.unknown_open = true;
                self.answer(after, at);
            }
            (_, Origin::Thought { begun }) => {
                self.state = State::Thought { begun };
                if begun {
                    self.thought(self.format.clone().spelled(MarkerKind::Open), marker);
                }
                self.thought(&read.text, read.at);
            }
            (_, Origin::Answer) => {
                self.answer(self.format.spelled(MarkerKind::Open), marker);
                self.answer(&read.text, read.at);
            }
            // The thought is empty, the closing marker comes next.
            (Labelled::Thought, Origin::Missing) if after.is_empty() && !read.text.ends_with('\n') => {
                self.open_thought()
            }
            (Labelled::Thought, Origin::Missing) => {
                self.speculate(Ambiguity::Unopened, &read.text, read.at);
                self.say(&read.text, read.at);
                self.unknown_open = true;
            }
            (_, Origin::Repeated | Origin::Missing) => self.say(&read.text, read.at),
            // A channel whose label is missing.
            (Labelled::Words, Origin::Boundary | Origin::Message) => {
                self.open_thought();
                self.thought(&read.text, read.at);
            }
        }
    }

    /// The answer ends within a label.
    pub(super) fn cut_label(&mut self) {
        let (State::Label { read, origin, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        match origin {
            // Whatever it was to become, nothing was said in it.
            Origin::Boundary | Origin::Message | Origin::Thought { begun: false }
                if label.starts_with(read.text.trim_end()) =>
            {
                self.state = State::Answer;
            }
            _ => self.decide_label(Labelled::Words),
        }
        if let State::Thought { begun } = self.state {
            self.cut_thought(begun);
        }
    }

    /// The origin of a possible label of a thought that was closed already, or whose opening marker is missing.
    pub(super) fn may_be_label(&self, words: &str) -> Option<Origin> {
        let label = self.format.label.filter(|_| self.may_open && !words.is_empty())?;
        let begun = label.starts_with(words) || words.trim_end() == label;
        let line = || words.split_once('\n').is_some_and(|(line, _)| line.trim_end() == label);
        match () {
            () if self.after_thought && begun => Some(Origin::Repeated),
            () if !self.after_block && !self.spoken && (begun || line()) => Some(Origin::Missing),
            () => None,
        }
    }
}

/// The meaning of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labelled {
    Thought,
    Answer,
    /// It is none.
    Words,
}

/// A label with the blanks after it is never longer.
const LONGEST_LABEL: usize = 64;

/// Labels that models write for their answers although no template has them.
const ANSWERS: [&str; 3] = ["response", "final", "answer"];

impl Labelled {
    fn of(line: &str, label: &str) -> Self {
        match line {
            line if line == label => Self::Thought,
            line if ANSWERS.contains(&line) => Self::Answer,
            _ => Self::Words,
        }
    }
}

/// True if the text may become a label and a line end.
fn begins_a_label(text: &str, label: &str) -> bool {
    let word = text.trim_end();
    ANSWERS
        .iter()
        .chain([&label])
        .any(|known| known.starts_with(text) || *known == word)
}
