//! A conversation as the variables of a chat template.

use std::borrow::Cow;

use protocol::{Content, Message, Thinking};
use serde_json::{json, Map, Value};

use checkpoint::ImagePlan;

use super::tool_conventions::ToolConventions;

/// How the content of messages that hold images is given to a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentFormat {
    /// As a list of parts, those of images of this type, of which the template writes the placeholders.
    Parts(&'static str),
    /// As one text in which this character stands for an image, for templates that know no parts. No message contains
    /// it.
    Inline(char),
}

/// The conversation that a prompt is rendered from.
#[derive(Debug, Clone, Copy, Default)]
pub struct RenderRequest<'a> {
    /// The conversation, oldest first.
    pub messages: &'a [Message],
    /// Tools in the OpenAI form `{"type":"function","function":{…}}`.
    pub tools: &'a [Value],
    /// The Thinking switch; `None` passes nothing and leaves the template's default.
    pub thinking: Option<Thinking>,
    /// True if the prompt ends where an answer begins.
    pub add_generation_prompt: bool,
    /// The plans of the conversation's images, in their order. Without any, images are mentioned by name.
    pub images: &'a [ImagePlan],
}

impl RenderRequest<'_> {
    /// The variables that transformers' `apply_chat_template` passes for the same conversation, as a template with
    /// these conventions accepts them; images in this format, or as words.
    pub(crate) fn variables(&self, conventions: ToolConventions, format: Option<ContentFormat>) -> Map<String, Value> {
        let mut variables = Map::new();
        let messages = self.messages.iter().map(|one| message(one, conventions, format));
        variables.insert("messages".into(), messages.collect());
        let tools = (!self.tools.is_empty()).then_some(self.tools);
        variables.insert("tools".into(), tools.into());
        variables.insert("documents".into(), Value::Null);
        variables.insert("add_generation_prompt".into(), self.add_generation_prompt.into());
        let Some(thinking) = self.thinking else {
            return variables;
        };
        // Templates call the switch one or the other.
        for name in ["enable_thinking", "thinking"] {
            variables.insert(name.into(), (thinking != Thinking::Off).into());
        }
        // MiniMax's switch is a word.
        let mode = if thinking == Thinking::Off {
            "disabled"
        } else {
            "enabled"
        };
        variables.insert("thinking_mode".into(), mode.into());
        let effort = match thinking {
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
            Thinking::On => return variables,
            Thinking::Off => {
                // Seed's switch is a budget.
                variables.insert("thinking_budget".into(), 0.into());
                return variables;
            }
        };
        for name in ["reasoning_effort", "thinking_effort", "reasoning_strength"] {
            variables.insert(name.into(), effort.into());
        }
        variables
    }
}

/// A message in the form that templates expect: content as one text, as an object that a tool returned, or as a list of
/// parts if an image is among them; arguments as objects.
fn message(message: &Message, conventions: ToolConventions, format: Option<ContentFormat>) -> Value {
    let mut fields = Map::new();
    fields.insert("role".into(), message.role.name().into());
    let content = match message.content.as_slice() {
        [Content::Data { data }] if conventions.objects => data.clone(),
        parts => match (parts.iter().filter(|part| is_image(part)).count(), format) {
            (0, _) | (_, None) => message.text_with_placeholders().into(),
            (count, Some(format)) => with_images(parts, count, format),
        },
    };
    fields.insert("content".into(), content);
    if let Some(reasoning) = &message.reasoning {
        fields.insert("reasoning_content".into(), reasoning.as_str().into());
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"type": "function", "id": conventions.call_id(&call.id), "function": function})
        });
        fields.insert("tool_calls".into(), calls.collect());
    }
    if let Some(name) = &message.name {
        fields.insert("name".into(), name.as_str().into());
    }
    if let Some(id) = &message.tool_call_id {
        fields.insert("tool_call_id".into(), conventions.call_id(id).into());
    }
    fields.into()
}

fn is_image(part: &Content) -> bool {
    matches!(part, Content::Image { .. })
}

/// Parts with images, which come before the words: that is how nearly all families were trained.
fn with_images(parts: &[Content], count: usize, format: ContentFormat) -> Value {
    let text: String = parts
        .iter()
        .filter(|part| !is_image(part))
        .filter_map(Content::as_text)
        .collect();
    match format {
        ContentFormat::Parts(kind) => {
            let images = std::iter::repeat_n(json!({"type": kind}), count);
            let words = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            images.chain(words).collect()
        }
        ContentFormat::Inline(marker) => std::iter::repeat_n(marker, count)
            .chain(text.chars())
            .collect::<String>()
            .into(),
    }
}

/// All texts of a value, keys included.
pub(crate) fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key);
            texts(value, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value with every text, keys included, changed.
pub(crate) fn map_texts(value: &Value, change: &impl Fn(&str) -> Cow<'_, str>) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (change(key).into_owned(), map_texts(value, change)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
