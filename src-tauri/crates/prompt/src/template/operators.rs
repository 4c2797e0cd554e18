//! Python's operators for templates.

use minijinja::formatting::FormatStyle;
use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

use super::held::{self, adopt, keep, Mark};
use super::meter::{charge, charged, work, ITEM};
use super::python::{escape, format_checked, is_tuple, python_str};

/// Adds the functions that the prepared source calls. Each counts what it reads and builds.
pub(super) fn add_operators(environment: &mut Environment<'static>) {
    environment.add_function("__ponder_count", |bytes: usize| charge(bytes).map(|()| ""));
    environment.add_function("__ponder_add", |parts: Rest<Value>| fold(&parts, add));
    environment.add_function("__ponder_times", |parts: Rest<Value>| fold(&parts, times));
    environment.add_function("__ponder_join", |parts: Rest<Value>| {
        let mut joined = String::new();
        for part in parts.iter() {
            let text = python_str(part)?;
            charge(text.len())?;
            joined.push_str(&text);
        }
        charged(joined)
    });
    environment.add_function("__ponder_percent", percent);
    environment.add_function(
        "__ponder_slice",
        |value: &Value, start: Option<i64>, stop: Option<i64>, step: Option<i64>| {
            slice(value, start, stop, step.unwrap_or(1))
        },
    );
    environment.add_function("__ponder_item", |value: &Value, key: &Value| {
        work(value.as_str().map_or(0, str::len) + key.as_str().map_or(0, str::len))?;
        value.get_item(key)
    });
    // A literal.
    environment.add_function("__ponder_held", |value: Value| adopt(value));
    // Values that a namespace or a loop is given.
    environment.add_function("__ponder_keep", |mut values: Rest<Value>| {
        values.iter().try_for_each(keep)?;
        match values.len() {
            1 => adopt(values.remove(0)),
            _ => held::list(values.0),
        }
    });
    // The sequence of a loop; a text's letters are counted before.
    environment.add_function("__ponder_each", |value: Value| {
        work(value.as_str().map_or(0, str::len))?;
        adopt(value)
    });
    // Both sides of a comparison, and the container of a search.
    environment.add_function("__ponder_weigh", |value: Value| {
        let weight = match value.as_str() {
            Some(text) => text.len(),
            None => Mark::weight_now(&value)?,
        };
        work(weight).map(|()| value)
    });
}

/// From the left, as Python reckons.
fn fold(parts: &[Value], step: fn(&Value, &Value) -> Result<Value, Error>) -> Result<Value, Error> {
    let (first, rest) = parts
        .split_first()
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    rest.iter().try_fold(first.clone(), |left, right| step(&left, right))
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// The type's name in Python, for messages.
fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Map => "dict",
        _ if is_tuple(value) => "tuple",
        _ => "list",
    }
}

fn unsupported(sign: &str, left: &Value, right: &Value) -> Error {
    if left.is_undefined() || right.is_undefined() {
        return Error::new(ErrorKind::UndefinedError, format!("an operand of {sign} is undefined"));
    }
    let message = format!(
        "unsupported operand types for {sign}: '{}' and '{}'",
        type_name(left),
        type_name(right)
    );
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Two numbers, if both are or are truths.
enum Numbers {
    Whole(i128, i128),
    Broken(f64, f64),
}

fn numbers(left: &Value, right: &Value) -> Option<Numbers> {
    let is_number = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if !is_number(left) || !is_number(right) {
        return None;
    }
    let whole = |value: &Value| match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        _ if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    };
    let broken = |value: &Value| {
        whole(value)
            .map(|number| number as f64)
            .or_else(|| f64::try_from(value.clone()).ok())
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(Numbers::Whole(left, right)),
        _ => Some(Numbers::Broken(broken(left)?, broken(right)?)),
    }
}

fn whole(number: Option<i128>) -> Result<Value, Error> {
    let number = number.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "a number is too large"))?;
    Ok(i64::try_from(number).map_or_else(|_| number.into(), Value::from))
}

fn items(value: &Value, count: usize) -> Result<Vec<Value>, Error> {
    let items: Vec<Value> = value.try_iter()?.collect();
    charge(items.len().saturating_mul(count).saturating_mul(ITEM))?;
    Ok(items)
}

fn list(items: Vec<Value>, tuple: bool) -> Result<Value, Error> {
    match tuple {
        true => held::tuple(items),
        false => held::list(items),
    }
}

