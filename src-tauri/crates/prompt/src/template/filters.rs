//! jinja2's filters and tests, where minijinja's differ or are missing.

use minijinja::formatting::FormatStyle;
use minijinja::value::{from_args, Kwargs, Rest, Value, ValueKind};
use minijinja::Error;

use super::library::{sum, Cost, Library, LONGEST_PATH};
use super::meter::{charge, charged};
use super::operators::add;
use super::python::{escape, format_checked, python_repr, python_str};
use super::text::{among, invalid, is_blank, join, replace, split_blanks, text_method, title};

/// A filter that makes one text of another.
type Change = fn(&str) -> String;

/// Adds them.
pub(super) fn add_filters(library: &mut Library) {
    use Cost::{All, Glance, Items};
    let escaped = |value: &Value| match value.is_safe() {
        true => Ok(value.clone()),
        false => force_escape(value),
    };
    library.filter("escape", All, escaped);
    library.filter("e", All, escaped);
    library.filter("forceescape", All, force_escape);
    let texts: [(&str, Change); 5] = [
        ("upper", str::to_uppercase),
        ("lower", str::to_lowercase),
        ("title", |text| title(text, |c| !begins_word(c))),
        ("striptags", strip_tags),
        ("urlencode", url_encode),
    ];
    for (name, change) in texts {
        library.filter(name, All, move |value: &Value| charged(change(&python_str(value)?)));
    }
    library.filter("string", All, |value: &Value| -> Result<Value, Error> {
        if value.as_str().is_some() {
            return Ok(value.clone());
        }
        charged(python_str(value)?)
    });
    library.filter("trim", All, |value: &Value, chars: Option<&str>| {
        let text = python_str(value)?;
        let listed = chars.map(among);
        let goes = |c: char| listed.as_ref().map_or_else(|| is_blank(c), |listed| listed(c));
        charged(text.trim_matches(goes).to_owned())
    });
    library.filter(
        "replace",
        All,
        |value: &Value, old: &Value, new: &Value, count: Option<i64>| {
            replace(&python_str(value)?, &python_str(old)?, &python_str(new)?, count)
        },
    );
    library.filter("format", All, |value: &Value, args: Rest<Value>| {
        format_checked(FormatStyle::Printf, &python_str(value)?, &args)
    });
    library.filter("join", All, join_filter);
    library.filter("sum", All, sum(add));
    library.filter("wordcount", All, |value: &Value| -> Result<usize, Error> {
        let text = python_str(value)?;
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        Ok(words.filter(|word| !word.is_empty()).count())
    });
    library.filter("center", All, |value: &Value, width: Option<usize>| {
        let width = Value::from(width.unwrap_or(80));
        text_method(&python_str(value)?, "center", &[width]).map(Option::unwrap_or_default)
    });
    library.filter("truncate", All, truncate);
    library.filter(
        "int",
        Items,
        |value: &Value, default: Option<Value>, base: Option<u32>, kwargs: Kwargs| {
            let default = default.or(kwargs.get("default")?).unwrap_or_else(|| 0.into());
            let base = base.or(kwargs.get("base")?).unwrap_or(10);
            kwargs.assert_all_used()?;
            Ok::<_, Error>(whole_number(value, base).map_or(default, Value::from))
        },
    );
    library.filter("float", Items, |value: &Value, default: Option<Value>| {
        let number = match value.as_str() {
            Some(text) => text.trim().replace('_', "").parse().ok(),
            None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
            None => f64::try_from(value.clone()).ok(),
        };
        number.map_or_else(|| default.unwrap_or_else(|| 0.0.into()), Value::from)
    });
    library.filter("default", Glance, default);
    library.filter("d", Glance, default);
    library.filter("pprint", All, |value: &Value| charged(python_repr(value)?));
    let length = |value: &Value| -> Result<usize, Error> {
        match value.len() {
            Some(length) => Ok(length),
            None if value.is_undefined() => Ok(0),
            None => Err(invalid("the value has no length")),
        }
    };
    library.filter("length", Glance, length);
    library.filter("count", Glance, length);
    library.test("sequence", Glance, |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map) || value.is_undefined()
    });
    library.test("callable", Glance, |value: &Value| value.kind() == ValueKind::Plain);
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
    value: &Value,
    separator: Option<Value>,
    attribute: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let separator = separator.or(kwargs.get("d")?);
    let separator = separator.map_or_else(|| Ok(String::new()), |separator| python_str(&separator))?;
    let attribute = attribute.or(kwargs.get("attribute")?);
    kwargs.assert_all_used()?;
    if value.is_undefined() {
        return Ok("".into());
    }
    let Some(attribute) = attribute else {
        return join(value, &separator);
    };
    if attribute.as_str().is_some_and(|path| path.len() > LONGEST_PATH) {
        return Err(invalid("the name of an attribute is too long"));
    }
    let named: Vec<Value> = value
        .try_iter()?
        .map(|item| match attribute.as_str() {
            Some(path) => path.split('.').try_fold(item, |item, name| item.get_attr(name)),
            None => item.get_item(&attribute),
        })
        .collect::<Result<_, _>>()?;
    join(&named.into(), &separator)
}

/// Words begin after blanks and opening brackets.
fn begins_word(before: char) -> bool {
    before.is_whitespace() || matches!(before, '-' | '(' | '{' | '[' | '<')
}

fn force_escape(value: &Value) -> Result<Value, Error> {
    let text = escape(&python_str(value)?);
    charge(text.len())?;
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

fn truncate(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let text = python_str(value)?;
    let (length, kill, end, leeway): (Option<usize>, Option<bool>, Option<&str>, Option<usize>) = from_args(&args)?;
    let length = length.or(kwargs.get("length")?).unwrap_or(255);
    let kill = kill.or(kwargs.get("killwords")?).unwrap_or(false);
    let end = end.or(kwargs.get("end")?).unwrap_or("...");
    let leeway = leeway.or(kwargs.get("leeway")?).unwrap_or(5);
    kwargs.assert_all_used()?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return charged(text);
    }
    let kept: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = if kill {
        kept.as_str()
    } else {
        kept.rsplit_once(' ').map_or(kept.as_str(), |(kept, _)| kept)
    };
    charged(format!("{kept}{end}"))
}
