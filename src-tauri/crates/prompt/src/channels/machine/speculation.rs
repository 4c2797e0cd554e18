//! Speculative reading: a call may turn out to be words of a thought or of another call's string, depending on what
//! follows.

use std::ops::Range;

use super::state::{Ambiguity, Machine, Speculation, State};
use crate::channels::event::{append, Event, Piece, Span};
use crate::channels::formats::MarkerKind;
use crate::tool_calls::{self, OpenCall};

impl Machine {
    /// True while the text counts as a thought unless it turns out to be a call.
    pub(in crate::channels) fn may_call_in_thought(&self) -> bool {
        self.speculation
            .as_ref()
            .is_some_and(|speculation| speculation.ambiguity == Ambiguity::InThought)
    }

    /// The events since the open speculation began.
    pub(in crate::channels) fn speculative_events(&self) -> Option<&[Event]> {
        self.speculation.as_ref().map(|_| self.events.as_slice())
    }

    /// Commits the events read so far.
    pub(super) fn commit(&mut self) {
        if self.committed.is_empty() {
            std::mem::swap(&mut self.committed, &mut self.events);
        } else {
            self.events
                .drain(..)
                .for_each(|event| append(&mut self.committed, event));
        }
    }

    /// Begins to speculate at this marker, unless a speculation is open.
    pub(super) fn speculate(&mut self, ambiguity: Ambiguity, spelled: &str, at: usize) {
        if self.speculation.is_some() {
            return;
        }
        self.commit();
        let committed = std::mem::take(&mut self.committed);
        let speculation = Speculation {
            ambiguity,
            first: matches!(self.state, State::Thought { begun: false }),
            before: self.clone(),
            raw: Span::new(spelled, at),
            uncertain: false,
            unescaped: false,
            wrapped: false,
            alone: false,
            passed: Vec::new(),
        };
        self.committed = committed;
        self.speculation = Some(Box::new(speculation));
    }

    /// Records the source that is read while speculating.
    pub(super) fn note(&mut self, text: &str, at: usize) {
        if let Some(speculation) = &mut self.speculation {
            speculation.raw.push(text, at);
        }
    }

    /// Checks whether the next marker refutes the speculation.
    pub(super) fn ambiguous_at(&mut self, mark: MarkerKind) {
        let Some(speculation) = &self.speculation else { return };
        let open = match &self.state {
            State::Call(call) if call.is_quoted() => return,
            State::Call(call) => Some(call.open.is_closed()),
            _ => None,
        };
        let refuted = match (speculation.ambiguity, mark) {
            (Ambiguity::Unescaped, _) => false,
            (Ambiguity::Unopened, _) => {
                mark == MarkerKind::Close && self.unknown_open && matches!(self.state, State::Answer)
            }
            (Ambiguity::EndsThought, _) => {
                mark == MarkerKind::Close && !matches!(self.state, State::Thought { .. } | State::Label { .. })
            }
            (Ambiguity::InThought, MarkerKind::CallOpen) => open == Some(false),
            (
                Ambiguity::InThought,
                MarkerKind::CallClose | MarkerKind::CallHead | MarkerKind::Section | MarkerKind::Frame,
            ) => false,
            (Ambiguity::InThought, _) => true,
        };
        if refuted {
            self.roll_back();
        }
    }

    /// Checks whether the last events refute the speculation.
    pub(super) fn check_speculation(&mut self) {
        let Some(speculation) = &self.speculation else { return };
        let hopeless = matches!(&self.state, State::Call(call) if call.open.is_hopeless());
        let words = self.events.last().is_some_and(|event| !is_call(event)) && !self.skips_thought(speculation);
        if speculation.ambiguity == Ambiguity::InThought && (hopeless || words) {
            self.roll_back();
        }
    }

    /// True if the call was the first thing in its thought, so that words after it are the answer's.
    fn skips_thought(&self, speculation: &Speculation) -> bool {
        speculation.first && self.events.first().is_some_and(is_call)
    }

