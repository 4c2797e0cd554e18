//! Rewrites the tokens of a tag: calls in place of operators, and around whatever holds values or is looked through.

use super::edits::{Edits, Span};
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
/// Operators between operands and how tightly they bind, as in jinja2's parser, with the calls that take their place.
const OPERATORS: [(&str, u8, Option<&str>); 8] = [
    ("+", 1, Some("__ponder_add(")),
    ("-", 1, None),
    ("~", 2, Some("__ponder_join(")),
    ("*", 3, Some("__ponder_times(")),
    ("/", 3, None),
    ("//", 3, None),
    ("%", 3, Some("__ponder_percent(")),
    ("**", 4, None),
];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", ">", "<=", ">="];
const WEIGH: &str = "__ponder_weigh(";
const HELD: &str = "__ponder_held(";

/// An operand, and if it is a literal that holds nothing but literals.
#[derive(Debug, Clone, Copy)]
struct Operand {
    span: Span,
    constant: bool,
}

/// A comparison whose right side is to come.
#[derive(Debug, Clone, Copy)]
enum Comparison {
    /// Both sides are read as far as they are equal.
    Of { constant: bool },
    /// The right side is looked through.
    In,
}

/// Reads the tokens of one tag from the left.
pub(super) struct Writer<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
    /// Inside of a literal, which is held as a whole.
    in_literal: bool,
    edits: Edits,
}

