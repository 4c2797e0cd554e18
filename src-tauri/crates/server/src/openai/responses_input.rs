//! `POST /v1/responses`: its items as a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{Content, Message, Role, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::answer::responses_store::{bytes, ResponsesStore};
use crate::http::error_body::{Kind, Refusal};
use crate::openai::file_search;
use crate::request::conversation::{flush_texts as flush, join, lines, message};
use crate::request::fields::Fields;
use crate::request::images::Images;
use crate::request::tools::Kind as ItemKind;
use crate::request::values::{List, TextOrList};

type Result<T> = std::result::Result<T, Refusal>;

/// An item of the input. Items of a type that is not known may hold anything.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Item {
    #[serde(rename = "type")]
    _type: Option<String>,
    role: Option<String>,
    content: Option<TextOrList<Map<String, Value>>>,
    #[serde(rename = "summary")]
    _summary: Option<List<Map<String, Value>>>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    status: Option<String>,
    output: Option<TextOrList<Map<String, Value>>>,
}

/// All items of a request: those of the previous response, then its own, with item references resolved. What is resolved
/// may have as many bytes as a body, because a reference is much shorter than its item.
///
/// # Errors
/// If a response or an item is not stored, or the resolved ones are too large.
pub(crate) fn items(
    fields: &Fields,
    previous: Option<&str>,
    input: Option<TextOrList<Item>>,
    store: &ResponsesStore,
    most: usize,
) -> Result<Vec<Arc<Value>>> {
    let mut items = Vec::new();
    let mut resolved = Resolved { bytes: 0, most };
    if let Some(id) = previous {
        let Some(previous) = store.get(id) else {
            let reason = format!("there is no response {id:?}; only the last ones are kept");
            return Err(gone("previous_response_id", reason));
        };
        items = previous.input;
        items.extend(previous.output);
        items
            .iter()
            .try_for_each(|item| resolved.add(item, "previous_response_id"))?;
    }
    match input {
        None => {}
        Some(TextOrList::Text(text)) => {
            items.push(Arc::new(json!({"type": "message", "role": "user", "content": text})));
        }
        Some(TextOrList::List(_)) => {
            let list = fields.value("input").and_then(Value::as_array);
            for (index, item) in list.into_iter().flatten().enumerate() {
                let (id, place) = (item["id"].as_str().unwrap_or_default(), format!("input[{index}].id"));
                if item["type"] != "item_reference" {
                    // A client that did not ask for results sends a search back without them.
                    let is_bare = item["type"] == file_search::ITEM && item["results"].is_null();
                    match store.item(id).filter(|_| is_bare) {
                        Some(item) => {
                            resolved.add(&item, &place)?;
                            items.push(item);
                        }
                        None => items.push(Arc::new(item.clone())),
                    }
                    continue;
                }
                match store.item(id) {
                    Some(item) => {
                        resolved.add(&item, &place)?;
                        items.push(item);
                    }
                    // The AI SDK refers to reasoning items without asking to store them; the conversation works without
                    // them.
                    None if id.starts_with("rs_") => {}
                    None => {
                        let reason = format!("there is no item {id:?}; only those of the last responses are kept");
                        return Err(gone(&place, reason));
                    }
                }
            }
        }
    }
    Ok(items)
}

/// The size of the items that were resolved.
struct Resolved {
    bytes: usize,
    most: usize,
}

impl Resolved {
    fn add(&mut self, item: &Value, place: &str) -> Result<()> {
        self.bytes += bytes(item);
        if self.bytes <= self.most {
            return Ok(());
        }
        let message = format!(
            "{place}: the items that this refers to have more than {} bytes together",
            self.most
        );
        Err(Refusal::new(Kind::TooLarge, message).at(place))
    }
}

fn gone(place: &str, reason: String) -> Refusal {
    Refusal::new(Kind::NotFound, format!("{place}: {reason}")).at(place)
}

/// Items as messages: thoughts, texts and calls that follow each other are one answer.
///
/// # Errors
/// If an item makes no sense or holds what cannot be read; the refusal names its place.
pub(crate) fn messages(fields: &Fields, items: &[Arc<Value>], images: &mut Images) -> Result<Vec<Message>> {
    let results = items.iter().filter(|item| item["type"] == "function_call_output");
    let mut conversation = Conversation {
        answered: results.filter_map(|item| item["call_id"].as_str()).collect(),
        ..Conversation::default()
    };
    for (index, item) in items.iter().enumerate() {
        conversation.push(&Fields::of(item, fields.path(&format!("input[{index}]")))?, images)?;
    }
    conversation.flush();
    Ok(conversation.messages)
}

