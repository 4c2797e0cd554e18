//! Calls of tools as grammars, in llguidance's dialect of Lark.

use protocol::CallBody;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::gemma_arguments;
use crate::literal::{checked, quoted};

/// The schema of a tool's arguments, which are an object whether it says so or not.
pub(crate) fn parameters(tool: &Value) -> Value {
    let mut parameters = match &tool["function"]["parameters"] {
        Value::Object(parameters) => parameters.clone(),
        Value::Null => Map::new(),
        other => return other.clone(),
    };
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.into()
}

/// The grammar of a call of one of these tools, which are declared as chat templates take them.
///
/// # Errors
/// [`Error::Schema`] if the arguments of a tool cannot be honored.
pub(crate) fn lark(body: &CallBody, tools: &[Value]) -> Result<String> {
    let (mut starts, mut rules) = (Vec::new(), Vec::new());
    for (index, tool) in tools.iter().enumerate() {
        let function = &tool["function"];
        let name = function["name"].as_str().unwrap_or_default();
        let parameters = parameters(tool);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/".contains(c)) {
            return Err(Error::Schema(format!(
                "the tool's name {name:?} has other characters than letters, digits and _-.:/"
            )));
        }
        let named = |error: Error| match error {
            Error::Schema(reason) => Error::Schema(format!("the tool {name:?}: {reason}")),
            other => other,
        };
        match body {
            CallBody::Json { before, between, after } => {
                let frame = [quoted(&format!("{before}{name}{between}")), quoted(after)];
                let schema = checked(&parameters).map_err(named)?;
                rules.push(format!("call_{index}: {} arguments_{index} {}", frame[0], frame[1]));
                rules.push(format!("arguments_{index}: %json {schema}"));
            }
            CallBody::Gemma { quote } => {
                let arguments = format!("arguments_{index}");
                rules.push(format!("call_{index}: {} {arguments}", quoted(&format!("call:{name}"))));
                rules.extend(gemma_arguments::rules(&arguments, &parameters, *quote).map_err(named)?);
            }
        }
        starts.push(format!("call_{index}"));
    }
    if starts.is_empty() {
        return Err(Error::Schema("there are no tools".into()));
    }
    Ok(format!("start: {}\n{}\n", starts.join(" | "), rules.join("\n")))
}
