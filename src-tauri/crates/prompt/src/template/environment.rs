//! A minijinja environment that renders chat templates as transformers' jinja environment does.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{escape_formatter, Environment, ErrorKind};

use super::json::{python_str, tojson};

/// Instructions one rendering may take: about a second. The longest real conversations take a hundredth of it.
const FUEL: u64 = 20_000_000;
/// Depth of nested calls; a macro call counts for five, and a test thread's stack holds this much.
const RECURSION_LIMIT: usize = 250;

/// What a template said with `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub String);

/// An environment without templates.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // Keeps words of the chat out of error messages.
    environment.set_debug(false);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_LIMIT);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the standard delimiters do not clash"));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_formatter(|out, state, value| {
        if value.is_undefined() || value.as_str().is_some() {
            escape_formatter(out, state, value)
        } else {
            Ok(out.write_str(&python_str(value))?)
        }
    });
    environment.add_filter("tojson", tojson);
    environment.add_filter("indent", indent);
    environment.add_filter("string", |value: &Value| python_str(value));
    // None is not iterable in Python.
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && !value.is_undefined() && value.try_iter().is_ok()
    });
    environment.add_function("raise_exception", |message: String| -> Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, "the template raised an exception").with_source(Refusal(message)))
    });
    environment.add_function("strftime_now", |format: &str| {
        jiff::fmt::strtime::format(format, &jiff::Zoned::now())
            .map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
    environment
}

/// `indent(width=4, first=false, blank=false)`; unlike minijinja's it keeps a newline at the end, as Python's does.
fn indent(text: &str, width: Option<Value>, first: Option<bool>, blank: Option<bool>, kwargs: Kwargs) -> Result<String, minijinja::Error> {
    let width = width.or(kwargs.get("width")?);
    let first = first.or(kwargs.get("first")?).unwrap_or(false);
    let blank = blank.or(kwargs.get("blank")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    let indention = match &width {
        Some(width) if width.as_str().is_some() => width.to_string(),
        Some(width) => " ".repeat(usize::try_from(width.clone())?.min(1024)),
        None => " ".repeat(4),
    };
    let lines = text.split('\n').enumerate().map(|(number, line)| {
        let indented = if number == 0 { first } else { blank || !line.is_empty() };
        format!("{}{line}", if indented { indention.as_str() } else { "" })
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The source with `{% generation %}` blocks, which mark an assistant's tokens for training, made into plain blocks.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, tag)) = rest.split_once("{%") {
        let Some((inner, after)) = tag.split_once("%}") else { break };
        let word = match inner.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace()) {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        let Some(word) = word else {
            // Goes on right behind the opening, so that an `{%` in a text or a comment hides no tag.
            out.push_str(before);
            out.push_str("{%");
            rest = tag;
            continue;
        };
        let sign = |sign: Option<char>| sign.filter(|c| matches!(c, '-' | '+')).map(String::from).unwrap_or_default();
        let (left, right) = (sign(inner.chars().next()), sign(inner.chars().next_back()));
        out.push_str(&format!("{before}{{%{left} {word} {right}%}}"));
        rest = after;
    }
    out.push_str(rest);
    out
}
