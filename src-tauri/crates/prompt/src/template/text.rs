//! Python's methods of texts, where minijinja's differ or are missing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use minijinja::formatting::FormatStyle;
use minijinja::value::{from_args, Kwargs, Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::held::adopt;
use super::library::{read, Cost};
use super::meter::{charge, work, ITEM};
use super::operators::slice;
use super::python::{format_checked, python_str};

/// The characters that Python's `str.strip` removes.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Tells which characters are among these.
pub(super) fn among(chars: &str) -> impl Fn(char) -> bool + '_ {
    /// Letters that are looked through one by one.
    const FEW: usize = 32;
    let sorted: Option<BTreeSet<char>> = (chars.len() > FEW).then(|| chars.chars().collect());
    move |c| {
        sorted
            .as_ref()
            .map_or_else(|| chars.contains(c), |sorted| sorted.contains(&c))
    }
}

/// Methods of values: texts as in Python, the rest as minijinja knows them. What goes in is counted here; a text that
/// grows is counted where it does.
pub(super) fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let cost = match (value.as_str(), name) {
        (None, "get" | "keys" | "values" | "items" | "is_integer") => Cost::Glance,
        (None, _) => Cost::All,
        (Some(_), _) => Cost::Items,
    };
    read(std::slice::from_ref(value), cost)?;
    read(args, if name == "get" { Cost::Glance } else { Cost::All })?;
    let result = any_method(state, value, name, args)?;
    match result.as_str() {
        Some(text) => work(text.len()).map(|()| result),
        None => adopt(result),
    }
}

fn any_method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        if let Some(result) = text_method(text, name, args)? {
            return Ok(result);
        }
    }
    if name == "index" && matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        let (wanted,): (&Value,) = from_args(args)?;
        let found = value.try_iter()?.position(|item| item == *wanted).map(Value::from);
        return found.ok_or_else(|| invalid("the value is not in the list"));
    }
    if name == "is_integer" && value.kind() == ValueKind::Number {
        let whole = f64::try_from(value.clone()).is_ok_and(|number| number.fract() == 0.0);
        return Ok(whole.into());
    }
    let result = unknown_method_callback(state, value, name, args)?;
    charge(result.as_str().map_or(0, str::len))?;
    Ok(result)
}

pub(super) fn invalid(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.to_owned())
}

fn texts(parts: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    parts.into_iter().map(Into::into).collect::<Vec<Value>>().into()
}

pub(super) fn text_method(text: &str, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let all = |test: fn(char) -> bool| Value::from(!text.is_empty() && text.chars().all(test));
    let result = match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<Cow<'_, str>>,) = from_args(args)?;
            let listed = chars.as_deref().map(among);
            let goes = |c: char| listed.as_ref().map_or_else(|| is_blank(c), |listed| listed(c));
            match name {
                "strip" => text.trim_matches(goes),
                "lstrip" => text.trim_start_matches(goes),
                _ => text.trim_end_matches(goes),
            }
            .into()
        }
        "title" => title(text, is_cased).into(),
        "swapcase" => {
            let swap = |c: char| -> String {
                match c.is_uppercase() {
                    true => c.to_lowercase().collect(),
                    false => c.to_uppercase().collect(),
                }
            };
            text.chars().map(swap).collect::<String>().into()
        }
        "casefold" => text.to_lowercase().replace('ß', "ss").into(),
        "split" | "rsplit" => {
            let (separator, most, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
            let separator = separator.or(kwargs.get("sep")?).filter(|one| !one.is_none());
            let most = most.or(kwargs.get("maxsplit")?);
            let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
            kwargs.assert_all_used()?;
            let Some(separator) = separator else {
                return counted(texts(split_blanks(text, most, name == "rsplit")));
            };
            let separator = separator.as_str().filter(|separator| !separator.is_empty());
            let separator = separator.ok_or_else(|| invalid("empty separator"))?;
            if name == "split" {
                return counted(texts(text.splitn(most.saturating_add(1), separator)));
            }
            let parts: Vec<&str> = text.rsplitn(most.saturating_add(1), separator).collect();
            texts(parts.into_iter().rev())
        }
        "splitlines" => {
            let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = keep.or(kwargs.get("keepends")?).unwrap_or(false);
            texts(split_lines(text, keep))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let found = match name {
                "partition" => text.split_once(separator),
                _ => text.rsplit_once(separator),
            };
            let parts = match found {
                Some((left, right)) => [left, separator, right],
                None if name == "partition" => [text, "", ""],
                None => ["", "", text],
            };
            Tuple::from(parts.map(Value::from)).into()
        }
        "index" | "rindex" => {
            let (wanted,): (&str,) = from_args(args)?;
            let found = match name {
                "index" => text.find(wanted),
                _ => text.rfind(wanted),
            };
            let at = found.ok_or_else(|| invalid("substring not found"))?;
            text[..at].chars().count().into()
        }
        "startswith" | "endswith" if args.len() > 1 => {
            let (affix, start, stop): (&Value, Option<i64>, Option<i64>) = from_args(args)?;
            let part = slice(&text.into(), start, stop, 1)?;
            let part = part.as_str().unwrap_or_default();
            let fits = |affix: &Value| -> Result<bool, Error> {
                let affix = affix.as_str().ok_or_else(|| invalid("not a text"))?;
                Ok(match name {
                    "startswith" => part.starts_with(affix),
                    _ => part.ends_with(affix),
                })
            };
            if affix.as_str().is_some() {
                return Ok(Some(fits(affix)?.into()));
            }
            let mut found = false;
            for one in affix.try_iter()? {
                found = found || fits(&one)?;
            }
            found.into()
        }
        "removeprefix" | "removesuffix" => {
            let (affix,): (&str,) = from_args(args)?;
            let cut = match name {
                "removeprefix" => text.strip_prefix(affix),
                _ => text.strip_suffix(affix),
            };
            cut.unwrap_or(text).into()
        }
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            return replace(text, old, new, count).map(Some);
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            return join(items, text).map(Some);
        }
        "format" => return format_checked(FormatStyle::StrFormat, text, args).map(Some),
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let sign = text.len() - text.strip_prefix(['-', '+']).unwrap_or(text).len();
            let fill = fill("0", width.saturating_sub(text.chars().count()))?;
            format!("{}{fill}{}", &text[..sign], &text[sign..]).into()
        }
        "center" | "ljust" | "rjust" => {
            let (width, with): (usize, Option<&str>) = from_args(args)?;
            let gap = width.saturating_sub(text.chars().count());
            let left = match name {
                "center" => gap / 2 + (gap & width & 1),
                "ljust" => 0,
                _ => gap,
            };
            let with = with.unwrap_or(" ");
            (fill(with, left)? + text + &fill(with, gap - left)?).into()
        }
        "expandtabs" => {
            let (width,): (Option<usize>,) = from_args(args)?;
            return expand_tabs(text, width.unwrap_or(8)).map(Some);
        }
        "isdecimal" | "isdigit" => all(|c| c.is_numeric() && !is_fraction(c)),
        "isspace" => all(is_blank),
        "istitle" => (text.chars().any(char::is_alphabetic) && title(text, is_cased) == text).into(),
        "isprintable" => text.chars().all(|c| !c.is_control()).into(),
        "isidentifier" => {
            (all(|c| c.is_alphanumeric() || c == '_').is_true() && !text.starts_with(|c: char| c.is_numeric())).into()
        }
        _ => return Ok(None),
    };
    counted(result)
}

