//! Anthropic's messages, blocks and tools as a conversation.

use protocol::{Content, Message, Role, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::anthropic::source::Source;
use crate::http::error_body::Refusal;
use crate::request::conversation::{flush_texts, lines, message};
use crate::request::fields::Fields;
use crate::request::images::Images;
use crate::request::tools::{declaration, Kind, ToolChoice};
use crate::request::values::{List, TextOrList};

type Result<T> = std::result::Result<T, Refusal>;

/// The start of the first line of Claude Code's instructions: a hash that differs between prompts and would break the
/// cached prefix.
const BILLING: &str = "x-anthropic-billing-header:";

/// A message of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct InputMessage {
    role: InputRole,
    content: Option<TextOrList<Block>>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InputRole {
    User,
    Assistant,
    System,
}

/// A block of a message, with the fields of every type.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Block {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    source: Option<Source>,
    title: Option<String>,
    context: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[schemars(with = "Option<Map<String, Value>>")]
    input: Option<Value>,
    tool_use_id: Option<String>,
    is_error: Option<bool>,
    content: Option<TextOrList<ResultPart>>,
}

/// A part of a tool's result.
#[derive(Debug, Deserialize, JsonSchema)]
struct ResultPart {
    r#type: String,
    text: Option<String>,
    source: Option<Source>,
    title: Option<String>,
    context: Option<String>,
}

/// A tool of a request. One with another type than `custom` is run by Anthropic.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Tool {
    #[serde(rename = "type")]
    _type: Option<String>,
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Map<String, Value>>,
}

/// The choice of tools.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Choice {
    r#type: ChoiceKind,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ChoiceKind {
    Auto,
    Any,
    Tool,
    None,
}

/// The conversation of a request, its instructions first.
///
/// # Errors
/// If a block makes no sense or cannot be read; the refusal names its place.
pub(crate) fn messages(
    fields: &Fields,
    system: Option<&TextOrList<Block>>,
    list: &List<InputMessage>,
    images: &mut Images,
) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    let system = texts(fields, "system", system)?;
    let instructions = lines(system.iter().map(|text| without_billing(text)));
    if !instructions.is_empty() {
        messages.push(Message::text(Role::System, instructions));
    }
    if list.len == 0 {
        return fields.refuse("messages", "this list is empty, and at least one is needed");
    }
    for at in list.elements(fields, "messages")? {
        let message: InputMessage = at.read()?;
        match message.role {
            InputRole::User => user(&at, message.content, &mut messages, images)?,
            InputRole::Assistant => messages.push(assistant(&at, message.content)?),
            InputRole::System => {
                let texts = texts(&at, "content", message.content.as_ref())?;
                messages.push(Message::text(Role::System, lines(texts)));
            }
        }
    }
    Ok(messages)
}

/// Instructions without that line, which is usually a block of its own.
fn without_billing(text: &str) -> &str {
    if !text.starts_with(BILLING) {
        return text;
    }
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// Results of tools come before what the user says in the same message, because they belong to the answer before.
fn user(
    at: &Fields,
    content: Option<TextOrList<Block>>,
    messages: &mut Vec<Message>,
    images: &mut Images,
) -> Result<()> {
    let list = match content {
        Some(TextOrList::Text(text)) => {
            messages.push(Message::text(Role::User, text));
            return Ok(());
        }
        Some(TextOrList::List(list)) => list,
        None => return at.refuse("content", NO_BLOCKS),
    };
    let (mut said, mut texts) = (Vec::new(), Vec::new());
    let mut results_alone = list.len > 0;
    for at in list.elements(at, "content")? {
        let block: Block = at.read()?;
        match block.r#type.as_str() {
            "text" => {
                results_alone = false;
                texts.push(at.require("text", block.text)?);
            }
            "image" => {
                results_alone = false;
                flush_texts(&mut said, &mut texts);
                said.push(at.require("source", block.source)?.image(&at, images)?);
            }
            "document" => {
                results_alone = false;
                texts.push(document(&at, block.source, block.title, block.context)?);
            }
            "tool_result" => messages.push(result(&at, block, images)?),
            other => return unreadable(&at, other),
        }
    }
    if !results_alone {
        flush_texts(&mut said, &mut texts);
        if said.is_empty() {
            said.push(Content::text(""));
        }
        messages.push(message(Role::User, said));
    }
    Ok(())
}

/// The result of a tool: texts, each on a line of its own, and images.
fn result(at: &Fields, block: Block, images: &mut Images) -> Result<Message> {
    let (mut content, mut texts) = (Vec::new(), Vec::new());
    match block.content {
        None => {}
        Some(TextOrList::Text(text)) => texts.push(text),
        Some(TextOrList::List(parts)) => {
            for at in parts.elements(at, "content")? {
                let part: ResultPart = at.read()?;
                match part.r#type.as_str() {
                    "text" => texts.push(at.require("text", part.text)?),
                    "image" => {
                        flush_texts(&mut content, &mut texts);
                        content.push(at.require("source", part.source)?.image(&at, images)?);
                    }
                    "document" => texts.push(document(&at, part.source, part.title, part.context)?),
                    other => return unreadable(&at, other),
                }
            }
        }
    }
    flush_texts(&mut content, &mut texts);
    let told = content
        .iter()
        .filter_map(Content::growing_text)
        .any(|text| text.to_ascii_lowercase().contains("error"));
    if block.is_error.unwrap_or(false) && !told {
        match content.first_mut() {
            Some(Content::Text { text }) => text.insert_str(0, "Error: "),
            _ => content.insert(0, Content::text("Error: ")),
        }
    }
    if content.is_empty() {
        content.push(Content::text(""));
    }
    Ok(Message {
        tool_call_id: Some(at.require("tool_use_id", block.tool_use_id)?),
        ..message(Role::Tool, content)
    })
}

