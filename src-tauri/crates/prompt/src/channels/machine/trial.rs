//! What is read on trial: a call that may turn out to be a word of a thought or of another call's text, as what follows tells.

use std::ops::Range;

use super::{append, Event, Machine, MarkerKind, Piece, Span, State};
use crate::tool_calls::{self, OpenCall};

/// Why it is not sure that a call is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It stands in a thought; it is one if it is the answer's last thing and the thought is never closed.
    InThought,
    /// It ends a thought; unless the thought is closed after it.
    EndsThought,
    /// It begins with the label of a thought that nothing opened; a thought if it is closed.
    Unopened,
    /// Its texts cannot escape what ends them; unless closing tags follow that belong to nothing.
    Unescaped,
}

/// The state before the trial, and what was read since.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) doubt: Doubt,
    before: Machine,
    raw: Span,
    /// Whether what a call's text holds may have been taken for its end.
    doubtful: bool,
    /// Whether a call's form cannot escape what ends a text.
    unescaped: bool,
    /// Whether a call stood between its markers, so that one without them may be quoted in a text.
    wrapped: bool,
    /// Whether a call has not quite its form, so that it may be the end of a text if other calls stand beside it.
    alone: bool,
    /// Where a call was written once more after it, and closed.
    echoes: Vec<Range<usize>>,
}

