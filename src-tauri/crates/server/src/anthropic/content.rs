//! Anthropic's messages, blocks and tools as a conversation.

use protocol::{Content, Message, Role, ToolCall};
use serde_json::{json, Value};

use crate::conversation::{flush_texts, lines};
use crate::fields::Fields;
use crate::images::{self, Images};
use crate::refusal::Refusal;
use crate::tools::{declaration, ToolChoice};

type Result<T> = std::result::Result<T, Refusal>;

/// How the first line of Claude Code's instructions begins: a hash that differs between prompts, and so would cost the cached prefix.
const BILLING: &str = "x-anthropic-billing-header:";

/// The conversation of a request, its instructions first.
///
/// # Errors
/// If a block makes no sense or cannot be read; the refusal names its place.
pub(crate) fn messages(fields: &Fields, images: &mut Images) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    let instructions = lines(texts(fields, "system")?.iter().map(|text| without_billing(text)));
    if !instructions.is_empty() {
        messages.push(Message::text(Role::System, instructions));
    }
    let list = fields.required_list("messages")?;
    for (index, message) in list.iter().enumerate() {
        let message = fields.element("messages", index, message)?;
        let roles = [("user", Role::User), ("assistant", Role::Assistant), ("system", Role::System)];
        match message.required_word("role", &roles)? {
            Role::User => user(&message, &mut messages, images)?,
            Role::Assistant => messages.push(assistant(&message)?),
            Role::System | Role::Tool => {
                let text = lines(texts(&message, "content")?.iter().map(String::as_str));
                messages.push(Message::text(Role::System, text));
            }
        }
    }
    Ok(messages)
}

/// Instructions without the line, which mostly is a block of its own.
fn without_billing(text: &str) -> &str {
    if !text.starts_with(BILLING) {
        return text;
    }
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// Results of tools come before what the person says beside them, because they belong to the answer before.
fn user(message: &Fields, messages: &mut Vec<Message>, images: &mut Images) -> Result<()> {
    if let Some(Value::String(text)) = message.text_or_list("content", block) {
        messages.push(Message::text(Role::User, text));
        return Ok(());
    }
    let (mut said, mut texts) = (Vec::new(), Vec::new());
    let blocks = blocks(message, "content")?;
    let mut results_alone = !blocks.is_empty();
    for block in &blocks {
        match block.required_text("type")? {
            "text" => {
                results_alone = false;
                texts.push(block.required_text("text")?);
            }
            "image" => {
                results_alone = false;
                flush_texts(&mut said, &mut texts);
                said.push(images::block(block, images)?);
            }
            "tool_result" => messages.push(result(block, images)?),
            other => return unreadable(block, other),
        }
    }
    if !results_alone {
        flush_texts(&mut said, &mut texts);
        if said.is_empty() {
            said.push(Content::text(""));
        }
        messages.push(Message {
            content: said,
            ..Message::text(Role::User, "")
        });
    }
    Ok(())
}

/// The result of a tool: texts, each on a line of its own, and pictures.
fn result(block: &Fields, images: &mut Images) -> Result<Message> {
    let (mut content, mut texts) = (Vec::new(), Vec::new());
    match block.text_or_list("content", self::block) {
        None => {}
        Some(Value::String(text)) => texts.push(text.as_str()),
        Some(_) => {
            for part in blocks(block, "content")? {
                match part.required_text("type")? {
                    "text" => texts.push(part.required_text("text")?),
                    "image" => {
                        flush_texts(&mut content, &mut texts);
                        content.push(images::block(&part, images)?);
                    }
                    other => return unreadable(&part, other),
                }
            }
        }
    }
    flush_texts(&mut content, &mut texts);
    let told = content
        .iter()
        .filter_map(Content::growing_text)
        .any(|text| text.to_ascii_lowercase().contains("error"));
    if block.boolean("is_error")?.unwrap_or(false) && !told {
        match content.first_mut() {
            Some(Content::Text { text }) => text.insert_str(0, "Error: "),
            _ => content.insert(0, Content::text("Error: ")),
        }
    }
    if content.is_empty() {
        content.push(Content::text(""));
    }
    Ok(Message {
        content,
        tool_call_id: Some(block.required_text("tool_use_id")?.to_owned()),
        ..Message::text(Role::Tool, "")
    })
}

fn assistant(message: &Fields) -> Result<Message> {
    if let Some(Value::String(text)) = message.text_or_list("content", block) {
        return Ok(Message::text(Role::Assistant, text));
    }
    let (mut said, mut thoughts) = (Vec::new(), Vec::new());
    let mut answer = Message {
        content: Vec::new(),
        ..Message::text(Role::Assistant, "")
    };
    for block in blocks(message, "content")? {
        match block.required_text("type")? {
            "text" => said.push(block.required_text("text")?.to_owned()),
            // The signature is checked by nobody.
            "thinking" => thoughts.push(block.text("thinking")?.unwrap_or_default().to_owned()),
            "redacted_thinking" => {}
            "tool_use" => answer.tool_calls.push(ToolCall {
                id: block.required_text("id")?.to_owned(),
                name: block.required_text("name")?.to_owned(),
                arguments: block
                    .get_as("input", || json!({"type": ["object", "null"]}))
                    .cloned()
                    .unwrap_or_else(|| json!({})),
            }),
            other => return unreadable(&block, other),
        }
    }
    let join = |texts: &[String]| Some(lines(texts.iter().map(String::as_str))).filter(|text| !text.is_empty());
    answer.content.extend(join(&said).map(Content::text));
    answer.reasoning = join(&thoughts);
    Ok(answer)
}

fn unreadable<T>(block: &Fields, kind: &str) -> Result<T> {
    Err(Refusal::field(
        block.place(),
        format!("a block of type {kind:?} is not supported; only text, image, thinking, tool_use and tool_result are"),
    ))
}

fn block() -> Value {
    json!({"type": "object"})
}

/// The blocks of a field that holds them.
fn blocks<'a>(fields: &Fields<'a>, name: &str) -> Result<Vec<Fields<'a>>> {
    let Some(Value::Array(list)) = fields.text_or_list(name, block) else {
        return fields.refuse(name, "this is neither a text nor a list of blocks");
    };
    let block = |(index, block)| fields.element(name, index, block);
    list.iter().enumerate().map(block).collect()
}

