//! `POST /v1/responses`: its items as a conversation.

use std::collections::HashSet;

use protocol::{Content, Message, Role, ToolCall};
use serde_json::{json, Value};

use crate::conversation::{flush_texts as flush, join, lines};
use crate::fields::Fields;
use crate::images::Images;
use crate::refusal::{Kind, Refusal};
use crate::responses_store::ResponsesStore;

type Result<T> = std::result::Result<T, Refusal>;

/// All items of a request: those of the response that it goes on from, then its own, with what references mean in their place.
///
/// # Errors
/// If something is named that is not kept, or the input is neither a text nor a list.
pub(crate) fn items(fields: &Fields, store: &ResponsesStore) -> Result<Vec<Value>> {
    let mut items = Vec::new();
    if let Some(id) = fields.text("previous_response_id")? {
        let Some(previous) = store.get(id) else {
            return Err(gone(
                "previous_response_id",
                format!("there is no response {id:?}; only the last ones are kept"),
            ));
        };
        items.extend_from_slice(previous.output());
        items.splice(0..0, previous.input);
    }
    match fields.text_or_list("input", || json!({"type": "object"})) {
        None => {}
        Some(Value::String(text)) => items.push(json!({"type": "message", "role": "user", "content": text})),
        Some(Value::Array(list)) => {
            for (index, item) in list.iter().enumerate() {
                if item["type"] != "item_reference" {
                    items.push(item.clone());
                    continue;
                }
                let id = item["id"].as_str().unwrap_or_default();
                match store.item(id) {
                    Some(item) => items.push(item),
                    // The AI SDK refers to thoughts without asking that they are kept; the conversation holds without them.
                    None if id.starts_with("rs_") => {}
                    None => {
                        let place = format!("input[{index}].id");
                        return Err(gone(
                            &place,
                            format!("there is no item {id:?}; only those of the last responses are kept"),
                        ));
                    }
                }
            }
        }
        Some(_) => return fields.refuse("input", "this is neither a text nor a list of items"),
    }
    Ok(items)
}

fn gone(place: &str, reason: String) -> Refusal {
    Refusal::new(Kind::NotFound, format!("{place}: {reason}")).at(place)
}

/// Items as messages: thoughts, texts and calls that follow each other are one answer.
///
/// # Errors
/// If an item makes no sense or holds what cannot be read; the refusal names its place.
pub(crate) fn messages(fields: &Fields, items: &[Value], images: &mut Images) -> Result<Vec<Message>> {
    let results = items.iter().filter(|item| item["type"] == "function_call_output");
    let mut conversation = Conversation {
        answered: results.filter_map(|item| item["call_id"].as_str()).collect(),
        ..Conversation::default()
    };
    for (index, item) in items.iter().enumerate() {
        conversation.push(&fields.element("input", index, item)?, images)?;
    }
    conversation.flush();
    Ok(conversation.messages)
}

#[derive(Default)]
struct Conversation<'a> {
    messages: Vec<Message>,
    /// The answer that goes on.
    answer: Option<Message>,
    /// The calls that have results.
    answered: HashSet<&'a str>,
}

impl Conversation<'_> {
    fn push(&mut self, item: &Fields, images: &mut Images) -> Result<()> {
        match item.text("type")?.unwrap_or("message") {
            "message" => self.message(item, images)?,
            "reasoning" => {
                let thought = thought(item)?;
                if !thought.is_empty() {
                    let answer = self.answer();
                    answer.reasoning = Some(lines(answer.reasoning.as_deref().into_iter().chain([thought.as_str()])));
                }
            }
            "function_call" => {
                let (id, name) = (item.required_text("call_id")?, item.required_text("name")?);
                let arguments = match item.text("arguments")?.unwrap_or_default().trim() {
                    "" => Ok(json!({})),
                    text => serde_json::from_str(text),
                };
                let cut = arguments.is_err() || item.text("status")? == Some("incomplete");
                if cut && !self.answered.contains(id) {
                    // The end of an answer cut it, and nobody ran it.
                    return Ok(());
                }
                let call = ToolCall {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    arguments: arguments.or_else(|error| item.refuse("arguments", format!("no JSON: {error}")))?,
                };
                self.answer().tool_calls.push(call);
            }
            "function_call_output" => {
                self.flush();
                self.messages.push(Message {
                    content: content(item, "output", images)?,
                    tool_call_id: Some(item.required_text("call_id")?.to_owned()),
                    ..Message::text(Role::Tool, "")
                });
            }
            _ => tracing::debug!("an item of a type that means nothing here was skipped"),
        }
        Ok(())
    }

    fn message(&mut self, item: &Fields, images: &mut Images) -> Result<()> {
        let content = content(item, "content", images)?;
        let roles = [
            ("system", Role::System),
            ("developer", Role::System),
            ("user", Role::User),
            ("assistant", Role::Assistant),
        ];
        let role = item.required_word("role", &roles)?;
        if role == Role::Assistant {
            join(&mut self.answer().content, content);
            return Ok(());
        }
        self.flush();
        self.messages.push(Message {
            content,
            ..Message::text(role, "")
        });
        Ok(())
    }

    fn answer(&mut self) -> &mut Message {
        self.answer.get_or_insert_with(|| Message {
            content: Vec::new(),
            ..Message::text(Role::Assistant, "")
        })
    }

    fn flush(&mut self) {
        self.messages.extend(self.answer.take());
    }
}

