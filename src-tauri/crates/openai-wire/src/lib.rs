//! Conversations and tools as JSON in the form of OpenAI's chat API.

use std::collections::{HashMap, HashSet};

use protocol::{Content, Error, ErrorCode, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A conversation or a tool that does not have this form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{param}: {reason}")]
pub struct InvalidParam {
    /// The place, such as `messages[3].content[1]`.
    pub param: String,
    /// The error at that place.
    pub reason: String,
}

impl From<InvalidParam> for Error {
    fn from(error: InvalidParam) -> Self {
        Self::new(ErrorCode::BadRequest, error.to_string())
    }
}

type Result<T> = std::result::Result<T, InvalidParam>;

fn invalid<T>(param: impl Into<String>, reason: impl ToString) -> Result<T> {
    Err(InvalidParam {
        param: param.into(),
        reason: reason.to_string(),
    })
}

/// A message on the wire. Unknown fields are ignored.
#[derive(Deserialize)]
struct WireMessage {
    role: String,
    #[serde(default)]
    content: Value,
    reasoning: Option<String>,
    /// The older name of the same field; it wins, because programs that send both mean this one.
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
    name: Option<String>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WireCall {
    #[serde(default)]
    id: String,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Reads a list of messages. `developer` is a synonym of `system`; a call without an id gets a deterministic one. A
/// call with invalid JSON arguments is left out if nobody answered it: the answer was cut off there, and the call never
/// ran.
///
/// # Errors
/// If something is not such a list, or a part is not text; the error names the place.
pub fn messages(list: Vec<Value>) -> Result<Vec<Message>> {
    messages_with_images(list, &mut |_, param| {
        invalid(param, "images are not read here; only text is")
    })
}

/// The same with parts of type `image_url`: `image` turns the address and the place of each into a part.
///
/// # Errors
/// As [`messages`], and any error of `image`.
pub fn messages_with_images(
    list: Vec<Value>,
    image: &mut dyn FnMut(&str, &str) -> Result<Content>,
) -> Result<Vec<Message>> {
    let id = |message: &Value| message["tool_call_id"].as_str().map(str::to_owned);
    let answered = list.iter().filter_map(id);
    let mut calls = Calls {
        answered: answered.collect(),
        ..Calls::default()
    };
    let read = |(index, value)| {
        let param = format!("messages[{index}]");
        match WireMessage::deserialize(value) {
            Ok(message) => message.read(&param, &mut calls, image),
            Err(error) => invalid(param, error),
        }
    };
    list.into_iter().enumerate().map(read).collect()
}

/// Checks a list of tool declarations, which go to the chat templates unchanged.
///
/// # Errors
/// If one has no `function.name`; the error names its place.
pub fn tools(list: Vec<Value>) -> Result<Vec<Value>> {
    let nameless = list.iter().position(|tool| !tool["function"]["name"].is_string());
    match nameless {
        Some(index) => invalid(format!("tools[{index}]"), "there is no function.name"),
        None => Ok(list),
    }
}

/// The calls of the conversation so far.
#[derive(Default)]
struct Calls {
    /// The tool of each call id, because this form leaves its name out of the result.
    names: HashMap<String, String>,
    /// The ids that results name.
    answered: HashSet<String>,
    count: usize,
}

impl Calls {
    /// `None` for a call that was cut off.
    fn read(&mut self, call: WireCall, param: &str) -> Result<Option<ToolCall>> {
        // This form carries arguments as a JSON text, Hugging Face's as an object.
        let arguments = match call.function.arguments {
            // Some servers write missing arguments as an empty text.
            Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(arguments) => arguments,
                // Without an id, a call cannot be matched to its answer.
                Err(_) if !call.id.is_empty() && !self.answered.contains(&call.id) => return Ok(None),
                Err(error) => return invalid(format!("{param}.function.arguments"), format!("no JSON: {error}")),
            },
            Value::Null => Value::Object(Map::new()),
            other => other,
        };
        // Nine letters and digits; Mistral's templates refuse anything else.
        let id = if call.id.is_empty() {
            format!("call{:05}", self.count)
        } else {
            call.id
        };
        self.count += 1;
        self.names.insert(id.clone(), call.function.name.clone());
        Ok(Some(ToolCall {
            id,
            name: call.function.name,
            arguments,
        }))
    }
}

impl WireMessage {
    fn read(
        self,
        param: &str,
        calls: &mut Calls,
        image: &mut dyn FnMut(&str, &str) -> Result<Content>,
    ) -> Result<Message> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => {
                let reason = format!("{other:?} is none of system, user, assistant, tool");
                return invalid(format!("{param}.role"), reason);
            }
        };
        let tool_calls = self.tool_calls.unwrap_or_default().into_iter().enumerate();
        let tool_calls = tool_calls
            .filter_map(|(index, call)| calls.read(call, &format!("{param}.tool_calls[{index}]")).transpose())
            .collect::<Result<_>>()?;
        let called = || calls.names.get(self.tool_call_id.as_ref()?).cloned();
        Ok(Message {
            role,
            content: content(self.content, &format!("{param}.content"), image)?,
            reasoning: self.reasoning_content.or(self.reasoning),
            tool_calls,
            name: self.name.or_else(called),
            tool_call_id: self.tool_call_id,
        })
    }
}