#[derive(Default)]
struct Conversation<'a> {
    messages: Vec<Message>,
    /// The answer that goes on.
    answer: Option<Message>,
    /// The ids of the calls that have results.
    answered: HashSet<&'a str>,
    /// The results of searches that the answer called.
    found: Vec<Message>,
    /// The passages of all searches so far.
    given: usize,
}

impl Conversation<'_> {
    fn push(&mut self, at: &Fields, images: &mut Images) -> Result<()> {
        const KNOWN: [&str; 4] = ["message", "reasoning", "function_call", "function_call_output"];
        let kind = at.read::<ItemKind>()?.r#type.unwrap_or_else(|| "message".to_owned());
        if kind == file_search::ITEM {
            self.search(at);
            return Ok(());
        }
        if !KNOWN.contains(&kind.as_str()) {
            tracing::debug!("an item of a type that means nothing here was skipped");
            return Ok(());
        }
        let item: Item = at.read()?;
        match kind.as_str() {
            "message" => self.message(at, item, images)?,
            "reasoning" => {
                let thought = item.thought(at)?;
                self.end_searches();
                if !thought.is_empty() {
                    let answer = self.answer();
                    answer.reasoning = Some(lines(answer.reasoning.take().into_iter().chain([thought])));
                }
            }
            "function_call" => {
                let (id, name) = (at.require("call_id", item.call_id)?, at.require("name", item.name)?);
                let arguments = match item.arguments.unwrap_or_default().trim() {
                    "" => Ok(json!({})),
                    text => serde_json::from_str(text),
                };
                let cut = arguments.is_err() || item.status.as_deref() == Some("incomplete");
                if cut && !self.answered.contains(id.as_str()) {
                    // The end of an answer cut it, and nothing ran it.
                    return Ok(());
                }
                let arguments = arguments.or_else(|error| at.refuse("arguments", format!("no JSON: {error}")))?;
                self.answer().tool_calls.push(ToolCall { id, name, arguments });
            }
            _ => {
                self.flush();
                let content = content(at, "output", item.output, images)?;
                self.messages.push(Message {
                    tool_call_id: Some(at.require("call_id", item.call_id)?),
                    ..message(Role::Tool, content)
                });
            }
        }
        Ok(())
    }

    fn message(&mut self, at: &Fields, item: Item, images: &mut Images) -> Result<()> {
        let content = content(at, "content", item.content, images)?;
        let role = match at.require("role", item.role.as_deref())? {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => {
                let reason = format!("{other:?} is none of system, developer, user, assistant");
                return at.refuse("role", reason);
            }
        };
        if role == Role::Assistant {
            self.end_searches();
            join(&mut self.answer().content, content);
            return Ok(());
        }
        self.flush();
        self.messages.push(message(role, content));
        Ok(())
    }

    fn answer(&mut self) -> &mut Message {
        let nothing = || message(Role::Assistant, Vec::new());
        self.answer.get_or_insert_with(nothing)
    }

    /// A search that the server made for an earlier answer. Without its results it means nothing.
    fn search(&mut self, at: &Fields) {
        let Some((call, result, given)) = file_search::replayed(at.object(), self.given) else {
            tracing::debug!("a search without results was skipped");
            return;
        };
        self.given = given;
        self.found.push(Message {
            tool_call_id: Some(call.id.clone()),
            ..message(Role::Tool, vec![result])
        });
        self.answer().tool_calls.push(call);
    }

    /// Ends the turn of the model that called searches, because another one follows.
    fn end_searches(&mut self) {
        if !self.found.is_empty() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.messages.extend(self.answer.take());
        self.messages.append(&mut self.found);
    }
}

impl Item {
    /// The words of a thought, or of its summary if they were not stored.
    fn thought(&self, at: &Fields) -> Result<String> {
        if let Some(TextOrList::Text(_)) = self.content {
            return at.refuse("content", "this is not a list");
        }
        for name in ["content", "summary"] {
            let parts = at.value(name).and_then(Value::as_array).into_iter().flatten();
            let text = lines(parts.filter_map(|part| part["text"].as_str()));
            if !text.is_empty() {
                return Ok(text);
            }
        }
        Ok(String::new())
    }
}

