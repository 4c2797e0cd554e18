//! JSON schemas and texts as llguidance takes them inside of a grammar.

use serde_json::{json, Map, Value};

use crate::closing::closed;
use crate::error::{Error, Result};
use crate::limits;

/// Blanks between two parts of an answer, enough for a line end and an indentation; more is what a small model writes
/// when it does not know how to go on.
const BLANKS: &str = r"[\x20\x0A\x0D\x09]{1,16}";

/// llguidance's own options stand in a schema under this name.
const OPTIONS: &str = "x-guidance";

/// A schema as llguidance takes it, with what it leaves open closed.
///
/// # Errors
/// [`Error::Schema`] if it costs too much or says nothing that can be followed.
pub(crate) fn checked(schema: &Value) -> Result<Value> {
    match schema {
        Value::Object(keywords) if keywords.contains_key(OPTIONS) => {
            return Err(Error::Schema(format!("\"{OPTIONS}\" is not a keyword of JSON Schema")));
        }
        Value::Object(_) | Value::Bool(true) => limits::check(schema)?,
        Value::Bool(false) => return Err(Error::Schema("`false` allows no answer".into())),
        _ => return Err(Error::Schema("it is not an object".into())),
    }
    let mut keywords = match closed(schema) {
        Value::Object(keywords) => keywords,
        _ => Map::new(),
    };
    keywords.insert(OPTIONS.into(), json!({"whitespace_pattern": BLANKS}));
    Ok(keywords.into())
}

/// A text as a literal of a grammar.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
