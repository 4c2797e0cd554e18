//! Pebble's tokenizer under the markers of other models, and what was read of an answer.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use prompt::{ChatProcessor, Piece, Prompt};
use protocol::NoticeCode;

/// A model that speaks Pebble's tokens under other names.
pub struct Speaker {
    pub processor: ChatProcessor,
    pub library: tokenizers::Tokenizer,
}

impl Speaker {
    pub fn new(template: &str, renamed: &[(&str, &str)]) -> Self {
        let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model/tokenizer.json");
        let mut tokenizer = std::fs::read_to_string(pebble).unwrap();
        for (from, to) in renamed {
            tokenizer = tokenizer.replace(&format!("\"{from}\""), &format!("\"{to}\""));
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tokenizer.json"), tokenizer).unwrap();
        std::fs::write(dir.path().join("chat_template.jinja"), template).unwrap();
        let library = tokenizers::Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
        Self {
            processor: ChatProcessor::open(dir.path()).unwrap(),
            library,
        }
    }

    pub fn gemma() -> Self {
        Self::new("x", &[])
    }

    /// `<think>` as a token of its own.
    pub fn think() -> Self {
        Self::new(
            "x",
            &[
                ("<|channel>", "<think>"),
                ("<channel|>", "</think>"),
                ("<|tool_call>", "<tool_call>"),
                ("<tool_call|>", "</tool_call>"),
            ],
        )
    }

    /// `<think>` in several tokens, known from the template alone.
    pub fn spelled_think() -> Self {
        Self::new(
            "<think> </think> <tool_call>",
            &[("<|channel>", "<unused100>"), ("<channel|>", "<unused101>")],
        )
    }

    pub fn ids(&self, text: &str) -> Vec<u32> {
        self.library.encode_fast(text, false).unwrap().get_ids().to_vec()
    }

    pub fn prompt(&self, text: &str) -> Prompt {
        Prompt {
            text: text.into(),
            ids: self.ids(text),
            ..Prompt::default()
        }
    }

    pub fn answer(&self, prompt: &str, thinking_on: bool, stops: &[&str], ids: &[u32]) -> Answer {
        let stops: Vec<String> = stops.iter().map(|stop| stop.to_string()).collect();
        let mut parser = self.processor.parser(&self.prompt(prompt), thinking_on, &stops);
        let mut pieces: Vec<Piece> = ids.iter().flat_map(|id| parser.push(*id)).collect();
        pieces.extend(parser.finish());
        let mut answer = Answer {
            tokens: parser.thinking_tokens(),
            stopped: parser.stopped_by_text(),
            ..Answer::default()
        };
        for piece in pieces {
            answer.take(piece);
        }
        answer
    }

    /// Gemma's markers in this speaker's words.
    pub fn translate(&self, text: &str) -> String {
        if self.library.token_to_id("<|channel>").is_some() {
            return text.into();
        }
        text.replace("<|channel>", "<think>")
            .replace("<channel|>", "</think>")
            .replace("<|tool_call>", "<tool_call>")
            .replace("<tool_call|>", "</tool_call>")
    }

    /// The parts of the answer, in order.
    pub fn parts(&self, text: &str) -> Vec<String> {
        self.answer("", true, &[], &self.ids(text)).parts
    }
}

/// The parser's result for an answer.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    /// `T:` reasoning, `A:` answer, `C:` a call; notices are elsewhere.
    pub parts: Vec<String>,
    pub notices: Vec<NoticeCode>,
    pub tokens: u32,
    pub stopped: bool,
}

impl Answer {
    pub fn take(&mut self, piece: Piece) {
        let (kind, text) = match piece {
            Piece::Text(text) => ("A:", text),
            Piece::Thinking(text) => ("T:", text),
            Piece::ToolCall { name, arguments } => return self.parts.push(format!("C:{name}{arguments}")),
            Piece::Notice(notice) => return self.notices.push(notice.code),
        };
        assert!(!text.is_empty(), "an empty piece");
        match self.parts.last_mut() {
            Some(last) if last.starts_with(kind) => last.push_str(&text),
            _ => self.parts.push(format!("{kind}{text}")),
        }
    }
}
