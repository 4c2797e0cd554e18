//! JSON schemas as grammars.

use std::sync::LazyLock;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::ParserFactory;
use serde_json::{json, Value};

use crate::error::{Error, Result};

/// Blanks between two parts of an answer; more is what a small model writes when it does not know how to go on.
const BLANKS: &str = r"[\x20\x0A\x0D\x09]{1,64}";

/// llguidance's own options stand in a schema under this name.
const OPTIONS: &str = "x-guidance";

/// Compiles schemas for their errors alone; its tokens are the 256 bytes.
static BYTES: LazyLock<std::result::Result<ParserFactory, String>> =
    LazyLock::new(|| factory(&ApproximateTokEnv::single_byte_env()).map_err(|error| error.to_string()));

/// A factory of parsers that write nothing to standard error, and no answers into their errors.
pub(crate) fn factory(tokens: &llguidance::toktrie::TokEnv) -> anyhow::Result<ParserFactory> {
    let mut factory = ParserFactory::new_simple(tokens)?;
    factory.quiet();
    factory.limits_mut().verbose_errors = false;
    Ok(factory)
}

/// The schema of any JSON object, which `json_object` asks for.
pub fn any_object() -> Value {
    json!({"type": "object"})
}

/// Refuses a schema that cannot be honoured, before a model is loaded for it.
///
/// # Errors
/// [`Error::Schema`] names the keyword.
pub fn check(schema: &Value) -> Result<()> {
    let factory = BYTES.as_ref().map_err(|error| Error::Schema(error.clone()))?;
    parser(factory, schema).map(drop)
}

/// A parser of answers in the form of this schema.
pub(crate) fn parser(factory: &ParserFactory, schema: &Value) -> Result<llguidance::TokenParser> {
    let mut schema = match schema {
        Value::Object(schema) => schema.clone(),
        Value::Bool(true) => serde_json::Map::new(),
        Value::Bool(false) => return Err(Error::Schema("`false` allows no answer".into())),
        _ => return Err(Error::Schema("it is not an object".into())),
    };
    if schema.contains_key(OPTIONS) {
        return Err(Error::Schema(format!("\"{OPTIONS}\" is not a keyword of JSON Schema")));
    }
    schema.insert(OPTIONS.into(), json!({"whitespace_pattern": BLANKS}));
    let grammar = TopLevelGrammar::from_json_schema(schema.into());
    factory
        .create_parser(grammar)
        .map_err(|error| Error::Schema(reason(&error.to_string())))
}

/// What llguidance says, in one line.
fn reason(message: &str) -> String {
    let words = message.lines().next().unwrap_or_default();
    words.replace("Unimplemented keys:", "keywords that are not supported:")
}
