//! Rewrites the expression of a tag, with calls in place of operators.

use super::lexer::{broken, Kind, Token};
use crate::error::Result;

/// Names that a template must not take from the functions that the calls name.
pub(super) const RESERVED: &str = "__ponder_";
/// Deeper nesting of brackets is taken for an attack on the stack.
const DEPTH: usize = 100;

/// Words that are no operands.
const KEYWORDS: [&str; 11] = [
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "elif",
    "for",
    "set",
    "recursive",
];
/// Operators between operands and how tightly they bind, as in jinja2's parser.
const OPERATORS: [(&str, u8); 8] = [
    ("+", 1),
    ("-", 1),
    ("~", 2),
    ("*", 3),
    ("/", 3),
    ("//", 3),
    ("%", 3),
    ("**", 4),
];

/// Reads the tokens of one tag from the left.
pub(super) struct Writer<'a> {
    source: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
}

impl<'a> Writer<'a> {
    /// The writer of a tag's tokens, which stand in this source.
    pub(super) fn new(source: &'a str, tokens: &'a [Token<'a>]) -> Self {
        Self {
            source,
            tokens,
            at: 0,
            depth: 0,
        }
    }

    fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at)
    }

    fn sees(&self, sign: &str) -> bool {
        self.peek()
            .is_some_and(|token| token.kind == Kind::Sign && token.text == sign)
    }

    fn begins_operand(&self) -> bool {
        self.peek().is_some_and(|token| match token.kind {
            Kind::Word => !KEYWORDS.contains(&token.text),
            Kind::Number | Kind::Text => true,
            Kind::Sign => ["(", "[", "{", "-", "+"].contains(&token.text),
        })
    }

    /// The blanks before the next token.
    fn gap(&self) -> &'a str {
        match (
            self.at.checked_sub(1).and_then(|before| self.tokens.get(before)),
            self.peek(),
        ) {
            (Some(before), Some(next)) => &self.source[before.end()..next.start],
            _ => "",
        }
    }

    fn take(&mut self) -> &'a str {
        let text = self.peek().map_or("", |token| token.text);
        self.at += 1;
        text
    }

    /// Everything up to one of these signs, which is left.
    pub(super) fn all(&mut self, ends: &[&str]) -> Result<String> {
        let mut out = String::new();
        while self.peek().is_some() && !ends.iter().any(|end| self.sees(end)) {
            out.push_str(self.gap());
            if self.begins_operand() {
                out.push_str(&self.run(0)?);
            } else {
                out.push_str(self.take());
            }
        }
        Ok(out)
    }

    /// Operands and the operators between them that bind at least this tightly.
    fn run(&mut self, least: u8) -> Result<String> {
        let mut left = self.operand()?;
        // The sign whose call `left` is; the next part of a chain goes into the same call.
        let mut chain = None;
        while let Some((sign, binding)) = self.operator().filter(|(_, binding)| *binding >= least) {
            let gap = self.gap();
            self.at += 1;
            let next_gap = self.gap();
            if !self.begins_operand() {
                return Ok(format!("{left}{gap}{sign}"));
            }
            let right = self.run(binding + 1)?;
            left = match sign {
                "+" | "~" | "*" if chain == Some(sign) => format!("{}, {right})", &left[..left.len() - 1]),
                "+" => format!("{RESERVED}add({left}, {right})"),
                "~" => format!("{RESERVED}join({left}, {right})"),
                "*" => format!("{RESERVED}times({left}, {right})"),
                "%" => format!("{RESERVED}percent({left}, {right})"),
                _ => format!("{left}{gap}{sign}{next_gap}{right}"),
            };
            chain = Some(sign);
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let token = self.peek().filter(|token| token.kind == Kind::Sign)?;
        OPERATORS.iter().find(|(sign, _)| *sign == token.text).copied()
    }

    /// A name, a literal or something in brackets, with signs before it and all that hangs on it.
    fn operand(&mut self) -> Result<String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(broken("brackets are nested too deeply"));
        }
        let mut out = String::new();
        while self.sees("-") || self.sees("+") {
            out.push_str(self.take());
            out.push_str(self.gap());
        }
        if self.begins_operand() {
            let start = out.len();
            out.push_str(&self.primary()?);
            self.postfix(&mut out, start)?;
        }
        self.depth -= 1;
        Ok(out)
    }

    fn primary(&mut self) -> Result<String> {
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}")] {
            if self.sees(open) {
                return self.bracket(close);
            }
        }
        let text = self.peek().is_some_and(|token| token.kind == Kind::Text);
        let mut out = self.take().to_owned();
        // Texts side by side are one.
        while text && self.peek().is_some_and(|token| token.kind == Kind::Text) {
            out.push_str(self.gap());
            out.push_str(self.take());
        }
        Ok(out)
    }

    fn bracket(&mut self, close: &str) -> Result<String> {
        let mut out = self.take().to_owned();
        out.push_str(&self.all(&[close])?);
        out.push_str(self.gap());
        out.push_str(self.take());
        Ok(out)
    }

    /// Attributes, indices, calls, filters and tests after the operand that begins at `start`.
    fn postfix(&mut self, out: &mut String, start: usize) -> Result<()> {
        loop {
            let gap = self.gap();
            if self.sees(".") || self.sees("|") {
                out.push_str(gap);
                out.push_str(self.take());
                out.push_str(self.gap());
                out.push_str(self.take());
            } else if self.sees("(") {
                out.push_str(gap);
                out.push_str(&self.bracket(")")?);
            } else if self.sees("[") {
                self.index(out, start)?;
            } else if self.peek().is_some_and(|token| token.text == "is") {
                out.push_str(gap);
                self.test(out)?;
            } else {
                return Ok(());
            }
        }
    }

    /// `[…]` after an operand; a slice becomes a call, because minijinja's breaks on empty lists.
    fn index(&mut self, out: &mut String, start: usize) -> Result<()> {
        self.at += 1;
        let mut parts = vec![self.all(&["]", ":"])?];
        while self.sees(":") {
            self.at += 1;
            parts.push(self.all(&["]", ":"])?);
        }
        self.at += 1;
        match parts.as_slice() {
            [index] => out.push_str(&format!("[{index}]")),
            parts if parts.len() > 3 => return Err(broken("a slice has three parts at most")),
            parts => {
                let named: Vec<&str> = parts
                    .iter()
                    .map(|part| if part.trim().is_empty() { "none" } else { part.as_str() })
                    .collect();
                let sliced = format!("{RESERVED}slice({}, {})", &out[start..], named.join(", "));
                out.replace_range(start.., &sliced);
            }
        }
        Ok(())
    }

    /// `is [not] NAME [argument]`.
    fn test(&mut self, out: &mut String) -> Result<()> {
        out.push_str(self.take());
        if self.peek().is_some_and(|token| token.text == "not") {
            out.push_str(self.gap());
            out.push_str(self.take());
        }
        out.push_str(self.gap());
        out.push_str(self.take());
        let argument = self.peek().is_some_and(|token| match token.kind {
            Kind::Word => !KEYWORDS.contains(&token.text),
            Kind::Number | Kind::Text => true,
            Kind::Sign => ["[", "{"].contains(&token.text),
        });
        if argument {
            out.push_str(self.gap());
            let start = out.len();
            out.push_str(&self.primary()?);
            self.postfix(out, start)?;
        }
        Ok(())
    }
}
