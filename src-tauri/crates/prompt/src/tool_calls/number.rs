//! Numbers written as text.

use serde_json::{Number, Value};

/// A number as JSON has it.
pub(super) fn number(text: &str) -> Option<Value> {
    text.parse::<Number>().ok().map(Value::Number)
}

/// A number that may begin with zeros, as in `07`, which JSON does not have.
pub(super) fn padded_number(text: &str) -> Option<Value> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let more = digits[zeros..].starts_with(|c: char| c.is_ascii_digit());
    number(&format!(
        "{sign}{}",
        &digits[if more { zeros } else { zeros.saturating_sub(1) }..]
    ))
}
