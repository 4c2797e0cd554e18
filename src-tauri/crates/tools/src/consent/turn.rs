//! The calls since a person's last question.

use std::collections::{HashMap, HashSet};

use crate::canonical::canonical;
use crate::catalog::{Binding, ToolRef};
use crate::consent::LiveCall;

/// Calls of a turn after which a person is asked, whatever was granted.
const MANY_CALLS: usize = 25;

/// The same call this often in one turn is a loop.
const SAME_CALL: usize = 3;

/// The calls of a turn and what came of them.
#[derive(Debug, Default)]
pub struct TurnCalls {
    calls: usize,
    same: HashMap<(ToolRef, String), usize>,
    has_untrusted_result: bool,
    /// Granted in this chat after words of strangers had come.
    granted_since: HashSet<(ToolRef, Binding)>,
}

impl TurnCalls {
    /// Takes note of a call that was made; true if the same one was made so often that the turn runs in a circle.
    pub(super) fn repeats(&mut self, call: &LiveCall) -> bool {
        let same = (call.tool.clone(), canonical(&call.arguments));
        let count = self.same.entry(same).or_default();
        *count += 1;
        *count >= SAME_CALL
    }

    /// Takes note of a call that runs.
    pub(super) fn runs(&mut self) {
        self.calls += 1;
    }

    /// True if so many calls ran that a person has to look.
    pub(super) fn has_many_calls(&self) -> bool {
        self.calls > 0 && self.calls.is_multiple_of(MANY_CALLS)
    }

    /// Takes note of a result that may hold words of strangers.
    pub fn note_untrusted_result(&mut self) {
        self.has_untrusted_result = true;
        self.granted_since.clear();
    }

    /// Takes note of a consent to later calls of a tool.
    pub(super) fn granted(&mut self, tool: &ToolRef, binding: Binding) {
        if self.has_untrusted_result {
            self.granted_since.insert((tool.clone(), binding));
        }
    }

    /// True if an earlier consent does not cover a call, because strangers may have asked for it.
    pub(super) fn distrusts(&self, call: &LiveCall) -> bool {
        let since = || self.granted_since.contains(&(call.tool.clone(), call.binding));
        self.has_untrusted_result && call.effects.has_side_effects() && !since()
    }
}
