//! The `<think>…</think>` family, with tool calls as JSON in `<tool_call>…</tool_call>`.

use super::format::{Format, Mark};
use crate::tokenizer::Tokenizer;

/// Pairs that mean the same in different families.
const PAIRS: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
];

/// The first pair that is a token or stands in the template; without one nothing opens a thought.
pub(super) fn format(tokenizer: &Tokenizer, template: &str) -> Format {
    let known = |text: &str| tokenizer.id(text).is_some() || template.contains(text);
    let mut markers = Vec::new();
    if let Some((open, close)) = PAIRS.into_iter().find(|(open, close)| known(open) || known(close)) {
        markers.extend([(Mark::Open, open), (Mark::Close, close)]);
    }
    if known("<tool_call>") {
        markers.extend([(Mark::CallOpen, "<tool_call>"), (Mark::CallClose, "</tool_call>")]);
    }
    Format::new(&markers, tokenizer)
}
