//! The tokens of a tag.

use crate::error::{Error, Result};

/// A template that does not parse.
pub(super) fn broken(reason: &str) -> Error {
    Error::TemplateSyntax(reason.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Text,
    Sign,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

pub(super) struct Tokens<'a> {
    pub(super) list: Vec<Token<'a>>,
    /// After the closing of the tag.
    pub(super) end: usize,
}

/// The tokens of the tag that `rest` begins with.
pub(super) fn lex(rest: &str, statement: bool) -> Result<Tokens<'_>> {
    let closing = if statement { "%}" } else { "}}" };
    let mut list = Vec::new();
    let mut at = 2;
    if rest[at..].starts_with(['-', '+']) {
        at += 1;
    }
    let mut depth = 0usize;
    loop {
        let tail = &rest[at..];
        let Some(first) = tail.chars().next() else {
            return Err(broken("a tag is not closed"));
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if depth == 0 {
            let bare = tail.strip_prefix(['-', '+']).unwrap_or(tail);
            if bare.starts_with(closing) {
                return Ok(Tokens {
                    list,
                    end: at + (tail.len() - bare.len()) + 2,
                });
            }
        }
        let (kind, length) = if first == '\'' || first == '"' {
            (Kind::Text, text_length(tail, first)?)
        } else if first.is_ascii_digit() {
            (Kind::Number, number_length(tail))
        } else if first.is_alphabetic() || first == '_' {
            let word = tail
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(tail.len());
            (Kind::Word, word)
        } else {
            let two = ["**", "//", "==", "!=", "<=", ">="]
                .iter()
                .any(|sign| tail.starts_with(sign));
            (Kind::Sign, if two { 2 } else { first.len_utf8() })
        };
        match first {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let text = &tail[..length];
        list.push(Token { kind, text, start: at });
        at += length;
    }
}

fn text_length(tail: &str, quote: char) -> Result<usize> {
    let mut escaped = false;
    for (at, c) in tail.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Ok(at + 1),
            _ => {}
        }
    }
    Err(broken("a text is not closed"))
}

/// `1`, `1_000`, `0xff`, `1.5`, `1e-07`; in `1.real` the point belongs to the name.
fn number_length(tail: &str) -> usize {
    let digits = |from: usize| {
        from + tail[from..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(tail.len() - from)
    };
    let mut end = digits(0);
    if tail[end..].starts_with('.') && tail[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
    }
    let hexadecimal = tail.starts_with("0x") || tail.starts_with("0X");
    if !hexadecimal && tail[..end].ends_with(['e', 'E']) && tail[end..].starts_with(['-', '+']) {
        end = digits(end + 1);
    }
    end
}
