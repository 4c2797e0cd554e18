//! A minijinja environment that renders chat templates as transformers' jinja environment does.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{from_args, Kwargs, Rest, Value};
use minijinja::{escape_formatter, Environment, ErrorKind};

use super::filters::add_filters;
use super::json::tojson;
use super::library::{add_minijinjas, Cost, Library};
use super::meter::{charge, charged};
use super::operators::add_operators;
use super::python::python_str;
use super::text::method;

/// Depth of nested calls; a macro call counts for five, and a test thread's stack holds this much.
const RECURSION_LIMIT: usize = 250;

/// Letters of a refusal; people read it.
const LONGEST_REFUSAL: usize = 2000;

/// The message that a template passed to `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub String);

/// An environment without templates.
pub(super) fn environment() -> Environment<'static> {
    // Functions that minijinja brings along are not counted, so it begins empty, and all are added below.
    let mut environment = Environment::empty();
    // Keeps words of the chat out of error messages.
    environment.set_debug(false);
    environment.set_recursion_limit(RECURSION_LIMIT);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the standard delimiters do not clash"));
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, state, value| {
        if value.is_undefined() || value.as_str().is_some() {
            charge(value.as_str().map_or(0, str::len))?;
            return escape_formatter(out, state, value);
        }
        let text = python_str(value)?;
        charge(text.len())?;
        Ok(out.write_str(&text)?)
    });
    add_operators(&mut environment);
    let mut library = Library(&mut environment);
    add_minijinjas(&mut library);
    add_filters(&mut library);
    library.filter("tojson", Cost::All, tojson);
    library.filter("indent", Cost::Items, indent);
    // None is not iterable in Python.
    library.test("iterable", Cost::Glance, |value: &Value| {
        !value.is_none() && !value.is_undefined() && value.try_iter().is_ok()
    });
    library.function("raise_exception", Cost::Items, |message: String| {
        let refusal = Refusal(message.chars().take(LONGEST_REFUSAL).collect());
        Err::<Value, _>(
            minijinja::Error::new(ErrorKind::InvalidOperation, "the template raised an exception").with_source(refusal),
        )
    });
    set_clock(&mut environment, jiff::Zoned::now);
    environment
}

/// Sets the clock of `strftime_now`.
pub(super) fn set_clock(environment: &mut Environment<'static>, now: impl Fn() -> jiff::Zoned + Send + Sync + 'static) {
    let mut library = Library(environment);
    library.function("strftime_now", Cost::Items, move |format: &str| {
        // No directive writes more than this.
        charge(format.len().saturating_mul(16))?;
        let now = now();
        jiff::fmt::strtime::format(directives(format, &now), &now)
            .map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
}

/// The directives that Python's `strftime` gives another meaning, for a time without a zone in an English that asks for
/// no locale.
fn directives(format: &str, now: &jiff::Zoned) -> String {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('c') => out.push_str("%a %b %e %H:%M:%S %Y"),
            Some('x') => out.push_str("%m/%d/%y"),
            Some('X') => out.push_str("%H:%M:%S"),
            Some('Z' | 'z') => {}
            Some('f') => out.push_str(&format!("{:06}", now.subsec_nanosecond() / 1000)),
            directive => {
                out.push('%');
                out.extend(directive);
            }
        }
    }
    out
}

/// `indent(width=4, first=false, blank=false)`; unlike minijinja's it keeps a newline at the end, as Python's does.
fn indent(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, minijinja::Error> {
    let text = python_str(value)?;
    let (width, first, blank): (Option<Value>, Option<bool>, Option<bool>) = from_args(&args)?;
    let width = width.or(kwargs.get("width")?);
    let first = first.or(kwargs.get("first")?).unwrap_or(false);
    let blank = blank.or(kwargs.get("blank")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    let indention = match &width {
        Some(width) if width.as_str().is_some() => width.to_string(),
        Some(width) => " ".repeat(usize::try_from(width.clone())?.min(1024)),
        None => " ".repeat(4),
    };
    charge(text.split('\n').count().saturating_mul(indention.len()))?;
    let lines = text.split('\n').enumerate().map(|(number, line)| {
        let indented = if number == 0 { first } else { blank || !line.is_empty() };
        format!("{}{line}", if indented { indention.as_str() } else { "" })
    });
    charged(lines.collect::<Vec<_>>().join("\n"))
}
