//! Sets reasoning, answer and tool calls apart while an answer is generated.
//!
//! Markers that are tokens are recognised by id, so that the same characters spelled out stay text; the others are looked for
//! in the text. An opening marker counts before the first words and right behind a block; Gemma 4's, which carries a
//! label, also counts later. A marker in any other place is literal text.

mod format;
mod gemma4;
mod machine;
mod scanner;
mod think;

use std::sync::Arc;

use serde_json::Value;

use crate::detokenizer::Detokenizer;
use crate::dialect::Prompt;
use crate::stop_text::StopText;
use crate::tokenizer::Tokenizer;
pub(crate) use format::Format;
use format::Mark;
use machine::Machine;
use scanner::{Found, Scanner};

/// Something an answer is made of. Text never splits a character and never holds a marker that did its work.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of the answer.
    Text(String),
    /// More of the reasoning.
    Thinking(String),
    /// A complete call of a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// The arguments, a JSON object.
        arguments: Value,
    },
    /// Something the user should know.
    Notice {
        /// For programs: `thought_while_off`, `thinking_truncated`, `broken_tool_call`.
        code: String,
        /// For people.
        message: String,
    },
}

/// The parser of one answer. Every generated id but the stop token goes through [`push`](Self::push), then
/// [`finish`](Self::finish) is called once.
#[derive(Debug)]
pub struct ChannelParser {
    format: Format,
    detokenizer: Detokenizer,
    scanner: Scanner,
    machine: Machine,
    stop_text: StopText,
    thinking_tokens: u32,
    /// [`thinking_tokens`](Self::thinking_tokens) before the label that is being read.
    before_label: u32,
    /// Ids since the scanner began to hold back what may become a marker.
    held_ids: u32,
}

impl ChannelParser {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>, format: Format, prompt: &Prompt, thinking_on: bool, stop_texts: &[String]) -> Self {
        let mut parser = Self {
            detokenizer: Detokenizer::new(tokenizer.clone()),
            scanner: Scanner::new(&format.markers),
            machine: Machine::new(format.clone(), thinking_on),
            stop_text: StopText::new(stop_texts),
            format,
            thinking_tokens: 0,
            before_label: 0,
            held_ids: 0,
        };
        parser.begin(&tokenizer, prompt);
        parser
    }

    /// Takes over what the prompt left: a thought it opened, or one it opened and closed.
    fn begin(&mut self, tokenizer: &Arc<Tokenizer>, prompt: &Prompt) {
        let (Some(open), Some(close)) = (self.format.marker(Mark::Open), self.format.marker(Mark::Close)) else {
            return;
        };
        let (last, rest) = if let (Some(open), Some(close)) = (open.id, close.id) {
            let Some(at) = prompt.ids.iter().rposition(|id| *id == open || *id == close) else {
                return;
            };
            let rest = &prompt.ids[at + 1..];
            // Another control token means that the marker was an earlier turn's.
            if rest.iter().any(|id| tokenizer.is_control(*id)) {
                return;
            }
            (
                if prompt.ids[at] == open { Mark::Open } else { Mark::Close },
                tokenizer.decode(rest),
            )
        } else {
            let text = prompt.text.trim_end();
            let last = [open, close].into_iter().find(|marker| text.ends_with(marker.text));
            let Some(last) = last else { return };
            (last.mark, prompt.text[text.len()..].to_owned())
        };
        if last == Mark::Open {
            self.machine.mark(Mark::Open);
            self.machine.text(&rest);
            // What the prompt says of a thought was shown before.
            self.machine.take();
        } else if rest.trim().is_empty() {
            self.machine.begin_behind_thought();
        }
    }

    /// Takes one generated id. Never called with a stop token.
    pub fn push(&mut self, id: u32) -> Vec<Piece> {
        if self.stop_text.matched() {
            return Vec::new();
        }
        let was_inside = self.machine.inside();
        let mark = self
            .format
            .markers
            .iter()
            .find(|marker| marker.id == Some(id))
            .map(|marker| marker.mark);
        if let Some(mark) = mark {
            self.flush();
            self.machine.mark(mark);
        } else {
            let text = self.detokenizer.push(id);
            self.scan(&text);
        }
        self.count(was_inside);
        self.out()
    }

    /// Ends the answer: everything held back comes out, what is open is closed.
    pub fn finish(&mut self) -> Vec<Piece> {
        if self.stop_text.matched() {
            return Vec::new();
        }
        self.flush();
        self.machine.finish();
        let mut pieces = self.out();
        push_text(&mut pieces, self.stop_text.flush());
        pieces
    }

    /// Ids between the markers of thoughts so far, suppressed ones included.
    pub fn thinking_tokens(&self) -> u32 {
        self.thinking_tokens
    }

    /// Whether a stop text has ended the answer. Nothing comes any more; generation should end.
    pub fn stopped_by_text(&self) -> bool {
        self.stop_text.matched()
    }

    fn scan(&mut self, text: &str) {
        for found in self.scanner.push(text) {
            match found {
                Found::Text(text) => self.machine.text(&text),
                Found::Mark(mark) => self.machine.mark(mark),
            }
        }
    }

    fn flush(&mut self) {
        let broken = self.detokenizer.finish();
        self.scan(&broken);
        let held = self.scanner.flush();
        self.machine.text(&held);
    }

    fn count(&mut self, was_inside: bool) {
        match (was_inside, self.machine.inside()) {
            (false, true) => self.before_label = self.thinking_tokens,
            (true, true) => self.thinking_tokens += 1,
            // The ids of a closing marker that is spelled out were taken for the thought's.
            (true, false) => self.thinking_tokens -= self.held_ids.min(self.thinking_tokens),
            (false, false) => {}
        }
        if self.machine.take_refuted() {
            self.thinking_tokens = self.before_label;
        }
        self.held_ids = if self.scanner.holds() { self.held_ids + 1 } else { 0 };
    }

    fn out(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        for piece in self.machine.take() {
            if self.stop_text.matched() {
                break;
            }
            match piece {
                Piece::Text(text) => push_text(&mut out, self.stop_text.push(&text)),
                other => {
                    // A stop text does not reach across a thought or a call.
                    push_text(&mut out, self.stop_text.flush());
                    out.push(other);
                }
            }
        }
        out
    }
}

fn push_text(pieces: &mut Vec<Piece>, text: String) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(last)) => last.push_str(&text),
        _ => pieces.push(Piece::Text(text)),
    }
}
