//! Values as Python prints them, with `str`, `repr` and `format`. Templates were written and models trained with those.

use minijinja::formatting::{format as format_text, FormatStyle};
use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::held::DEPTH;
use super::meter::{charge, too_long, work, LONGEST};

/// The result of Python's `str`: a text as it is, everything else as `repr`.
///
/// # Errors
/// If it is longer than any text may be, or nested more deeply than any value.
pub(super) fn python_str(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::String => value.to_string(),
        _ => python_repr(value)?,
    })
}

pub(super) fn python_repr(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(&mut out, value, 0)?;
    Ok(out)
}

#[cold]
pub(super) fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, "values are nested too deeply")
}

/// Ends early if the text is longer than any may be, because lists of one list grow without bound.
fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    too_long(out.len())?;
    work(0)?;
    // A namespace is nested as deeply as any value, and may be in one.
    if depth > 2 * DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => out.push_str(&quoted(value.as_str().unwrap_or_default())),
        ValueKind::Seq => {
            let (open, close) = if is_tuple(value) { ('(', ')') } else { ('[', ']') };
            out.push(open);
            let mut count = 0;
            for item in value.try_iter().into_iter().flatten() {
                if count > 0 {
                    out.push_str(", ");
                }
                write_repr(out, &item, depth + 1)?;
                count += 1;
            }
            if count == 1 && is_tuple(value) {
                out.push(',');
            }
            out.push(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (position, key) in value.try_iter().into_iter().flatten().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key).unwrap_or_default(), depth + 1)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let single = !text.contains('\'') || text.contains('"');
    let quote = if single { '\'' } else { '"' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c != ' ' && !is_printable(c) => out.push_str(&match u32::from(c) {
                code @ ..=0xFF => format!("\\x{code:02x}"),
                code @ ..=0xFFFF => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// As Python's `str.isprintable`; only a text's first letter is escaped for being an accent without a letter.
fn is_printable(c: char) -> bool {
    c.is_ascii_graphic() || !format!("a{c}").escape_debug().any(|escaped| escaped == '\\')
}

/// True if Python prints it as a tuple.
pub(super) fn is_tuple(value: &Value) -> bool {
    value.downcast_object_ref::<Tuple>().is_some()
}

/// A number as Python's `repr` writes it: `1.0`, `1e-07`, `1e+16`, integers plain.
pub(super) fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(float) = f64::try_from(value.clone()) else {
        return value.to_string();
    };
    if float.is_nan() {
        return "nan".into();
    }
    let magnitude = float.abs();
    if magnitude.is_infinite() || magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        return match magnitude.fract() == 0.0 && magnitude.is_finite() {
            true => format!("{float:.1}"),
            false => float.to_string(),
        };
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the format writes an exponent");
    let (sign, digits) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A format with its arguments put in, if that cannot become too long.
pub(super) fn format_checked(style: FormatStyle, format: &str, arguments: &[Value]) -> Result<Value, Error> {
    let mut widths = format.split(|c: char| !c.is_ascii_digit());
    let width = widths
        .clone()
        .map(|digits| digits.parse().unwrap_or(0usize))
        .max()
        .unwrap_or(0);
    if width > LONGEST || widths.any(|digits| digits.len() > 8) {
        return too_long(usize::MAX).map(|()| Value::UNDEFINED);
    }
    let mut argument = 0;
    for value in arguments {
        if value.kind() != ValueKind::Map {
            argument = argument.max(python_str(value)?.len());
            continue;
        }
        for key in value.try_iter()? {
            argument = argument.max(python_str(&value.get_item(&key)?)?.len());
        }
    }
    let places = format.matches(['%', '{']).count();
    charge(format.len() + places.saturating_mul(width.max(argument)))?;
    format_text(style, format, arguments).map(Value::from)
}

/// HTML's signs as markupsafe writes them.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;
    use serde_json::json;

    use super::*;

    #[test]
    fn printing_follows_python() {
        let value = json!([null, true, 1, 1.0, 123456789012345680.0, 0.0001, "it's", "a\"b'c\n", {"k": "v"}]);
        assert_eq!(
            python_str(&Value::from(Serde(&value))).unwrap(),
            r#"[None, True, 1, 1.0, 1.2345678901234568e+17, 0.0001, "it's", 'a"b\'c\n', {'k': 'v'}]"#
        );
        assert_eq!(python_str(&Value::from("plain")).unwrap(), "plain");
    }
}