/// The texts of a field that holds a text, blocks of text, or nothing.
fn texts(fields: &Fields, name: &str) -> Result<Vec<String>> {
    match fields.text_or_list(name, block) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(_) => blocks(fields, name)?
            .iter()
            .map(|block| match block.required_text("type")? {
                "text" => Ok(block.required_text("text")?.to_owned()),
                other => unreadable(block, other),
            })
            .collect(),
    }
}

/// The tools of a request. Those with a type of their own are run by Anthropic and skipped.
///
/// # Errors
/// If one has no name.
pub(crate) fn tools(fields: &Fields) -> Result<Vec<Value>> {
    let mut tools = Vec::new();
    for (index, tool) in fields.list("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = fields.element("tools", index, tool)?;
        if tool.text("type")?.is_some_and(|kind| kind != "custom") {
            tracing::debug!("a tool that Anthropic runs was skipped");
            continue;
        }
        tools.push(declaration(
            tool.required_text("name")?,
            tool.text("description")?,
            tool.object("input_schema")?,
        ));
    }
    Ok(tools)
}

/// The choice of tools, and whether several may be called at once.
///
/// # Errors
/// If it is none of the four.
pub(crate) fn tool_choice(fields: &Fields) -> Result<(ToolChoice, bool)> {
    let Some(choice) = fields.object("tool_choice")? else {
        return Ok((ToolChoice::Auto, true));
    };
    let parallel = !choice.boolean("disable_parallel_tool_use")?.unwrap_or(false);
    let kinds = [
        ("auto", ToolChoice::Auto),
        ("any", ToolChoice::Required),
        ("tool", ToolChoice::Named(String::new())),
        ("none", ToolChoice::None),
    ];
    let choice = match choice.required_word("type", &kinds)? {
        ToolChoice::Named(_) => ToolChoice::Named(choice.required_text("name")?.to_owned()),
        other => other,
    };
    Ok((choice, parallel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Vec<Message>> {
        messages(&Fields::of(&body, "")?, &mut Images::default())
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
    fn what_cannot_be_read_is_named_with_its_place() {
        for (content, place) in [
            (
                json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]),
                "messages[0].content[1].source.type",
            ),
            (json!([{"type": "document"}]), "messages[0].content[0]"),
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
        let names: Vec<Value> = tools(&fields)
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].clone())
            .collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!(tool_choice(&fields), Ok((ToolChoice::Required, false)));
        let named = json!({"tool_choice": {"type": "tool", "name": "f"}});
        assert_eq!(
            tool_choice(&Fields::of(&named, "").unwrap()),
            Ok((ToolChoice::Named("f".into()), true))
        );
    }
}