impl Machine {
    /// Whether what is read is a thought unless it turns out to be a call.
    pub(in crate::channels) fn may_call_in_thought(&self) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.doubt == Doubt::InThought)
    }

    /// What was read since a trial began that still runs.
    pub(in crate::channels) fn doubtful(&self) -> Option<&[Event]> {
        self.trial.as_ref().map(|_| self.events.as_slice())
    }

    /// What was read is sure.
    pub(super) fn settle(&mut self) {
        if self.sure.is_empty() {
            std::mem::swap(&mut self.sure, &mut self.events);
        } else {
            self.events.drain(..).for_each(|event| append(&mut self.sure, event));
        }
    }

    /// Begins a trial with this marker, unless one runs.
    pub(super) fn try_out(&mut self, doubt: Doubt, spelled: &str, at: usize) {
        if self.trial.is_some() {
            return;
        }
        self.settle();
        let sure = std::mem::take(&mut self.sure);
        let trial = Trial {
            doubt,
            before: self.clone(),
            raw: Span::new(spelled, at),
            doubtful: false,
            unescaped: false,
            wrapped: false,
            alone: false,
            echoes: Vec::new(),
        };
        self.sure = sure;
        self.trial = Some(Box::new(trial));
    }

    /// Keeps what is read during a trial.
    pub(super) fn note(&mut self, text: &str, at: usize) {
        if let Some(trial) = &mut self.trial {
            trial.raw.push(text, at);
        }
    }

    /// Looks at a marker that has not been read.
    pub(super) fn doubt_at(&mut self, mark: MarkerKind) {
        let Some(trial) = &self.trial else { return };
        let open = match &self.state {
            State::Call(call) if call.is_quoted() => return,
            State::Call(call) => Some(call.is_closed()),
            _ => None,
        };
        let refuted = match (trial.doubt, mark) {
            (Doubt::Unescaped, _) => false,
            (Doubt::Unopened, _) => mark == MarkerKind::Close && self.unknown_open && matches!(self.state, State::Answer),
            (Doubt::EndsThought, _) => mark == MarkerKind::Close && !matches!(self.state, State::Thought { .. } | State::Label { .. }),
            (Doubt::InThought, MarkerKind::CallOpen) => open == Some(false),
            (Doubt::InThought, MarkerKind::CallClose | MarkerKind::CallHead | MarkerKind::Section) => false,
            (Doubt::InThought, _) => true,
        };
        if refuted {
            self.refuse();
        }
    }

    /// Looks at what was read last.
    pub(super) fn doubt(&mut self) {
        let Some(trial) = &self.trial else { return };
        let hopeless = matches!(&self.state, State::Call(call) if call.is_hopeless());
        let words = self
            .events
            .last()
            .is_some_and(|event| !matches!(event.piece, Piece::ToolCall { .. }));
        if trial.doubt == Doubt::InThought && (hopeless || words) {
            self.refuse();
        }
    }

    /// A call has ended, whole or not: one that broke off may have held a text that broke it.
    pub(super) fn judge(&mut self, call: &OpenCall, body: &str, whole: bool) {
        let Some(trial) = &mut self.trial else { return };
        trial.unescaped |= call.is_unescaped();
        trial.alone |= call.has_stray() || call.is_unwrapped() && trial.wrapped;
        trial.wrapped |= call.is_unescaped() && !call.is_unwrapped();
        trial.doubtful |= match whole {
            true => call.is_unescaped() || call.is_python(),
            false => tool_calls::may_hold_text(body),
        };
        if trial.doubt == Doubt::Unescaped && !trial.doubtful {
            self.accept();
        }
    }

    /// The call that is open ends without what closes it.
    pub(super) fn miss_closing(&mut self) {
        if let Some(trial) = &mut self.trial {
            trial.alone = true;
        }
    }

    /// A call was written once more from here to there, and closed; that one is none.
    pub(super) fn pass_echo(&mut self, echo: Range<usize>) {
        if let Some(trial) = &mut self.trial {
            trial.echoes.push(echo);
        }
    }

    /// The answer has ended; nothing tells any more.
    pub(in crate::channels) fn decide(&mut self) {
        let Some(trial) = &self.trial else { return };
        let (doubt, end) = (trial.doubt, trial.raw.at + trial.raw.text.len());
        let crowded = trial.alone && self.events.len() > 1;
        let refuted = match doubt {
            Doubt::InThought => {
                let is_call = |event: &Event| matches!(event.piece, Piece::ToolCall { .. });
                self.events.is_empty() || crowded || !self.events.iter().all(is_call)
            }
            Doubt::EndsThought | Doubt::Unopened | Doubt::Unescaped => crowded || trial.doubtful && self.is_torn(trial, !trial.unescaped),
        };
        if !refuted {
            return self.accept();
        }
        self.refuse();
        self.finish_state();
        if doubt != Doubt::InThought {
            self.broken_call(&Span::new("", end), "", None);
        }
    }

    /// Whether something beside the calls of this stretch closes what none of them opened.
    fn is_torn(&self, trial: &Trial, repeated: bool) -> bool {
        let raw = &trial.raw;
        let closings: Vec<&str> = self.format.closings().collect();
        let calls = self.events.iter().filter(|event| matches!(event.piece, Piece::ToolCall { .. }));
        let mut known: Vec<Range<usize>> = calls.map(|call| call.source.clone()).collect();
        if known.is_empty() {
            return false;
        }
        known.extend(trial.echoes.iter().cloned());
        known.sort_by_key(|stretch| stretch.start);
        let (mut at, mut torn) = (raw.at, false);
        for stretch in known {
            torn |= tool_calls::is_torn(&raw.text[at - raw.at..stretch.start.max(at) - raw.at], &closings, repeated);
            at = stretch.end;
        }
        torn || tool_calls::is_torn(&raw.text[at - raw.at..], &closings, repeated)
    }

    fn accept(&mut self) {
        self.trial = None;
        self.settle();
    }

    /// It was none: everything since is text, of the thought or of the answer.
    fn refuse(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        let sure = std::mem::take(&mut self.sure);
        *self = trial.before;
        self.sure = sure;
        if trial.doubt == Doubt::Unopened {
            let label = trial.raw.text.find('\n').map_or(0, |end| end + 1);
            self.open_thought();
            return self.thought(&trial.raw.text[label..], trial.raw.at + label);
        }
        match self.state {
            State::Thought { .. } => self.thought(&trial.raw.text, trial.raw.at),
            _ => self.say(&trial.raw.text, trial.raw.at),
        }
    }
}