impl<'a> Writer<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
            in_literal: false,
            edits: Edits::default(),
        }
    }

    /// Reads a whole tag; gives the changes to it.
    pub(super) fn tag(mut self, statement: bool) -> Result<Edits> {
        match self.peek().filter(|_| statement).map(|word| word.text) {
            Some("for") => self.for_loop()?,
            Some("set") => self.assignment()?,
            Some("with") => self.assignments()?,
            _ => {}
        }
        self.all(&[])?;
        Ok(self.edits)
    }

    fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at)
    }

    fn sees(&self, sign: &str) -> bool {
        self.is(self.at, Kind::Sign, sign)
    }

    fn is(&self, at: usize, kind: Kind, text: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| token.kind == kind && token.text == text)
    }

    fn begins_operand(&self) -> bool {
        self.peek().is_some_and(|token| match token.kind {
            Kind::Word => !KEYWORDS.contains(&token.text),
            Kind::Number | Kind::Text => true,
            Kind::Sign => ["(", "[", "{", "-", "+"].contains(&token.text),
        })
    }

    /// The tokens read since this one.
    fn since(&self, first: usize) -> Option<Span> {
        let last = self.at.min(self.tokens.len()).checked_sub(1)?;
        (first <= last).then_some(Span { first, last })
    }

    /// The first token from here, outside of brackets, that is this one.
    fn find(&self, kind: Kind, texts: &[&str]) -> Option<usize> {
        let mut depth = 0usize;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            if depth == 0 && token.kind == kind && texts.contains(&token.text) {
                return Some(at);
            }
            match (token.kind, token.text) {
                (Kind::Sign, "(" | "[" | "{") => depth += 1,
                (Kind::Sign, ")" | "]" | "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    /// `for TARGET in ITERABLE`; what follows is left.
    fn for_loop(&mut self) -> Result<()> {
        let Some(is_in) = self.find(Kind::Word, &["in"]) else {
            return Ok(());
        };
        self.at = is_in + 1;
        let first = self.at;
        let end = self.find(Kind::Word, &["if", "recursive"]).unwrap_or(self.tokens.len());
        let tuple = self.up_to(end)?;
        if let Some(span) = self.since(first) {
            match tuple {
                true => self.edits.wrap(span, "__ponder_each((", "))"),
                false => self.edits.wrap(span, "__ponder_each(", ")"),
            };
        }
        Ok(())
    }

    /// `set TARGET = VALUE`; a block without a value is left.
    fn assignment(&mut self) -> Result<()> {
        let Some(equals) = self.find(Kind::Sign, &["="]) else {
            return Ok(());
        };
        let into_namespace = self.tokens[..equals].iter().any(|token| token.text == ".");
        self.at = equals + 1;
        let first = self.at;
        let tuple = self.up_to(self.tokens.len())?;
        if let Some(span) = self.since(first) {
            match (into_namespace, tuple) {
                (true, true) => self.edits.wrap(span, "__ponder_keep((", "))"),
                (true, false) => self.edits.wrap(span, "__ponder_keep(", ")"),
                (false, true) => self.edits.wrap(span, "__ponder_held((", "))"),
                (false, false) => 0,
            };
        }
        Ok(())
    }

    /// `with TARGET = VALUE, TARGET = VALUE`; targets are passed over.
    fn assignments(&mut self) -> Result<()> {
        while let Some(equals) = self.find(Kind::Sign, &["="]) {
            self.at = equals + 1;
            self.all(&[","])?;
        }
        Ok(())
    }

    /// Everything up to this token; true if a comma stands outside of brackets.
    fn up_to(&mut self, end: usize) -> Result<bool> {
        let tokens = self.tokens;
        self.tokens = &tokens[..end];
        let read = self.all(&[]);
        self.tokens = tokens;
        read.map(|read| read.commas)
    }

    /// Everything up to one of these signs, which is left.
    fn all(&mut self, ends: &[&str]) -> Result<Read> {
        let mut read = Read {
            commas: false,
            constant: true,
        };
        let mut comparison = None;
        let mut left_is_constant = false;
        while self.peek().is_some() && !ends.iter().any(|end| self.sees(end)) {
            if self.begins_operand() {
                let operand = self.run(0)?;
                let weighed = match comparison.take() {
                    Some(Comparison::Of { constant }) => !constant && !operand.constant,
                    Some(Comparison::In) => !operand.constant,
                    None => false,
                };
                if weighed {
                    self.edits.wrap(operand.span, WEIGH, ")");
                }
                left_is_constant = operand.constant;
                read.constant &= operand.constant;
                continue;
            }
            let token = self.tokens[self.at];
            self.at += 1;
            match (token.kind, token.text) {
                (Kind::Sign, ",") => read.commas = true,
                (Kind::Sign, ":") => {}
                (Kind::Word, "in") => comparison = Some(Comparison::In),
                (Kind::Sign, sign) if COMPARISONS.contains(&sign) => {
                    comparison = Some(Comparison::Of {
                        constant: left_is_constant,
                    });
                    read.constant = false;
                }
                _ => read.constant = false,
            }
        }
        Ok(read)
    }

    /// Operands and the operators between them that bind at least this tightly.
    fn run(&mut self, least: u8) -> Result<Operand> {
        let mut left = self.operand()?;
        // The sign whose call `left` is and the end of the call; the next part of a chain goes into the same call.
        let mut chain = None;
        while let Some((sign, binding, call)) = self.operator().filter(|(_, binding, _)| *binding >= least) {
            let operator = self.at;
            self.at += 1;
            left.constant = false;
            if !self.begins_operand() {
                left.span.last = operator;
                return Ok(left);
            }
            let right = self.run(binding + 1)?.span;
            let open = chain.take().filter(|(chained, _)| *chained == sign && sign != "%");
            let whole = Span {
                first: left.span.first,
                last: right.last,
            };
            if let Some(call) = call {
                self.edits.replace(operator, ",");
                self.edits.set_gap(right.first, " ");
                let close = match open {
                    Some((_, close)) => {
                        self.edits.extend(close, right.last);
                        close
                    }
                    None => self.edits.wrap(whole, call, ")"),
                };
                chain = Some((sign, close));
            }
            left.span = whole;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, u8, Option<&'static str>)> {
        let token = self.peek().filter(|token| token.kind == Kind::Sign)?;
        OPERATORS.iter().find(|(sign, ..)| *sign == token.text).copied()
    }

    /// A name, a literal or something in brackets, with signs before it and all that hangs on it.
    fn operand(&mut self) -> Result<Operand> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(broken("brackets are nested too deeply"));
        }
        let first = self.at;
        while self.sees("-") || self.sees("+") {
            self.at += 1;
        }
        let mut constant = false;
        if self.begins_operand() {
            let start = self.at;
            constant = self.primary()?;
            let bare = self.at;
            self.postfix(start)?;
            constant &= bare == self.at;
        }
        self.depth -= 1;
        let span = self.since(first).unwrap_or(Span { first, last: first });
        Ok(Operand { span, constant })
    }

    /// True if it is a literal.
    fn primary(&mut self) -> Result<bool> {
        let Some(token) = self.peek() else { return Ok(false) };
        if token.kind == Kind::Sign {
            return self.literal();
        }
        self.at += 1;
        if token.kind == Kind::Text {
            // Texts side by side are one.
            while self.peek().is_some_and(|token| token.kind == Kind::Text) {
                self.at += 1;
            }
        }
        Ok(token.kind != Kind::Word || ["true", "false", "none", "True", "False", "None"].contains(&token.text))
    }

    /// A list, an object, a tuple or an expression in brackets.
    fn literal(&mut self) -> Result<bool> {
        let first = self.at;
        let bracket = self.tokens[first].text;
        let outside = self.in_literal;
        // The content of a bracket is only known at its end: as part of a tuple it is held with it.
        self.in_literal = outside || bracket != "(" || self.is_tuple();
        let close = match bracket {
            "(" => ")",
            "[" => "]",
            _ => "}",
        };
        let read = self.bracket(close)?;
        self.in_literal = outside;
        let holds = bracket != "(" || read.commas;
        if let Some(span) = self.since(first).filter(|_| holds && !outside && !read.constant) {
            self.edits.wrap(span, HELD, ")");
        }
        Ok(read.constant)
    }

    /// True if the bracket that begins here has a comma of its own.
    fn is_tuple(&self) -> bool {
        let inside = Self {
            tokens: self.tokens,
            at: self.at + 1,
            depth: 0,
            in_literal: false,
            edits: Edits::default(),
        };
        let comma = inside.find(Kind::Sign, &[",", ")"]);
        comma.is_some_and(|at| self.tokens[at].text == ",")
    }

    fn bracket(&mut self, close: &str) -> Result<Read> {
        self.at += 1;
        let read = self.all(&[close])?;
        self.at += 1;
        Ok(read)
    }

    /// The arguments of a call, in which a literal is one again.
    fn arguments(&mut self) -> Result<()> {
        let outside = std::mem::replace(&mut self.in_literal, false);
        let read = self.bracket(")");
        self.in_literal = outside;
        read.map(drop)
    }

    /// Attributes, indices, calls, filters and tests after the operand that begins at `start`.
    fn postfix(&mut self, start: usize) -> Result<()> {
        loop {
            if self.sees(".") || self.sees("|") {
                self.at += 1;
                // A loop keeps what it is given to compare it with what comes next.
                let keeps = self.is(self.at, Kind::Word, "changed") && self.is(self.at + 1, Kind::Sign, "(");
                self.at += 1;
                if keeps {
                    let first = self.at + 1;
                    self.arguments()?;
                    let last = self.at.saturating_sub(2);
                    if first <= last && last < self.tokens.len() {
                        self.edits.wrap(Span { first, last }, "__ponder_keep(", ")");
                    }
                }
            } else if self.sees("(") {
                self.arguments()?;
            } else if self.sees("[") {
                let outside = std::mem::replace(&mut self.in_literal, false);
                self.index(start)?;
                self.in_literal = outside;
            } else if self.is(self.at, Kind::Word, "is") {
                self.test()?;
            } else {
                return Ok(());
            }
        }
    }

    /// `[…]` after an operand; a slice becomes a call, because minijinja's breaks on empty lists, and so does an index
    /// that may count the letters of a text.
    fn index(&mut self, start: usize) -> Result<()> {
        const NOTHING: &str = ", none";
        let open = self.at;
        let mut ends = Vec::new();
        let mut part = open;
        loop {
            self.at += 1;
            self.all(&["]", ":"])?;
            ends.push((part, self.at));
            part = self.at;
            if !self.sees(":") {
                break;
            }
        }
        self.at += 1;
        let close = part;
        if ends.len() > 3 {
            return Err(broken("a slice has three parts at most"));
        }
        if close >= self.tokens.len() {
            return Ok(());
        }
        let sliced = ends.len() > 1;
        let plain = |token: &Token| match token.kind {
            Kind::Text => true,
            Kind::Number => token.text.len() < 4,
            Kind::Word | Kind::Sign => false,
        };
        if !sliced && (close == open + 1 || (close == open + 2 && plain(&self.tokens[open + 1]))) {
            return Ok(());
        }
        for (sign, end) in ends {
            if end == sign + 1 {
                self.edits.replace(sign, NOTHING);
            } else {
                self.edits.replace(sign, ",");
                self.edits.set_gap(sign + 1, " ");
            }
        }
        self.edits.replace(close, "");
        let call = if sliced { "__ponder_slice(" } else { "__ponder_item(" };
        self.edits.wrap(
            Span {
                first: start,
                last: close,
            },
            call,
            ")",
        );
        Ok(())
    }

    /// `is [not] NAME [argument]`.
    fn test(&mut self) -> Result<()> {
        self.at += 1;
        if self.is(self.at, Kind::Word, "not") {
            self.at += 1;
        }
        self.at += 1;
        let argument = self.peek().is_some_and(|token| match token.kind {
            Kind::Word => !KEYWORDS.contains(&token.text),
            Kind::Number | Kind::Text => true,
            Kind::Sign => ["[", "{"].contains(&token.text),
        });
        if argument {
            let start = self.at;
            self.primary()?;
            self.postfix(start)?;
        }
        Ok(())
    }
}

/// The part between brackets.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// A comma separates what it holds.
    commas: bool,
    /// It holds nothing but literals.
    constant: bool,
}
