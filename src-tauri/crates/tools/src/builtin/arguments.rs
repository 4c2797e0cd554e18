//! Arguments of a call by their names.

use serde_json::Value;

/// One that is text.
pub(super) fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// One that is a number from 0.
pub(super) fn number(arguments: &Value, name: &str) -> Option<usize> {
    usize::try_from(arguments.get(name)?.as_u64()?).ok()
}