/// The text of a document: what the client says of it, and its quotation.
fn document(at: &Fields, source: Option<Source>, title: Option<String>, context: Option<String>) -> Result<String> {
    let quoted = at.require("source", source)?.document(at, title.as_deref())?;
    Ok(lines(context.into_iter().chain([quoted])))
}

fn assistant(at: &Fields, content: Option<TextOrList<Block>>) -> Result<Message> {
    let list = match content {
        Some(TextOrList::Text(text)) => return Ok(Message::text(Role::Assistant, text)),
        Some(TextOrList::List(list)) => list,
        None => return at.refuse("content", NO_BLOCKS),
    };
    let (mut said, mut thoughts) = (Vec::new(), Vec::new());
    let mut answer = message(Role::Assistant, Vec::new());
    for at in list.elements(at, "content")? {
        let block: Block = at.read()?;
        match block.r#type.as_str() {
            "text" => said.push(at.require("text", block.text)?),
            // No server of ours checks the signature.
            "thinking" => thoughts.push(block.thinking.unwrap_or_default()),
            "redacted_thinking" => {}
            "tool_use" => answer.tool_calls.push(ToolCall {
                id: at.require("id", block.id)?,
                name: at.require("name", block.name)?,
                arguments: block.input.unwrap_or_else(|| json!({})),
            }),
            other => return unreadable(&at, other),
        }
    }
    let join = |texts: Vec<String>| Some(lines(texts)).filter(|text| !text.is_empty());
    answer.content.extend(join(said).map(Content::text));
    answer.reasoning = join(thoughts);
    Ok(answer)
}

const NO_BLOCKS: &str = "this is neither a text nor a list of blocks";

fn unreadable<T>(block: &Fields, kind: &str) -> Result<T> {
    let known = "only text, image, document, thinking, tool_use and tool_result are";
    Err(Refusal::field(
        block.place(),
        format!("a block of type {kind:?} is not supported; {known}"),
    ))
}

/// The texts of a field that holds a text, blocks of text, or nothing.
fn texts(fields: &Fields, name: &str, content: Option<&TextOrList<Block>>) -> Result<Vec<String>> {
    let list = match content {
        None => return Ok(Vec::new()),
        Some(TextOrList::Text(text)) => return Ok(vec![text.clone()]),
        Some(TextOrList::List(list)) => list,
    };
    let text = |at: &Fields| {
        let block: Block = at.read()?;
        match block.r#type.as_str() {
            "text" => at.require("text", block.text),
            other => unreadable(at, other),
        }
    };
    list.elements(fields, name)?.iter().map(text).collect()
}

/// The tools of a request. Those with a type of their own are run by Anthropic and skipped.
///
/// # Errors
/// If one has no name.
pub(crate) fn tools(fields: &Fields, list: Option<&List<Tool>>) -> Result<Vec<Value>> {
    let mut tools = Vec::new();
    let list = list.map(|list| list.elements(fields, "tools")).transpose()?;
    for at in list.unwrap_or_default() {
        if at.read::<Kind>()?.r#type.is_some_and(|kind| kind != "custom") {
            tracing::debug!("a tool that Anthropic runs was skipped");
            continue;
        }
        let tool: Tool = at.read()?;
        let name = at.require("name", tool.name)?;
        tools.push(declaration(&name, tool.description, tool.input_schema));
    }
    Ok(tools)
}

