//! The tokens of a tag.

use crate::error::{Error, Result};

/// A template that does not parse.
pub(super) fn broken(reason: &str) -> Error {
    Error::TemplateSyntax(reason.to_owned())
}

/// The longest name or number; comparing names is not counted.
const LONGEST_NAME: usize = 200;
/// Tokens of an expression that may depend on each other: each may nest the next one, on the stack of the compiler.
const LONGEST_EXPRESSION: usize = 500;

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
    let mut nesting = Nesting::default();
    loop {
        let tail = &rest[at..];
        let Some(first) = tail.chars().next() else {
            return Err(broken("a tag is not closed"));
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if nesting.open.is_empty() {
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
        if matches!(kind, Kind::Word | Kind::Number) && length > LONGEST_NAME {
            return Err(broken("a name or a number is too long"));
        }
        nesting.add(kind, first)?;
        let text = &tail[..length];
        list.push(Token { kind, text, start: at });
        at += length;
    }
}

/// Tokens of the expressions that are open: those since the last comma, within each bracket and around it.
#[derive(Default)]
struct Nesting {
    open: Vec<usize>,
    here: usize,
    outside: usize,
}

impl Nesting {
    fn add(&mut self, kind: Kind, first: char) -> Result<()> {
        self.here += 1;
        match first {
            _ if kind != Kind::Sign => {}
            '(' | '[' | '{' => {
                self.open.push(self.here);
                self.outside += self.here;
                self.here = 0;
            }
            ')' | ']' | '}' => {
                if let Some(before) = self.open.pop() {
                    self.outside -= before;
                    self.here = before;
                }
            }
            ',' => self.here = 0,
            _ => {}
        }
        match self.here + self.outside > LONGEST_EXPRESSION {
            true => Err(broken("an expression is too long")),
            false => Ok(()),
        }
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
