//! A chat template's source, made ready for minijinja: operators that Python understands otherwise, or that build long
//! texts, become calls of the functions in [`operators`](super::operators), and what minijinja does not know goes.

use crate::{Error, Result};

/// Names that a template must not take from the functions below.
const RESERVED: &str = "__ponder_";
/// Plain text longer than this is counted where it is written.
const LONG_TEXT: usize = 64;
/// Deeper nesting of brackets is taken for an attack on the stack.
const DEPTH: usize = 100;

/// The source for minijinja.
///
/// # Errors
/// If a tag is not closed, or the template uses a reserved name.
pub(super) fn prepare(source: &str) -> Result<String> {
    if source.contains(RESERVED) {
        return Err(broken("a name that begins with __ponder_ is reserved"));
    }
    // jinja2 makes all line ends one.
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len() + source.len() / 4);
    let mut rest = source.as_str();
    while let Some(at) = next_tag(rest) {
        write_text(&mut out, &rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("{#") {
            rest.find("#}").ok_or_else(|| broken("a comment is not closed"))? + 2
        } else {
            tag(&mut out, rest)?
        };
        if rest.starts_with("{#") {
            out.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    write_text(&mut out, rest);
    Ok(out)
}

/// Where the next tag or comment begins.
fn next_tag(text: &str) -> Option<usize> {
    let opens = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(opens)
}

fn broken(reason: &str) -> Error {
    Error::TemplateSyntax(reason.to_owned())
}

/// Plain text; a long one with a count inside of it, between two letters, where it touches nobody's blanks.
fn write_text(out: &mut String, text: &str) {
    let seam = text.char_indices().zip(text.chars().skip(1)).find(|((_, left), right)| {
        let blank_or_brace = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '%' | '#' | '-' | '+');
        !blank_or_brace(*left) && !blank_or_brace(*right)
    });
    match seam.filter(|_| text.len() > LONG_TEXT) {
        Some(((at, left), _)) => {
            let at = at + left.len_utf8();
            out.push_str(&text[..at]);
            out.push_str(&format!("{{{{ {RESERVED}count({}) }}}}", text.len()));
            out.push_str(&text[at..]);
        }
        None => out.push_str(text),
    }
}

/// Writes the tag that `rest` begins with; gives its length. A raw block is taken whole.
fn tag(out: &mut String, rest: &str) -> Result<usize> {
    let statement = rest.starts_with("{%");
    let tokens = lex(rest, statement)?;
    let end = tokens.end;
    let word = tokens.list.first().map_or("", |token| token.text);
    if statement && word == "raw" {
        let closing = rest[end..]
            .match_indices("{%")
            .map(|(at, _)| end + at)
            .find(|at| rest[at + 2..].trim_start_matches(['-', '+']).trim_start().starts_with("endraw"))
            .ok_or_else(|| broken("a raw block is not closed"))?;
        let length = closing + rest[closing..].find("%}").ok_or_else(|| broken("a raw block is not closed"))? + 2;
        out.push_str(&rest[..length]);
        return Ok(length);
    }
    // `generation` marks an assistant's tokens for training.
    let plain = match word {
        "generation" if statement => Some("if true"),
        "endgeneration" if statement => Some("endif"),
        _ => None,
    };
    if let Some(plain) = plain {
        let (open, close) = (&rest[..tokens.list[0].start], &rest[tokens.list[0].start + word.len()..end]);
        out.push_str(&format!("{open}{plain}{close}"));
        return Ok(end);
    }
    let mut writer = Writer {
        source: rest,
        tokens: &tokens.list,
        at: 0,
        depth: 0,
    };
    let start = tokens.list.first().map_or(end, |token| token.start);
    out.push_str(&rest[..start]);
    out.push_str(&writer.all(&[])?);
    out.push_str(&rest[tokens.list.last().map_or(start, Token::end)..end]);
    Ok(end)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Text,
    Sign,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    start: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

struct Tokens<'a> {
    list: Vec<Token<'a>>,
    /// After the closing of the tag.
    end: usize,
}

/// The tokens of the tag that `rest` begins with.
fn lex(rest: &str, statement: bool) -> Result<Tokens<'_>> {
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
            let word = tail.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tail.len());
            (Kind::Word, word)
        } else {
            let two = ["**", "//", "==", "!=", "<=", ">="].iter().any(|sign| tail.starts_with(sign));
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

/// Words that are no operands.
const KEYWORDS: [&str; 11] = ["and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "recursive"];
/// Operators between operands and how tightly they bind, as in jinja2's parser.
const OPERATORS: [(&str, u8); 8] = [("+", 1), ("-", 1), ("~", 2), ("*", 3), ("/", 3), ("//", 3), ("%", 3), ("**", 4)];

struct Writer<'a> {
    source: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
}

impl<'a> Writer<'a> {
    fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at)
    }

    fn sees(&self, sign: &str) -> bool {
        self.peek().is_some_and(|token| token.kind == Kind::Sign && token.text == sign)
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
        match (self.at.checked_sub(1).and_then(|before| self.tokens.get(before)), self.peek()) {
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
    fn all(&mut self, ends: &[&str]) -> Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn made(source: &str) -> String {
        prepare(source).unwrap()
    }

    #[test]
    fn operators_become_calls() {
        for (source, expected) in [
            ("{{ a + b }}", "{{ __ponder_add(a, b) }}"),
            (
                "{{ a + b * c ~ d }}",
                "{{ __ponder_add(a, __ponder_join(__ponder_times(b, c), d)) }}",
            ),
            (
                "{{- a ~ 'x' 'y' ~ -b.c[0]|f(x + 1) -}}",
                "{{- __ponder_join(a, 'x' 'y', -b.c[0]|f(__ponder_add(x, 1))) -}}",
            ),
            (
                "{%- set ns.x = (a - b) % 2 == 0 if not c + d else e -%}",
                "{%- set ns.x = __ponder_percent((a - b), 2) == 0 if not __ponder_add(c, d) else e -%}",
            ),
            (
                "{% for m in l[1:] + [x] if m.y is not none %}",
                "{% for m in __ponder_add(__ponder_slice(l, 1, none), [x]) if m.y is not none %}",
            ),
            ("{{ 'a' ~ b is divisibleby 3 }}", "{{ __ponder_join('a', b is divisibleby 3) }}"),
            (
                "{{ x[::-1]['a'] }}{{ {'a': {'b': 1 + 2}} }}",
                "{{ __ponder_slice(x, none, none, -1)['a'] }}{{ {'a': {'b': __ponder_add(1, 2)}} }}",
            ),
            ("{{ 1e-07 - 2 ** 3 }}{{ '}}' }}", "{{ 1e-07 - 2 ** 3 }}{{ '}}' }}"),
            (
                "a {%- generation -%} b {% endgeneration %}\r\nc",
                "a {%- if true -%} b {% endif %}\nc",
            ),
            (
                "{# a + b #}{% raw %}{{ a + b }}{% endraw %}{{ c+d }}",
                "{# a + b #}{% raw %}{{ a + b }}{% endraw %}{{ __ponder_add(c, d) }}",
            ),
        ] {
            assert_eq!(made(source), expected);
        }
    }

    #[test]
    fn long_texts_are_counted_between_letters() {
        let text = format!("\n   {}\n  ", "word ".repeat(20));
        assert_eq!(made(&text), format!("\n   w{{{{ __ponder_count(107) }}}}{}", &text[5..]));
        assert_eq!(made("short"), "short");
    }

    #[test]
    fn what_is_open_is_an_error() {
        for source in [
            "{{ a",
            "{% if",
            "{# x",
            "{{ 'a }}",
            "{% raw %}x",
            "{{ __ponder_add(1, 2) }}",
            "{{ a[1:2:3:4] }}",
        ] {
            assert!(matches!(prepare(source), Err(Error::TemplateSyntax(_))), "{source}");
        }
        assert!(prepare(&format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000))).is_err());
    }
}
