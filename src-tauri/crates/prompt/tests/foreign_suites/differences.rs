//! Where Ponder reads an answer otherwise on purpose: each rule once, with its reason.

use crate::{same_calls, Case, Reading};

/// A rule and when it explains a difference.
struct Difference {
    reason: &'static str,
    explains: fn(&Case, &Reading, &Reading) -> bool,
}

/// Why ours differs from theirs; `None` if nothing explains it.
pub fn reason(case: &Case, ours: &Reading, theirs: &Reading) -> Option<&'static str> {
    DIFFERENCES
        .iter()
        .find(|difference| (difference.explains)(case, ours, theirs))
        .map(|difference| difference.reason)
}

/// The text without its whitespace.
fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "whitespace between blocks",
        explains: |_, ours, theirs| {
            words(&ours.thinking) == words(&theirs.thinking) && words(&ours.text) == words(&theirs.text) && same_calls(&ours.calls, &theirs.calls)
        },
    },
];
