//! A chat template's source, made ready for minijinja: operators that Python understands otherwise, or that build long
//! texts, become calls of the functions in [`operators`](super::operators), and what minijinja does not know goes.

mod edits;
mod lexer;
mod writer;

use crate::error::Result;
use lexer::{broken, lex, Token};
use writer::{Writer, RESERVED};

/// Plain text longer than this is counted where it is written.
const LONG_TEXT: usize = 64;

/// The longest source, ten times that of any model. It is compiled before anything is counted.
const LONGEST: usize = 2 << 20;
/// Branches of the conditions that are open: each `elif` is one in the other for the compiler.
const MOST_BRANCHES: usize = 250;
/// Blocks, which each call of a macro goes through.
const MOST_BLOCKS: usize = 50;

/// The source for minijinja.
///
/// # Errors
/// If a tag is not closed, if it is longer or more deeply nested than any model's, or if it uses a reserved name.
pub(super) fn prepare(source: &str) -> Result<String> {
    if source.len() > LONGEST {
        return Err(broken("it is longer than any model's"));
    }
    if source.contains(RESERVED) {
        return Err(broken("a name that begins with __ponder_ is reserved"));
    }
    // jinja2 makes all line ends one.
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len() + source.len() / 4);
    let mut rest = source.as_str();
    let mut structure = Structure::default();
    while let Some(at) = next_tag(rest) {
        let before = &source[..source.len() - rest.len()];
        write_text(&mut out, before, &rest[..at], &rest[at..]);
        rest = &rest[at..];
        let length = if rest.starts_with("{#") {
            rest.find("#}").ok_or_else(|| broken("a comment is not closed"))? + 2
        } else {
            tag(&mut out, rest, &mut structure)?
        };
        if rest.starts_with("{#") {
            out.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    write_text(&mut out, &source[..source.len() - rest.len()], rest, "");
    Ok(out)
}

/// The offset of the next tag or comment.
fn next_tag(text: &str) -> Option<usize> {
    let opens = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(opens)
}

/// Writes plain text; a long one with a count between two of its letters, where it touches no blanks. `before` and
/// `after` are the source around it.
fn write_text(out: &mut String, before: &str, text: &str, after: &str) {
    let counted = |at: usize| {
        format!(
            "{}{{{{ {RESERVED}count({}) }}}}{}",
            &text[..at],
            text.len(),
            &text[at..]
        )
    };
    match (text.len() > LONG_TEXT).then(|| seam(before, text, after)).flatten() {
        Some(at) => out.push_str(&counted(at)),
        None => out.push_str(text),
    }
}

/// A place inside of a text where a tag changes nothing of what is written.
fn seam(before: &str, text: &str, after: &str) -> Option<usize> {
    let mut letters = text.char_indices().zip(text.chars().skip(1));
    let between = letters.find(|((_, left), right)| !left.is_whitespace() && !right.is_whitespace() && *left != '{');
    if let Some(((at, left), _)) = between {
        return Some(at + left.len_utf8());
    }
    // Blanks alone. Beside a dash they go, and none are written; a block takes those between it and its line's
    // beginning, and the end of its own line.
    if ["-%}", "-}}", "-#}"].iter().any(|dash| before.ends_with(dash))
        || ["{%-", "{{-", "{#-"].iter().any(|dash| after.starts_with(dash))
    {
        return None;
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    let last_line = match after.starts_with("{{") || after.is_empty() {
        true => text.len(),
        // Without a line's end, what stands before it stands on the same line.
        false => text.rfind('\n').or((!before.is_empty()).then_some(text.len()))?,
    };
    (first < last_line).then_some(first)
}

/// The statements around a tag, as far as the compiler does not count them itself.
#[derive(Default)]
struct Structure {
    /// For each open condition its branches so far.
    conditions: Vec<usize>,
    branches: usize,
    blocks: usize,
}

impl Structure {
    fn add(&mut self, word: &str) -> Result<()> {
        match word {
            "if" => self.conditions.push(0),
            "elif" => {
                if let Some(branches) = self.conditions.last_mut() {
                    *branches += 1;
                    self.branches += 1;
                }
            }
            "endif" => self.branches -= self.conditions.pop().unwrap_or(0),
            "block" => self.blocks += 1,
            // A chat template has no neighbours; transformers finds none either.
            "include" | "import" | "from" | "extends" => return Err(broken("a template cannot use others")),
            _ => {}
        }
        match self.branches > MOST_BRANCHES || self.blocks > MOST_BLOCKS {
            true => Err(broken("statements are nested too deeply")),
            false => Ok(()),
        }
    }
}

/// Writes the tag that `rest` begins with; gives its length. A raw block is taken whole.
fn tag(out: &mut String, rest: &str, structure: &mut Structure) -> Result<usize> {
    let statement = rest.starts_with("{%");
    let tokens = lex(rest, statement)?;
    let end = tokens.end;
    let word = tokens.list.first().map_or("", |token| token.text);
    if statement {
        structure.add(word)?;
    }
    if statement && word == "raw" {
        let closing = rest[end..]
            .match_indices("{%")
            .map(|(at, _)| end + at)
            .find(|at| {
                rest[at + 2..]
                    .trim_start_matches(['-', '+'])
                    .trim_start()
                    .starts_with("endraw")
            })
            .ok_or_else(|| broken("a raw block is not closed"))?;
        let length = closing
            + rest[closing..]
                .find("%}")
                .ok_or_else(|| broken("a raw block is not closed"))?
            + 2;
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
        let (open, close) = (
            &rest[..tokens.list[0].start],
            &rest[tokens.list[0].start + word.len()..end],
        );
        out.push_str(&format!("{open}{plain}{close}"));
        return Ok(end);
    }
    let start = tokens.list.first().map_or(end, |token| token.start);
    out.push_str(&rest[..start]);
    Writer::new(&tokens.list).tag(statement)?.write(out, rest, &tokens.list);
    out.push_str(&rest[tokens.list.last().map_or(start, Token::end)..end]);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

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
                "{%- set ns.x = __ponder_keep(__ponder_percent((a - b), 2) == 0 if not __ponder_add(c, d) else e) -%}",
            ),
            (
                "{% for m in l[1:] + [x] if m.y is not none %}",
                "{% for m in __ponder_each(__ponder_add(__ponder_slice(l, 1, none), __ponder_held([x]))) if m.y is not none %}",
            ),
            (
                "{{ 'a' ~ b is divisibleby 3 }}",
                "{{ __ponder_join('a', b is divisibleby 3) }}",
            ),
            (
                "{{ x[::-1]['a'] }}{{ {'a': {'b': 1 + 2}} }}",
                "{{ __ponder_slice(x, none, none, -1)['a'] }}{{ __ponder_held({'a': {'b': __ponder_add(1, 2)}}) }}",
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
        assert_eq!(
            made(&text),
            format!("\n   w{{{{ __ponder_count(107) }}}}{}", &text[5..])
        );
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
