//! jinja2's filters and tests, where minijinja's differ or are missing.

use minijinja::formatting::FormatStyle;
use minijinja::value::{from_args, Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, State};

use super::budget::{charge, charged};
use super::python::{escape, format_checked, python_repr, python_str};
use super::text::{invalid, is_blank, join, replace, split_blanks, text_method, title};

/// A filter that makes one text of another.
type Change = fn(&str) -> String;

/// Adds them.
pub(super) fn add_filters(environment: &mut Environment<'static>) {
    let escaped = |state: &mut State, value: &Value| match value.is_safe() {
        true => Ok(value.clone()),
        false => force_escape(state, value),
    };
    environment.add_filter("escape", escaped);
    environment.add_filter("e", escaped);
    environment.add_filter("forceescape", force_escape);
    let texts: [(&str, Change); 5] = [
        ("upper", str::to_uppercase),
        ("lower", str::to_lowercase),
        ("title", |text| title(text, |c| !begins_word(c))),
        ("striptags", strip_tags),
        ("urlencode", url_encode),
    ];
    for (name, change) in texts {
        environment.add_filter(name, move |state: &mut State, value: &Value| {
            charged(state, change(&python_str(value)))
        });
    }
    environment.add_filter("string", |state: &mut State, value: &Value| -> Result<Value, Error> {
        if value.as_str().is_some() {
            return Ok(value.clone());
        }
        charged(state, python_str(value))
    });
    environment.add_filter("trim", |state: &mut State, value: &Value, chars: Option<&str>| {
        let text = python_str(value);
        let goes = |c: char| chars.map_or_else(|| is_blank(c), |chars| chars.contains(c));
        charged(state, text.trim_matches(goes).to_owned())
    });
    environment.add_filter(
        "replace",
        |state: &mut State, value: &Value, old: &Value, new: &Value, count: Option<i64>| {
            replace(state, &python_str(value), &python_str(old), &python_str(new), count)
        },
    );
    environment.add_filter("format", |state: &mut State, value: &Value, args: Rest<Value>| {
        format_checked(state, FormatStyle::Printf, &python_str(value), &args)
    });
    environment.add_filter("join", join_filter);
    environment.add_filter("wordcount", |value: &Value| {
        let text = python_str(value);
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .count()
    });
    environment.add_filter("center", |state: &mut State, value: &Value, width: Option<usize>| {
        let width = Value::from(width.unwrap_or(80));
        text_method(state, &python_str(value), "center", &[width]).map(Option::unwrap_or_default)
    });
    environment.add_filter("truncate", truncate);
    environment.add_filter(
        "int",
        |value: &Value, default: Option<Value>, base: Option<u32>, kwargs: Kwargs| {
            let default = default.or(kwargs.get("default")?).unwrap_or_else(|| 0.into());
            let base = base.or(kwargs.get("base")?).unwrap_or(10);
            kwargs.assert_all_used()?;
            Ok::<_, Error>(whole_number(value, base).map_or(default, Value::from))
        },
    );
    environment.add_filter("float", |value: &Value, default: Option<Value>| {
        let number = match value.as_str() {
            Some(text) => text.trim().replace('_', "").parse().ok(),
            None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
            None => f64::try_from(value.clone()).ok(),
        };
        number.map_or_else(|| default.unwrap_or_else(|| 0.0.into()), Value::from)
    });
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("pprint", |state: &mut State, value: &Value| {
        charged(state, python_repr(value))
    });
    let length = |value: &Value| -> Result<usize, Error> {
        match value.len() {
            Some(length) => Ok(length),
            None if value.is_undefined() => Ok(0),
            None => Err(invalid("the value has no length")),
        }
    };
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map) || value.is_undefined()
    });
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
}

fn cut(number: Option<f64>) -> Option<i64> {
    number.filter(|number| number.is_finite()).map(|number| number as i64)
}

fn whole_number(value: &Value, base: u32) -> Option<i64> {
    if let Some(text) = value.as_str() {
        let text = text.trim().replace('_', "");
        let digits = match base {
            0 | 16 => text.trim_start_matches("0x").trim_start_matches("0X"),
            8 => text.trim_start_matches("0o"),
            2 => text.trim_start_matches("0b"),
            _ => text.as_str(),
        };
        let base = match base {
            0 if digits.len() == text.len() => 10,
            0 => 16,
            base => base,
        };
        let whole = (2..=36).contains(&base).then(|| i64::from_str_radix(digits, base).ok());
        return whole.flatten().or_else(|| cut(text.parse().ok()));
    }
    match value.kind() {
        ValueKind::Bool => Some(value.is_true().into()),
        ValueKind::Number => i64::try_from(value.clone())
            .ok()
            .or_else(|| cut(f64::try_from(value.clone()).ok())),
        _ => None,
    }
}

fn default(value: &Value, other: Option<Value>, lax: Option<bool>, kwargs: Kwargs) -> Result<Value, Error> {
    let other = other.or(kwargs.get("default_value")?).unwrap_or_else(|| "".into());
    let lax = lax.or(kwargs.get("boolean")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    Ok(if value.is_undefined() || (lax && !value.is_true()) {
        other
    } else {
        value.clone()
    })
}

fn join_filter(
    state: &mut State,
    value: &Value,
    separator: Option<Value>,
    attribute: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let separator = separator
        .or(kwargs.get("d")?)
        .map_or_else(String::new, |separator| python_str(&separator));
    let attribute = attribute.or(kwargs.get("attribute")?);
    kwargs.assert_all_used()?;
    if value.is_undefined() {
        return Ok("".into());
    }
    let Some(attribute) = attribute else {
        return join(state, value, &separator);
    };
    let named: Vec<Value> = value
        .try_iter()?
        .map(|item| match attribute.as_str() {
            Some(path) => path.split('.').try_fold(item, |item, name| item.get_attr(name)),
            None => item.get_item(&attribute),
        })
        .collect::<Result<_, _>>()?;
    join(state, &named.into(), &separator)
}

/// Words begin after blanks and opening brackets.
fn begins_word(before: char) -> bool {
    before.is_whitespace() || matches!(before, '-' | '(' | '{' | '[' | '<')
}

fn force_escape(state: &mut State, value: &Value) -> Result<Value, Error> {
    let text = escape(&python_str(value));
    charge(state, text.len())?;
    Ok(Value::from_safe_string(text))
}

fn strip_tags(text: &str) -> String {
    let (first, tags) = text.split_once('<').unwrap_or((text, ""));
    let words = tags
        .split('<')
        .map(|tag| tag.split_once('>').map_or(tag, |(_, rest)| rest));
    let bare: String = std::iter::once(first).chain(words).collect();
    split_blanks(&bare, usize::MAX, false).join(" ")
}

fn url_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let code = |byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

fn truncate(state: &mut State, value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let text = python_str(value);
    let (length, kill, end, leeway): (Option<usize>, Option<bool>, Option<&str>, Option<usize>) = from_args(&args)?;
    let length = length.or(kwargs.get("length")?).unwrap_or(255);
    let kill = kill.or(kwargs.get("killwords")?).unwrap_or(false);
    let end = end.or(kwargs.get("end")?).unwrap_or("...");
    let leeway = leeway.or(kwargs.get("leeway")?).unwrap_or(5);
    kwargs.assert_all_used()?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return charged(state, text);
    }
    let kept: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = if kill {
        kept.as_str()
    } else {
        kept.rsplit_once(' ').map_or(kept.as_str(), |(kept, _)| kept)
    };
    charged(state, format!("{kept}{end}"))
}