impl Choice {
    /// The choice, and true if several tools may be called at once.
    ///
    /// # Errors
    /// If it names no tool.
    pub(crate) fn choice(self, fields: &Fields) -> Result<(ToolChoice, bool)> {
        let choice = match self.r#type {
            ChoiceKind::Auto => ToolChoice::Auto,
            ChoiceKind::Any => ToolChoice::Required,
            ChoiceKind::None => ToolChoice::None,
            ChoiceKind::Tool => ToolChoice::Named(fields.require("tool_choice.name", self.name)?),
        };
        Ok((choice, !self.disable_parallel_tool_use.unwrap_or(false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Vec<Message>> {
        #[derive(Deserialize)]
        struct Body {
            system: Option<TextOrList<Block>>,
            messages: List<InputMessage>,
        }
        let fields = Fields::of(&body, "")?;
        let body: Body = fields.read()?;
        messages(&fields, body.system.as_ref(), &body.messages, &mut Images::default())
    }

    #[test]
    fn claude_codes_hash_line_is_dropped_and_blocks_are_lines() {
        let read = read(json!({
            "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2;"}, {"type": "text", "text": "You code.", "cache_control": {}},
                {"type": "text", "text": "CWD: /a"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "<r>\n"}, {"type": "text", "text": "hi"}]},
                {"role": "system", "content": "Agents: none"}]}))
        .unwrap();
        let said: Vec<_> = read
            .iter()
            .map(|message| (message.role, message.text_with_placeholders()))
            .collect();
        assert_eq!(
            said,
            [
                (Role::System, "You code.\nCWD: /a".to_owned()),
                (Role::User, "<r>\nhi".to_owned()),
                (Role::System, "Agents: none".to_owned())
            ]
        );
    }

    #[test]
    fn the_hash_line_takes_no_instructions_with_it() {
        for (system, said) in [
            ("x-anthropic-billing-header: cch=1;\nYou code.", vec!["You code.", "hi"]),
            ("x-anthropic-billing-header: cch=1;", vec!["hi"]),
            (
                "No x-anthropic-billing-header: here.",
                vec!["No x-anthropic-billing-header: here.", "hi"],
            ),
        ] {
            let read = read(json!({"system": system, "messages": [{"role": "user", "content": "hi"}]})).unwrap();
            let texts: Vec<_> = read.iter().map(|message| message.text_with_placeholders()).collect();
            assert_eq!(texts, said);
        }
    }

    #[test]
    fn a_turn_with_tools_is_read() {
        let read = read(json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": ""}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "text", "text": "and now?"},
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [{"type": "text", "text": "no such file"}]}]}]}))
        .unwrap();
        let roles: Vec<Role> = read.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
        assert_eq!((read[1].reasoning.as_deref(), read[1].content.len()), (Some("hm"), 0));
        assert_eq!(read[1].tool_calls[0].arguments, json!({"a": 1}));
        assert_eq!(read[2].text_with_placeholders(), "Error: no such file");
        assert_eq!(read[3].text_with_placeholders(), "and now?");
    }

    #[test]
    fn documents_are_quoted_as_text() {
        // "Name,Age", as a client would send a file.
        let csv = json!({"type": "base64", "media_type": "text/csv", "data": "TmFtZSxBZ2U="});
        let plain = json!({"type": "text", "media_type": "text/plain", "data": "four"});
        let parts =
            json!({"type": "content", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]});
        let read = read(json!({"messages": [{"role": "user", "content": [
            {"type": "document", "source": csv, "title": "list.csv", "context": "Of May.", "citations": {"enabled": true}},
            {"type": "document", "source": plain},
            {"type": "text", "text": "Who?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document", "source": parts}]}]}]}))
        .unwrap();
        assert_eq!(
            read[0].text_with_placeholders(),
            "Of May.\nFile `list.csv`:\n\n```csv\nName,Age\n```\n\nFile `document`:\n\n```\nfour\n```\n\nWho?"
        );
        assert_eq!(
            read[2].text_with_placeholders(),
            "File `document`:\n\n```\none\ntwo\n```\n\n"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (content, place) in [
            (
                json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]),
                "messages[0].content[1].source.type",
            ),
            (json!([{"type": "document"}]), "messages[0].content[0].source"),
            (
                json!([{"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}]),
                "messages[0].content[0].source.type",
            ),
            (
                json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}]),
                "messages[0].content[0].source.data",
            ),
            (
                json!([{"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}}]),
                "messages[0].content[0].source.content[0].type",
            ),
            (json!([{"type": "video"}]), "messages[0].content[0]"),
            (
                json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}]),
                "messages[0].content[0].content[0].source",
            ),
            (
                json!([{"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}]),
                "messages[0].content[0].source.type",
            ),
            (
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]),
                "messages[0].content[0].source.data",
            ),
            (json!([{"type": "tool_result"}]), "messages[0].content[0].tool_use_id"),
            (json!(5), "messages[0].content"),
        ] {
            let body = json!({"messages": [{"role": "user", "content": content}]});
            assert_eq!(read(body).unwrap_err().param.as_deref(), Some(place));
        }
    }

    #[test]
    fn tools_and_choices_are_read() {
        let body = json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"type": "custom", "name": "f", "input_schema": {"type": "object"}},
            {"name": "g"}], "tool_choice": {"type": "any", "disable_parallel_tool_use": true}});
        let fields = Fields::of(&body, "").unwrap();
        #[derive(Deserialize)]
        struct Body {
            tools: Option<List<Tool>>,
            tool_choice: Option<Choice>,
        }
        let choice = |fields: &Fields| fields.read::<Body>().unwrap().tool_choice.unwrap().choice(fields);
        let names: Vec<Value> = tools(&fields, fields.read::<Body>().unwrap().tools.as_ref())
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].clone())
            .collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!(choice(&fields), Ok((ToolChoice::Required, false)));
        let named = json!({"tool_choice": {"type": "tool", "name": "f"}});
        assert_eq!(
            choice(&Fields::of(&named, "").unwrap()),
            Ok((ToolChoice::Named("f".into()), true))
        );
    }
}