/// `left + right`.
pub(super) fn add(left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        charge(a.len() + b.len())?;
        // Markup makes what it is joined with harmless, as in markupsafe.
        return Ok(match (left.is_safe(), right.is_safe()) {
            (false, false) => Value::from([a, b].concat()),
            (true, true) => Value::from_safe_string([a, b].concat()),
            (true, false) => Value::from_safe_string([a, &escape(b)].concat()),
            (false, true) => Value::from_safe_string([&escape(a), b].concat()),
        });
    }
    if is_list(left) && is_list(right) && is_tuple(left) == is_tuple(right) {
        let mut joined = items(left, 1)?;
        joined.extend(items(right, 1)?);
        return list(joined, is_tuple(left));
    }
    match numbers(left, right) {
        Some(Numbers::Whole(a, b)) => whole(a.checked_add(b)),
        Some(Numbers::Broken(a, b)) => Ok((a + b).into()),
        None => Err(unsupported("+", left, right)),
    }
}

fn times(left: &Value, right: &Value) -> Result<Value, Error> {
    match numbers(left, right) {
        Some(Numbers::Whole(a, b)) => return whole(a.checked_mul(b)),
        Some(Numbers::Broken(a, b)) => return Ok((a * b).into()),
        None => {}
    }
    let is_count = |value: &Value| value.is_integer() || value.kind() == ValueKind::Bool;
    let (many, count) = if is_count(right) { (left, right) } else { (right, left) };
    if !is_count(count) {
        return Err(unsupported("*", left, right));
    }
    let times = match count.kind() {
        ValueKind::Bool => usize::from(count.is_true()),
        // A count below zero is none.
        _ => count
            .as_i64()
            .map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(0)),
    };
    if let Some(text) = many.as_str() {
        charge(text.len().saturating_mul(times))?;
        return Ok(text.repeat(times).into());
    }
    if is_list(many) {
        let items = items(many, times)?;
        let repeated = items.iter().cycle().take(items.len() * times).cloned().collect();
        return list(repeated, is_tuple(many));
    }
    Err(unsupported("*", left, right))
}

fn percent(left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(format) = left.as_str() {
        let arguments: Vec<Value> = match is_tuple(right) {
            true => right.try_iter()?.collect(),
            false => vec![right.clone()],
        };
        return format_checked(FormatStyle::Printf, format, &arguments);
    }
    let nothing = || Error::new(ErrorKind::InvalidOperation, "modulo by zero");
    match numbers(left, right) {
        // The sign is the right side's.
        Some(Numbers::Whole(a, b)) => match a.checked_rem(b).ok_or_else(nothing)? {
            rest if rest != 0 && (rest < 0) != (b < 0) => whole(rest.checked_add(b)),
            rest => whole(Some(rest)),
        },
        Some(Numbers::Broken(_, 0.0)) => Err(nothing()),
        Some(Numbers::Broken(a, b)) => {
            let rest = a % b;
            let other_sign = rest != 0.0 && (rest < 0.0) != (b < 0.0);
            Ok((if other_sign { rest + b } else { rest }).into())
        }
        None => Err(unsupported("%", left, right)),
    }
}

/// `value[start:stop:step]`.
pub(super) fn slice(value: &Value, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<Value, Error> {
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "slice step cannot be zero"));
    }
    if let Some(text) = value.as_str() {
        work(text.len())?;
        if step == 1 {
            return slice_of_text(text, start, stop);
        }
        let letters: Vec<char> = text.chars().collect();
        let picked = positions(letters.len(), start, stop, step).map(|at| letters[at]);
        return charged(picked.collect());
    }
    if !is_list(value) {
        return Err(unsupported("[:]", value, &Value::from(())));
    }
    let items = items(value, 1)?;
    let picked = positions(items.len(), start, stop, step)
        .map(|at| items[at].clone())
        .collect();
    list(picked, is_tuple(value))
}

/// `text[start:stop]`, without a list of all letters.
fn slice_of_text(text: &str, start: Option<i64>, stop: Option<i64>) -> Result<Value, Error> {
    let mut picked = positions(text.chars().count(), start, stop, 1);
    let Some(first) = picked.next() else {
        return Ok("".into());
    };
    let count = picked.count() + 1;
    let rest = text.char_indices().nth(first).map_or("", |(at, _)| &text[at..]);
    let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
    charged(rest[..end].to_owned())
}

/// The positions of a slice, as Python's `slice.indices` gives them.
fn positions(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> impl Iterator<Item = usize> {
    let length = length as i64;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |at: i64| match at < 0 {
        true => at.saturating_add(length).max(low),
        false => at.min(high),
    };
    let start = start.map_or(if step > 0 { low } else { high }, bound);
    let stop = stop.map_or(if step > 0 { high } else { low }, bound);
    std::iter::successors(Some(start), move |at| at.checked_add(step))
        .take_while(move |at| if step > 0 { *at < stop } else { *at > stop })
        .map(|at| at as usize)
}
