//! Conversations and tools from files, in the OpenAI chat form.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};
use protocol::{Content, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct FileMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, alias = "reasoning_content")]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Vec<FileCall>,
    name: Option<String>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct FileCall {
    #[serde(default)]
    id: String,
    function: FileFunction,
}

#[derive(Deserialize)]
struct FileFunction {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Reads `--messages FILE`: a JSON list of messages.
///
/// # Errors
/// When the file cannot be read or is not such a list; the message names the place.
pub fn read(path: &Path) -> Result<Vec<Message>> {
    let text = fs::read_to_string(path).with_context(|| format!("the messages file {} cannot be read", path.display()))?;
    parse(&text).with_context(|| format!("{} is not a list of chat messages", path.display()))
}

/// Reads `--tools FILE`: a JSON list of tool declarations.
///
/// # Errors
/// When the file cannot be read or is not a list of objects.
pub fn read_tools(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("the tools file {} cannot be read", path.display()))?;
    let tools: Vec<Value> = serde_json::from_str(&text).with_context(|| format!("{} is not a JSON list of tools", path.display()))?;
    if let Some(position) = tools
        .iter()
        .position(|tool| tool.get("function").and_then(|function| function.get("name")).is_none())
    {
        bail!("tool {} of {} has no function.name", position + 1, path.display());
    }
    Ok(tools)
}

/// Reads `--context FILE`: the variables of a chat template.
///
/// # Errors
/// When the file cannot be read or is not a JSON object.
pub fn read_context(path: &Path) -> Result<serde_json::Map<String, Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("the context file {} cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object of variables", path.display()))
}

fn parse(text: &str) -> Result<Vec<Message>> {
    let list: Vec<FileMessage> = serde_json::from_str(text)?;
    let mut names: HashMap<String, String> = HashMap::new();
    list.into_iter()
        .enumerate()
        .map(|(position, message)| message.convert(&mut names).with_context(|| format!("message {}", position + 1)))
        .collect()
}

impl FileMessage {
    /// `names` remembers which tool each call id belongs to, because the OpenAI form leaves the name out of the answer.
    fn convert(self, names: &mut HashMap<String, String>) -> Result<Message> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => bail!("role {other:?} is none of system, user, assistant, tool"),
        };
        let tool_calls: Vec<ToolCall> = self
            .tool_calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| call.convert(index))
            .collect::<Result<_>>()?;
        names.extend(tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
        let name = self
            .name
            .or_else(|| self.tool_call_id.as_ref().and_then(|id| names.get(id).cloned()));
        Ok(Message {
            role,
            content: content(self.content)?,
            reasoning: self.reasoning,
            tool_calls,
            name,
            tool_call_id: self.tool_call_id,
        })
    }
}

impl FileCall {
    fn convert(self, index: usize) -> Result<ToolCall> {
        // The OpenAI form carries arguments as a JSON text, the Hugging Face form as an object.
        let arguments = match self.function.arguments {
            Value::String(text) => {
                serde_json::from_str(&text).with_context(|| format!("the arguments of {} are not JSON", self.function.name))?
            }
            Value::Null => Value::Object(serde_json::Map::new()),
            other => other,
        };
        let id = if self.id.is_empty() { format!("call_{index}") } else { self.id };
        Ok(ToolCall {
            id,
            name: self.function.name,
            arguments,
        })
    }
}

fn content(value: Value) -> Result<Vec<Content>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Content::Text { text }]),
        Value::Array(parts) => parts
            .into_iter()
            .map(|part| match (part["type"].as_str(), part["text"].as_str()) {
                (Some("text"), Some(text)) => Ok(Content::Text { text: text.to_owned() }),
                (kind, _) => bail!("a content part of type {:?} is not supported; only text is", kind.unwrap_or("none")),
            })
            .collect(),
        data @ Value::Object(_) => Ok(vec![Content::Data { data }]),
        other => bail!("the content {other} is neither text, a list of parts, nor a tool's data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_answer_finds_the_name_of_its_call() {
        let messages = parse(
            r#"[{"role":"user","content":"Weather?"},
                {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},
                {"role":"tool","tool_call_id":"a","content":"12 degrees"}]"#,
        )
        .unwrap();
        assert_eq!(messages[1].tool_calls[0].arguments, serde_json::json!({"city": "Oslo"}));
        assert_eq!(messages[2].name.as_deref(), Some("get_weather"));
        assert_eq!(messages[2].plain_text(), "12 degrees");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = parse(r#"[{"role":"user","content":"a"},{"role":"robot","content":"b"}]"#).unwrap_err();
        assert!(
            format!("{error:#}").contains("message 2") && format!("{error:#}").contains("robot"),
            "{error:#}"
        );
    }
}
