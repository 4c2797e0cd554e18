//! JSON schemas as grammars.

use std::sync::LazyLock;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::{ParserFactory, TokenParser};
use protocol::CallBody;
use serde_json::{json, Value};

use crate::call_grammar;
use crate::error::{Error, Result};
use crate::limits;
use crate::literal::checked;

/// States of an answer's lexer, of one to two kB each.
const MOST_STATES: usize = 50_000;

/// Compiles schemas for their errors alone; its tokens are the 256 bytes.
static BYTES: LazyLock<std::result::Result<ParserFactory, String>> =
    LazyLock::new(|| factory(&ApproximateTokEnv::single_byte_env()).map_err(|error| error.to_string()));

/// A factory of parsers that write nothing to standard error, and no answers into their errors.
pub(crate) fn factory(tokens: &llguidance::toktrie::TokEnv) -> anyhow::Result<ParserFactory> {
    let mut factory = ParserFactory::new_simple(tokens)?;
    factory.quiet();
    let limits = factory.limits_mut();
    limits.verbose_errors = false;
    limits.max_lexer_states = MOST_STATES;
    Ok(factory)
}

/// The schema of any JSON object, which `json_object` asks for.
pub fn any_object() -> Value {
    json!({"type": "object"})
}

/// Refuses a schema that cannot be honored, before a model is loaded for it.
///
/// # Errors
/// [`Error::Schema`] names the keyword.
pub fn check(schema: &Value) -> Result<()> {
    let factory = BYTES.as_ref().map_err(|error| Error::Schema(error.clone()))?;
    parser(factory, schema).map(drop)
}

/// Refuses tools whose calls cannot be held to what they declare, before a model is loaded for them.
///
/// # Errors
/// [`Error::Schema`] names the tool and the keyword.
pub fn check_calls(body: &CallBody, tools: &[Value]) -> Result<()> {
    on_deep_stack(|| call_grammar::lark(body, tools).map(drop))?;
    match body {
        CallBody::Json { .. } => tools.iter().try_for_each(|tool| check(&call_grammar::parameters(tool))),
        // Its rules were checked while they were written.
        CallBody::Gemma { .. } => Ok(()),
    }
}

/// A parser of answers in the form of this schema.
pub(crate) fn parser(factory: &ParserFactory, schema: &Value) -> Result<TokenParser> {
    compile(factory, || Ok(TopLevelGrammar::from_json_schema(checked(schema)?)))
}

/// A parser of calls in this form of these tools.
pub(crate) fn call_parser(factory: &ParserFactory, body: &CallBody, tools: &[Value]) -> Result<TokenParser> {
    compile(factory, || {
        Ok(TopLevelGrammar::from_lark(call_grammar::lark(body, tools)?))
    })
}

/// Compiles a grammar.
fn compile(factory: &ParserFactory, grammar: impl FnOnce() -> Result<TopLevelGrammar> + Send) -> Result<TokenParser> {
    on_deep_stack(|| {
        let parser = factory.create_parser(grammar()?);
        parser.map_err(|error| Error::Schema(reason(&error.to_string())))
    })
}

/// Runs this on a stack that the deepest schema fits on.
fn on_deep_stack<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("schema".into())
            .stack_size(limits::STACK);
        thread.spawn_scoped(scope, run).map(|thread| thread.join())
    });
    match result {
        Ok(Ok(result)) => result,
        Ok(Err(_)) | Err(_) => Err(Error::Schema("it cannot be compiled".into())),
    }
}

/// llguidance's message, in one line.
fn reason(message: &str) -> String {
    let words = message.lines().next().unwrap_or_default();
    if words.starts_with("panic:") {
        return "it cannot be compiled".into();
    }
    words.replace("Unimplemented keys:", "keywords that are not supported:")
}