fn content(value: Value, param: &str, image: &mut dyn FnMut(&str, &str) -> Result<Content>) -> Result<Vec<Content>> {
    let part = |(index, part): (usize, Value)| match (
        part["type"].as_str(),
        part["text"].as_str(),
        part["refusal"].as_str(),
    ) {
        (Some("text"), Some(text), _) | (Some("refusal"), _, Some(text)) => Ok(Content::Text { text: text.to_owned() }),
        (Some("image_url"), ..) => {
            let param = format!("{param}[{index}]");
            // Some programs leave out the object around the address.
            match part["image_url"]["url"].as_str().or(part["image_url"].as_str()) {
                Some(url) => image(url, &param),
                None => invalid(param, "there is no image_url.url"),
            }
        }
        (kind, ..) => {
            let kind = kind.unwrap_or("none");
            let reason = format!("a part of type {kind:?} is not supported; only text and image_url are");
            invalid(format!("{param}[{index}]"), reason)
        }
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Content::Text { text }]),
        Value::Array(parts) => parts.into_iter().enumerate().map(part).collect(),
        data @ Value::Object(_) => Ok(vec![Content::Data { data }]),
        other => {
            let reason = format!("{other} is neither text, a list of parts, nor a tool's data");
            invalid(param, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Message>> {
        messages(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_tool_result_finds_the_name_of_its_call() {
        let messages = read(
            r#"[{"role":"user","content":"Weather?"},
                {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},
                {"role":"tool","tool_call_id":"a","content":"12 degrees"}]"#,
        )
        .unwrap();
        assert_eq!(messages[1].tool_calls[0].arguments, serde_json::json!({"city": "Oslo"}));
        assert_eq!(messages[2].name.as_deref(), Some("get_weather"));
        let text = "12 degrees".to_owned();
        assert_eq!(messages[2].content, [Content::Text { text }]);
    }

    #[test]
    fn images_are_parts_where_somebody_reads_them() {
        let list = serde_json::json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,a", "detail": "low"}},
            {"type": "text", "text": "b"}, {"type": "image_url", "image_url": "data:,c"}]}]);
        let mut seen = Vec::new();
        let read = messages_with_images(serde_json::from_value(list.clone()).unwrap(), &mut |url, param| {
            seen.push((url.to_owned(), param.to_owned()));
            Ok(Content::text("<image>"))
        });
        assert_eq!(read.unwrap()[0].text_with_placeholders(), "<image>b<image>");
        let place = |url: &str, part: u32| (url.to_owned(), format!("messages[0].content[{part}]"));
        assert_eq!(seen, [place("data:,a", 0), place("data:,c", 2)]);
        assert_eq!(
            messages(serde_json::from_value(list).unwrap()).unwrap_err().param,
            "messages[0].content[0]"
        );
    }

    #[test]
    fn both_names_of_instructions_and_of_reasoning_are_read() {
        let messages = read(
            r#"[{"role":"system","content":"a"},{"role":"developer","content":"b"},
                {"role":"assistant","content":"c","reasoning":"r"},
                {"role":"assistant","content":"d","reasoning":"r","reasoning_content":"s","tool_calls":null}]"#,
        )
        .unwrap();
        assert_eq!((messages[0].role, messages[1].role), (Role::System, Role::System));
        let reasoning: Vec<_> = messages[2..]
            .iter()
            .map(|message| message.reasoning.as_deref())
            .collect();
        assert_eq!(reasoning, [Some("r"), Some("s")]);
    }

    #[test]
    fn a_refusal_is_text_and_no_arguments_are_none() {
        let messages = read(
            r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}],
                "tool_calls":[{"id":"c","function":{"name":"f","arguments":""}}]}]"#,
        )
        .unwrap();
        assert_eq!(messages[0].text_with_placeholders(), "ab");
        assert_eq!(messages[0].tool_calls[0].arguments, serde_json::json!({}));
    }

    #[test]
    fn calls_without_ids_get_ids_that_differ() {
        let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f"}}]}"#;
        let ids: Vec<String> = read(&format!("[{call},{call}]"))
            .unwrap()
            .into_iter()
            .flat_map(|message| message.tool_calls)
            .map(|call| call.id)
            .collect();
        assert_eq!(ids, ["call00000", "call00001", "call00002", "call00003"]);
    }

    #[test]
    fn a_call_that_was_cut_is_left_out_unless_somebody_answered_it() {
        let cut = r#"{"role":"assistant","content":"I look.","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{\"city\": \"Pa"}}]}"#;
        let next = r#"{"role":"tool","tool_call_id":"a","content":"1"},{"role":"user","content":"Go on."}"#;
        let messages = read(&format!("[{cut},{next}]")).unwrap();
        let ids: Vec<&str> = messages[0].tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((ids.as_slice(), messages.len()), (["a"].as_slice(), 3));
        let answered = read(&format!(
            r#"[{cut},{next},{{"role":"tool","tool_call_id":"b","content":"2"}}]"#
        ));
        assert_eq!(
            answered.unwrap_err().param,
            "messages[0].tool_calls[1].function.arguments"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, param, word) in [
            (
                r#"[{"role":"user","content":"a"},{"role":"robot","content":"b"}]"#,
                "messages[1].role",
                "robot",
            ),
            (r#"[{"content":"a"}]"#, "messages[0]", "role"),
            (
                r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"sound"}]}]"#,
                "messages[0].content[1]",
                "sound",
            ),
            (r#"[{"role":"user","content":7}]"#, "messages[0].content", "7"),
            (
                r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}]"#,
                "messages[0].tool_calls[0].function.arguments",
                "JSON",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.param, param);
            assert!(error.reason.contains(word), "{error}");
        }
        let error = tools(vec![
            serde_json::json!({"function": {"name": "f"}}),
            serde_json::json!({"type": "function"}),
        ])
        .unwrap_err();
        assert_eq!(error.param, "tools[1]");
    }
}