    /// Judges a call that has ended. One that is incomplete may hold a string that broke it.
    pub(super) fn judge(&mut self, call: &OpenCall, body: &str, whole: bool) {
        let Some(speculation) = &mut self.speculation else {
            return;
        };
        speculation.unescaped |= call.is_unescaped();
        speculation.alone |= call.has_stray() || call.is_unwrapped() && speculation.wrapped;
        speculation.wrapped |= call.is_unescaped() && !call.is_unwrapped();
        speculation.uncertain |= match whole {
            true => call.is_unescaped() || call.is_python(),
            false => tool_calls::may_hold_text(body),
        };
        if speculation.ambiguity == Ambiguity::Unescaped && !speculation.uncertain {
            self.accept();
        }
    }

    /// The open call ends without its closing marker.
    pub(super) fn miss_closing(&mut self) {
        if let Some(speculation) = &mut self.speculation {
            speculation.alone = true;
        }
    }

    /// Records a stretch that closes nothing but what it opened, although it is no call: the repetition of one, one
    /// that is not valid, or one that is cut off.
    pub(super) fn pass_over(&mut self, stretch: Range<usize>) {
        if let Some(speculation) = &mut self.speculation {
            speculation.passed.push(stretch);
        }
    }

    /// Decides at the end of the answer, with no more evidence to come.
    pub(in crate::channels) fn decide(&mut self) {
        let Some(speculation) = &self.speculation else { return };
        let (ambiguity, end) = (speculation.ambiguity, speculation.raw.at + speculation.raw.text.len());
        let crowded = speculation.alone && self.events.len() > 1;
        let refuted = match ambiguity {
            Ambiguity::InThought => {
                let calls = self.events.iter().all(is_call) || self.skips_thought(speculation);
                self.events.is_empty() || crowded || !calls
            }
            Ambiguity::EndsThought | Ambiguity::Unopened | Ambiguity::Unescaped => {
                crowded || speculation.uncertain && self.is_torn(speculation, !speculation.unescaped)
            }
        };
        if !refuted {
            return self.accept();
        }
        self.roll_back();
        self.finish_state();
        if ambiguity != Ambiguity::InThought {
            self.broken_call(&Span::new("", end), "", None);
        }
    }

    /// True if text next to the calls closes something that none of them opened.
    fn is_torn(&self, speculation: &Speculation, repeated: bool) -> bool {
        let raw = &speculation.raw;
        let closings: Vec<&str> = self
            .format
            .markers_of(&[MarkerKind::CallClose])
            .map(|marker| marker.text)
            .collect();
        let calls = self.events.iter().filter(|event| is_call(event));
        let mut known: Vec<Range<usize>> = calls.map(|call| call.source.clone()).collect();
        if known.is_empty() {
            return false;
        }
        known.extend(speculation.passed.iter().cloned());
        known.sort_by_key(|stretch| stretch.start);
        let (mut at, mut torn) = (raw.at, false);
        for stretch in known {
            torn |= tool_calls::is_torn(
                &raw.text[at - raw.at..stretch.start.max(at) - raw.at],
                &closings,
                repeated,
            );
            at = at.max(stretch.end);
        }
        torn || tool_calls::is_torn(&raw.text[at - raw.at..], &closings, repeated)
    }

    fn accept(&mut self) {
        self.speculation = None;
        self.commit();
    }

    /// Rolls back: everything since is text, of the thought or of the answer.
    fn roll_back(&mut self) {
        let Some(speculation) = self.speculation.take() else {
            return;
        };
        let committed = std::mem::take(&mut self.committed);
        *self = speculation.before;
        self.committed = committed;
        if speculation.ambiguity == Ambiguity::Unopened {
            let label = speculation.raw.text.find('\n').map_or(0, |end| end + 1);
            self.open_thought();
            return self.thought(&speculation.raw.text[label..], speculation.raw.at + label);
        }
        match self.state {
            State::Thought { .. } => self.thought_or_header(&speculation.raw.text, speculation.raw.at),
            _ => self.say(&speculation.raw.text, speculation.raw.at),
        }
    }
}

fn is_call(event: &Event) -> bool {
    matches!(event.piece, Piece::ToolCall { .. })
}
