//! Gemma 4: `<|channel>thought\n…<channel|>` and `<|tool_call>call:NAME{…}<tool_call|>`, every marker a token.

use super::format::{Format, Mark};
use crate::tokenizer::Tokenizer;
use crate::tool_call::Syntax;

/// Gemma 4's format, where the tokenizer has its channel tokens.
pub(super) fn format(tokenizer: &Tokenizer) -> Option<Format> {
    let markers = [
        (Mark::Open, "<|channel>"),
        (Mark::Close, "<channel|>"),
        (Mark::CallOpen, "<|tool_call>"),
        (Mark::CallClose, "<tool_call|>"),
    ];
    let mut format = Format::new(&markers, tokenizer);
    format.markers.retain(|marker| marker.id.is_some());
    format.label = Some("thought");
    format.calls = Syntax::Gemma4;
    format.calls_end_thoughts = true;
    (format.marker(Mark::Open).is_some() && format.marker(Mark::Close).is_some()).then_some(format)
}
