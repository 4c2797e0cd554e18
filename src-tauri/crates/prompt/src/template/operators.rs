//! Python's operators for templates.

use minijinja::formatting::FormatStyle;
use minijinja::value::{Rest, Tuple, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use super::budget::{charge, charged, size, ITEM};
use super::python::{escape, format_checked, is_tuple, python_str};

pub(super) fn add_operators(environment: &mut Environment<'static>) {
    environment.add_function("__ponder_count", |state: &mut State, bytes: usize| {
        charge(state, bytes).map(|()| "")
    });
    environment.add_function("__ponder_add", |state: &mut State, parts: Rest<Value>| {
        fold(state, &parts, add)
    });
    environment.add_function("__ponder_times", |state: &mut State, parts: Rest<Value>| {
        fold(state, &parts, times)
    });
    environment.add_function("__ponder_join", |state: &mut State, parts: Rest<Value>| {
        let mut joined = String::new();
        for part in parts.iter() {
            charge(state, size(part))?;
            joined.push_str(&python_str(part));
        }
        charged(state, joined)
    });
    environment.add_function("__ponder_percent", percent);
    environment.add_function(
        "__ponder_slice",
        |value: &Value, start: Option<i64>, stop: Option<i64>, step: Option<i64>| {
            slice(value, start, stop, step.unwrap_or(1))
        },
    );
}

/// From the left, as Python reckons.
fn fold(
    state: &mut State,
    parts: &[Value],
    step: fn(&mut State, &Value, &Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let (first, rest) = parts
        .split_first()
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    rest.iter()
        .try_fold(first.clone(), |left, right| step(state, &left, right))
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

fn items(state: &mut State, value: &Value, count: usize) -> Result<Vec<Value>, Error> {
    let items: Vec<Value> = value.try_iter()?.collect();
    charge(state, items.len().saturating_mul(count).saturating_mul(ITEM))?;
    Ok(items)
}

fn list(items: Vec<Value>, tuple: bool) -> Value {
    match tuple {
        true => Tuple::from(items).into(),
        false => items.into(),
    }
}

fn add(state: &mut State, left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        charge(state, a.len() + b.len())?;
        // Markup makes what it is joined with harmless, as in markupsafe.
        return Ok(match (left.is_safe(), right.is_safe()) {
            (false, false) => Value::from([a, b].concat()),
            (true, true) => Value::from_safe_string([a, b].concat()),
            (true, false) => Value::from_safe_string([a, &escape(b)].concat()),
            (false, true) => Value::from_safe_string([&escape(a), b].concat()),
        });
    }
    if is_list(left) && is_list(right) && is_tuple(left) == is_tuple(right) {
        let mut joined = items(state, left, 1)?;
        joined.extend(items(state, right, 1)?);
        return Ok(list(joined, is_tuple(left)));
    }
    match numbers(left, right) {
        Some(Numbers::Whole(a, b)) => whole(a.checked_add(b)),
        Some(Numbers::Broken(a, b)) => Ok((a + b).into()),
        None => Err(unsupported("+", left, right)),
    }
}

fn times(state: &mut State, left: &Value, right: &Value) -> Result<Value, Error> {
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
        charge(state, text.len().saturating_mul(times))?;
        return Ok(text.repeat(times).into());
    }
    if is_list(many) {
        let items = items(state, many, times)?;
        let repeated = items.iter().cycle().take(items.len() * times).cloned().collect();
        return Ok(list(repeated, is_tuple(many)));
    }
    Err(unsupported("*", left, right))
}

fn percent(state: &mut State, left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(format) = left.as_str() {
        let arguments: Vec<Value> = match is_tuple(right) {
            true => right.try_iter()?.collect(),
            false => vec![right.clone()],
        };
        return format_checked(state, FormatStyle::Printf, format, &arguments);
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
        let letters: Vec<char> = text.chars().collect();
        let picked: String = positions(letters.len(), start, stop, step)
            .map(|at| letters[at])
            .collect();
        return Ok(picked.into());
    }
    if !is_list(value) {
        return Err(unsupported("[:]", value, &Value::from(())));
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let picked = positions(items.len(), start, stop, step)
        .map(|at| items[at].clone())
        .collect();
    Ok(list(picked, is_tuple(value)))
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