/// A text, or a list of parts: texts, each on a line of its own, and images in their place.
fn content(
    item: &Fields,
    name: &str,
    said: Option<TextOrList<Map<String, Value>>>,
    images: &mut Images,
) -> Result<Vec<Content>> {
    let mut content = Vec::new();
    let parts = match said {
        None => return Ok(content),
        Some(TextOrList::Text(text)) => {
            let text = Some(text).filter(|text| !text.is_empty());
            return Ok(text.map(Content::text).into_iter().collect());
        }
        Some(TextOrList::List(_)) => item.value(name).and_then(Value::as_array),
    };
    let mut texts: Vec<&str> = Vec::new();
    for (index, part) in parts.into_iter().flatten().enumerate() {
        let place = || item.path(&format!("{name}[{index}]"));
        match (part["type"].as_str(), part["text"].as_str(), part["refusal"].as_str()) {
            (Some("input_text" | "output_text" | "text"), Some(text), _) | (Some("refusal"), _, Some(text)) => {
                texts.push(text)
            }
            (Some("input_image"), ..) => {
                // Some programs send chat completions' object.
                let url = part["image_url"].as_str().or(part["image_url"]["url"].as_str());
                let none = "there is no image_url; files that were uploaded are not kept here, so send a data URL";
                let url = url.ok_or_else(|| Refusal::field(place(), none))?;
                flush(&mut content, &mut texts);
                content.push(images.data_url(url, &place())?);
                images.detail(part["detail"].as_str());
            }
            (kind, ..) => {
                let kind = kind.unwrap_or("none");
                let reason = format!("a part of type {kind:?} is not supported; only texts and input_image are");
                return Err(Refusal::field(place(), reason));
            }
        }
    }
    flush(&mut content, &mut texts);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::responses_store::StoredResponse;

    fn read(items: Value) -> Result<Vec<Message>> {
        let items: Vec<_> = items.as_array().unwrap().iter().cloned().map(Arc::new).collect();
        messages(&Fields::of(&json!({}), "")?, &items, &mut Images::default())
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
            let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": arguments, "status": "incomplete"});
            let mut bare = call.clone();
            bare["status"] = Value::Null;
            for call in [call, bare] {
                let read =
                    read(json!([{"role": "user", "content": "q"}, call, {"role": "user", "content": "r"}])).unwrap();
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
        let input = vec![Arc::new(json!({"role": "user", "content": "q"}))];
        let body = json!({"output": [{"type": "message", "id": "msg_1", "role": "assistant", "content": "a"}]});
        store.keep(StoredResponse::new("resp_1", input, body));
        #[derive(Deserialize)]
        struct Body {
            previous_response_id: Option<String>,
            input: Option<TextOrList<Item>>,
        }
        let read = |body: Value| {
            let fields = Fields::of(&body, "")?;
            let body: Body = fields.read()?;
            items(&fields, body.previous_response_id.as_deref(), body.input, &store, 2000)
        };
        let next = read(json!({"previous_response_id": "resp_1", "input": "r"})).unwrap();
        let said: Vec<_> = next.iter().map(|item| item["content"].as_str().unwrap()).collect();
        assert_eq!(said, ["q", "a", "r"]);
        let referred = read(
            json!({"input": [{"type": "item_reference", "id": "msg_1"}, {"type": "item_reference", "id": "rs_9"}]}),
        );
        assert_eq!(referred.unwrap().len(), 1);
        // Many short references to one item count as much as that many items.
        let many = json!({"input": vec![json!({"type": "item_reference", "id": "msg_1"}); 20]});
        let refusal = read(many).unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (Kind::TooLarge, None));
        let two = read(json!({"input": vec![json!({"type": "item_reference", "id": "msg_1"}); 2]})).unwrap();
        assert!(Arc::ptr_eq(&two[0], &two[1]));
        for (body, place) in [
            (json!({"previous_response_id": "resp_2"}), "previous_response_id"),
            (
                json!({"input": [{"type": "item_reference", "id": "msg_2"}]}),
                "input[0].id",
            ),
        ] {
            let refusal = read(body).unwrap_err();
            assert_eq!((refusal.kind, refusal.param.as_deref()), (Kind::NotFound, Some(place)));
        }
    }
}