/// A result that was counted.
fn counted(result: Value) -> Result<Option<Value>, Error> {
    let items = || result.len().unwrap_or(0).saturating_mul(ITEM);
    charge(result.as_str().map_or_else(items, str::len))?;
    Ok(Some(result))
}

/// Numbers that are no digits: fractions and Roman ones.
fn is_fraction(c: char) -> bool {
    matches!(c, '¼'..='¾' | '\u{2150}'..='\u{218B}')
}

fn fill(with: &str, count: usize) -> Result<String, Error> {
    charge(with.len().saturating_mul(count))?;
    Ok(with.repeat(count))
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

/// A capital letter at the beginning and after each that is not inside of a word.
pub(super) fn title(text: &str, inside: impl Fn(char) -> bool) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match std::mem::replace(&mut begins, !inside(c)) {
            true => out.extend(c.to_uppercase()),
            false => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Parts between runs of blanks, at most `most` times split.
pub(super) fn split_blanks(text: &str, most: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_matches(is_blank);
    while !rest.is_empty() {
        let cut = match from_right {
            true => rest.rfind(is_blank),
            false => rest.find(is_blank),
        };
        let Some(cut) = cut.filter(|_| parts.len() < most) else {
            parts.push(rest);
            break;
        };
        let (left, right) = rest.split_at(cut);
        if from_right {
            parts.push(right.trim_matches(is_blank));
            rest = left.trim_end_matches(is_blank);
        } else {
            parts.push(left);
            rest = right.trim_start_matches(is_blank);
        }
    }
    if from_right {
        parts.reverse();
    } else if parts.len() > most {
        // The last part keeps its trailing blanks.
        let last = parts
            .last()
            .map_or(0, |last| last.as_ptr() as usize - text.as_ptr() as usize);
        parts.pop();
        parts.push(&text[last..]);
    }
    parts
}

fn split_lines(text: &str, keep: bool) -> Vec<&str> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        let end = if rest[at..].starts_with("\r\n") {
            at + 2
        } else {
            at + rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        lines.push(&rest[..if keep { end } else { at }]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

fn expand_tabs(text: &str, width: usize) -> Result<Value, Error> {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = if width == 0 { 0 } else { width - column % width };
                out.push_str(&fill(" ", blanks)?);
                column += blanks;
            }
            c => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(out.into())
}

pub(super) fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<Value, Error> {
    let count = count.and_then(|count| usize::try_from(count).ok());
    let found = text.matches(old).take(count.unwrap_or(usize::MAX)).count();
    charge(text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(match count {
        Some(count) => text.replacen(old, new, count),
        None => text.replace(old, new),
    }
    .into())
}

pub(super) fn join(items: &Value, separator: &str) -> Result<Value, Error> {
    let mut out = String::new();
    for (position, item) in items.try_iter()?.enumerate() {
        let item = python_str(&item)?;
        charge(separator.len() + item.len())?;
        if position > 0 {
            out.push_str(separator);
        }
        out.push_str(&item);
    }
    Ok(out.into())
}
