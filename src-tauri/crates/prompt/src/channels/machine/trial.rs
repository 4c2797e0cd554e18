//! What is read on trial: a call that may turn out to be a word of a thought or of another call's text, as what follows tells.

use super::{Machine, MarkerKind, Piece, Span, State};
use crate::tool_calls;

/// Why it is not sure that a call is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It stands in a thought; it is one if it is the answer's last thing and the thought is never closed.
    InThought,
    /// It ends a thought; unless the thought is closed after it.
    EndsThought,
    /// Its texts cannot escape what ends them; unless closing tags follow that belong to nothing.
    Unescaped,
}

/// The state before the trial, and what was read since.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) doubt: Doubt,
    before: Machine,
    raw: Span,
    /// Whether a call's form cannot escape what ends a text.
    unescaped: bool,
}

impl Machine {
    /// Begins a trial with this marker, unless one runs.
    pub(super) fn try_out(&mut self, doubt: Doubt, spelled: &str, at: usize) {
        if self.trial.is_some() {
            return;
        }
        self.sure.append(&mut self.events);
        let sure = std::mem::take(&mut self.sure);
        let trial = Trial {
            doubt,
            before: self.clone(),
            raw: Span::new(spelled, at),
            unescaped: false,
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

    /// A call of this kind has ended, whole or not.
    pub(super) fn judge(&mut self, unescaped: bool) {
        let Some(trial) = &mut self.trial else { return };
        trial.unescaped |= unescaped;
        if trial.doubt == Doubt::Unescaped && !trial.unescaped {
            self.accept();
        }
    }

    /// The answer has ended; nothing tells any more.
    pub(super) fn decide(&mut self) {
        let Some(trial) = &self.trial else { return };
        let mut calls = self.events.iter().filter(|event| matches!(event.piece, Piece::ToolCall { .. }));
        let made = calls.clone().next().is_some();
        let alone = calls.clone().count() == self.events.len();
        let refuted = match trial.doubt {
            Doubt::InThought => !made || !alone,
            Doubt::EndsThought | Doubt::Unescaped => {
                made && trial.unescaped && {
                    let closings: Vec<&str> = self.format.closings().collect();
                    let mut at = trial.raw.at;
                    let mut gaps = calls
                        .by_ref()
                        .map(|call| {
                            let gap = at.min(call.source.start)..call.source.start;
                            at = call.source.end;
                            gap
                        })
                        .collect::<Vec<_>>();
                    gaps.push(at..trial.raw.at + trial.raw.text.len());
                    gaps.into_iter().any(|gap| {
                        let gap = &trial.raw.text[gap.start - trial.raw.at..gap.end - trial.raw.at];
                        tool_calls::is_torn(gap, &closings)
                    })
                }
            }
        };
        if !refuted {
            return self.accept();
        }
        let unescaped = trial.doubt != Doubt::InThought;
        let end = trial.raw.at + trial.raw.text.len();
        self.refuse();
        if unescaped {
            self.broken_call(&Span::new("", end));
        }
        self.finish_state();
    }

    fn accept(&mut self) {
        self.trial = None;
        self.sure.append(&mut self.events);
    }

    /// It was none: everything since is text, of the thought or of the answer.
    fn refuse(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        let sure = std::mem::take(&mut self.sure);
        *self = trial.before;
        self.sure = sure;
        match self.state {
            State::Thought { .. } => self.thought(&trial.raw.text, trial.raw.at),
            _ => self.say(&trial.raw.text, trial.raw.at),
        }
    }
}