/// The words of a thought, or of its summary if they were not kept.
fn thought(item: &Fields) -> Result<String> {
    for name in ["content", "summary"] {
        let parts = item.list(name)?.unwrap_or_default();
        let text = lines(parts.iter().filter_map(|part| part["text"].as_str()));
        if !text.is_empty() {
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// A text, or a list of parts: texts, each on a line of its own, and pictures in their place.
fn content(item: &Fields, name: &str, images: &mut Images) -> Result<Vec<Content>> {
    let mut content = Vec::new();
    let parts = match item.text_or_list(name, || json!({"type": "object"})) {
        None => return Ok(content),
        Some(Value::String(text)) => {
            let text = Some(text).filter(|text| !text.is_empty());
            return Ok(text.map(Content::text).into_iter().collect());
        }
        Some(Value::Array(parts)) => parts,
        Some(_) => return item.refuse(name, "this is neither a text nor a list of parts"),
    };
    let mut texts: Vec<&str> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let place = || item.path(&format!("{name}[{index}]"));
        match (part["type"].as_str(), part["text"].as_str(), part["refusal"].as_str()) {
            (Some("input_text" | "output_text" | "text"), Some(text), _) | (Some("refusal"), _, Some(text)) => texts.push(text),
            (Some("input_image"), ..) => {
                // Some programs send the object of the other interface.
                let url = part["image_url"].as_str().or(part["image_url"]["url"].as_str());
                let url = url.ok_or_else(|| {
                    Refusal::field(
                        place(),
                        "there is no image_url; files that were uploaded are not kept here, so send a data URL",
                    )
                })?;
                flush(&mut content, &mut texts);
                content.push(images.data_url(url, &place())?);
                images.detail(part["detail"].as_str());
            }
            (kind, ..) => {
                let kind = kind.unwrap_or("none");
                return Err(Refusal::field(
                    place(),
                    format!("a part of type {kind:?} is not supported; only texts and input_image are"),
                ));
            }
        }
    }
    flush(&mut content, &mut texts);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses_store::StoredResponse;

    fn read(items: Value) -> Result<Vec<Message>> {
        messages(&Fields::of(&json!({}), "")?, items.as_array().unwrap(), &mut Images::default())
    }

    #[test]
    fn what_an_answer_is_made_of_becomes_one_message() {
        let read = read(json!([
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}]},
            {"role": "user", "content": "q"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}], "encrypted_content": null},
            {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call", "call_id": "call_1", "name": "g", "arguments": ""},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "one"}]},
            {"type": "function_call_output", "call_id": "call_0", "output": "zero"},
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]}
        ]))
        .unwrap();
        let roles: Vec<Role> = read.iter().map(|message| message.role).collect();
        use Role::{Assistant, System, Tool, User};
        assert_eq!(roles, [System, User, Assistant, Tool, Tool, Assistant]);
        assert_eq!(read[2].reasoning.as_deref(), Some("hm"));
        let arguments: Vec<&Value> = read[2].tool_calls.iter().map(|call| &call.arguments).collect();
        assert_eq!(arguments, [&json!({"a": 1}), &json!({})]);
        assert_eq!(read[3].tool_call_id.as_deref(), Some("call_1"));
        assert_eq!(read[5].text_with_placeholders(), "done");
    }

    #[test]
    fn a_call_that_was_cut_is_left_out() {
        for arguments in ["{\"city\": \"Pa", "{"] {
            let call =
                json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": arguments, "status": "incomplete"});
            let mut bare = call.clone();
            bare["status"] = Value::Null;
            for call in [call, bare] {
                let read = read(json!([{"role": "user", "content": "q"}, call, {"role": "user", "content": "r"}])).unwrap();
                let roles: Vec<Role> = read.iter().map(|message| message.role).collect();
                assert_eq!(roles, [Role::User, Role::User]);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (items, place) in [
            (
                json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]}]),
                "input[0].content[1]",
            ),
            (json!([{"role": "robot", "content": "a"}]), "input[0].role"),
            (
                json!([{"type": "function_call", "name": "f", "arguments": "{", "call_id": "c"},
                    {"type": "function_call_output", "call_id": "c", "output": "a"}]),
                "input[0].arguments",
            ),
            (json!([{"type": "function_call", "name": "f"}]), "input[0].call_id"),
            (json!(["hi"]), "input[0]"),
        ] {
            assert_eq!(read(items).unwrap_err().param.as_deref(), Some(place));
        }
    }

    #[test]
    fn a_request_goes_on_from_what_is_kept() {
        let store = ResponsesStore::default();
        store.keep(StoredResponse {
            id: "resp_1".into(),
            input: vec![json!({"role": "user", "content": "q"})],
            body: json!({"output": [{"type": "message", "id": "msg_1", "role": "assistant", "content": "a"}]}),
        });
        let read = |body: Value| items(&Fields::of(&body, "").unwrap(), &store);
        let next = read(json!({"previous_response_id": "resp_1", "input": "r"})).unwrap();
        let said: Vec<_> = next.iter().map(|item| item["content"].as_str().unwrap()).collect();
        assert_eq!(said, ["q", "a", "r"]);
        let referred = read(json!({"input": [{"type": "item_reference", "id": "msg_1"}, {"type": "item_reference", "id": "rs_9"}]}));
        assert_eq!(referred.unwrap().len(), 1);
        for (body, place) in [
            (json!({"previous_response_id": "resp_2"}), "previous_response_id"),
            (json!({"input": [{"type": "item_reference", "id": "msg_2"}]}), "input[0].id"),
        ] {
            let refusal = read(body).unwrap_err();
            assert_eq!((refusal.kind, refusal.param.as_deref()), (Kind::NotFound, Some(place)));
        }
    }
}
