//! Ollama's messages as a conversation.

use protocol::{Content, Message, Role, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::error_body::Refusal;
use crate::request::conversation::message;
use crate::request::fields::Fields;
use crate::request::images::Images;
use crate::request::values::List;

type Result<T> = std::result::Result<T, Refusal>;

/// A message of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct InputMessage {
    role: InputRole,
    content: Option<String>,
    thinking: Option<String>,
    images: Option<Vec<String>>,
    tool_calls: Option<Vec<Call>>,
    tool_name: Option<String>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InputRole {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Call {
    id: Option<String>,
    function: Function,
}

/// A called function; its arguments are an object, never a text.
#[derive(Debug, Deserialize, JsonSchema)]
struct Function {
    name: String,
    arguments: Option<Map<String, Value>>,
}

/// Calls whose results have not come. Results of Ollama's clients name the tool, and most of them no call.
#[derive(Debug, Default)]
struct Calls {
    open: Vec<(String, String)>,
    count: usize,
}

impl Calls {
    fn add(&mut self, call: Call) -> ToolCall {
        // Nine letters and digits; Mistral's templates refuse anything else.
        let id = call.id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call{:05}", self.count));
        self.count += 1;
        self.open.push((id.clone(), call.function.name.clone()));
        ToolCall {
            id,
            name: call.function.name,
            arguments: Value::Object(call.function.arguments.unwrap_or_default()),
        }
    }

    /// The id of the call that a result answers: the named one, else the first of its tool, else the first.
    fn answered(&mut self, id: Option<String>, tool: Option<&str>) -> Option<String> {
        let place = match (&id, tool) {
            (Some(id), _) => self.open.iter().position(|(open, _)| open == id),
            (None, Some(tool)) => self.open.iter().position(|(_, name)| name == tool),
            (None, None) => (!self.open.is_empty()).then_some(0),
        };
        let answered = place.map(|place| self.open.remove(place).0);
        id.or(answered)
    }
}

/// The conversation of a request.
///
/// # Errors
/// If a message makes no sense or an image cannot be read; the refusal names its place.
pub(crate) fn messages(fields: &Fields, list: &List<InputMessage>, images: &mut Images) -> Result<Vec<Message>> {
    let mut calls = Calls::default();
    let read = |at: &Fields| at.read::<InputMessage>()?.message(at, &mut calls, images);
    list.elements(fields, "messages")?.iter().map(read).collect()
}

impl InputMessage {
    fn message(self, at: &Fields, calls: &mut Calls, images: &mut Images) -> Result<Message> {
        let role = match self.role {
            InputRole::System => Role::System,
            InputRole::User => Role::User,
            InputRole::Assistant => Role::Assistant,
            InputRole::Tool => Role::Tool,
        };
        let shown = self.images.unwrap_or_default();
        if !shown.is_empty() && !matches!(role, Role::User | Role::Tool) {
            return at.refuse("images", "only messages of users and results of tools have images");
        }
        let mut content = contents(at, &shown, images)?;
        let text = self.content.unwrap_or_default();
        if !text.is_empty() || content.is_empty() && role != Role::Assistant {
            content.push(Content::text(text));
        }
        let mut read = message(role, content);
        match role {
            Role::Assistant => {
                read.reasoning = self.thinking.filter(|thought| !thought.is_empty());
                read.tool_calls = self
                    .tool_calls
                    .into_iter()
                    .flatten()
                    .map(|call| calls.add(call))
                    .collect();
            }
            Role::Tool => {
                read.tool_call_id = calls.answered(self.tool_call_id, self.tool_name.as_deref());
                read.name = self.tool_name;
            }
            Role::System | Role::User => {}
        }
        Ok(read)
    }
}

/// The images of the field `images`, each base64.
///
/// # Errors
/// If one is no image.
pub(crate) fn contents(at: &Fields, shown: &[String], images: &mut Images) -> Result<Vec<Content>> {
    let image = |(index, data): (usize, &String)| Ok(images.base64(data, &at.path(&format!("images[{index}]")))?);
    shown.iter().enumerate().map(image).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(list: Value) -> Result<Vec<Message>> {
        let body = json!({ "messages": list });
        let fields = Fields::of(&body, "")?;
        #[derive(Deserialize)]
        struct Body {
            messages: List<InputMessage>,
        }
        messages(&fields, &fields.read::<Body>()?.messages, &mut Images::default())
    }

    #[test]
    fn results_find_their_calls_by_tool_by_id_or_by_order() {
        let call = |name: &str| json!({"function": {"name": name, "arguments": {"a": 2}}});
        let turn = |results: [Value; 2]| {
            let [one, other] = results;
            read(json!([{"role": "user", "content": "q"},
                {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("add"), call("now")]}, one, other]))
            .unwrap()
        };
        for results in [
            [
                json!({"role": "tool", "tool_name": "now", "content": "12"}),
                json!({"role": "tool", "tool_name": "add", "content": "5"}),
            ],
            [
                json!({"role": "tool", "tool_call_id": "call00001", "content": "12"}),
                json!({"role": "tool", "content": "5"}),
            ],
        ] {
            let messages = turn(results);
            assert_eq!(
                (messages[1].reasoning.as_deref(), messages[1].content.len()),
                (Some("hm"), 0)
            );
            assert_eq!(messages[1].tool_calls[0].arguments, json!({"a": 2}));
            let ids: Vec<_> = messages[2..]
                .iter()
                .map(|result| result.tool_call_id.as_deref())
                .collect();
            assert_eq!(ids, [Some("call00001"), Some("call00000")]);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (message, place) in [
            (json!({"content": "a"}), "messages[0].role"),
            (json!({"role": "critic"}), "messages[0].role"),
            (json!({"role": "user", "content": ["a"]}), "messages[0].content"),
            (json!({"role": "user", "images": ["?"]}), "messages[0].images[0]"),
            (json!({"role": "system", "images": ["AAAA"]}), "messages[0].images"),
            (
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}),
                "messages[0].tool_calls[0].function.arguments",
            ),
        ] {
            let refusal = read(json!([message])).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(place), "{}", refusal.message);
        }
    }
}
