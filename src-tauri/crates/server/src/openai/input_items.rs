//! `GET /v1/responses/{id}/input_items`: what a response answered.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::answer::responses_store::StoredResponse;
use crate::http::error_body::Refusal;
use crate::openai::file_search::without_results;

type Result<T> = std::result::Result<T, Refusal>;

/// The fields of the query, with their defaults.
struct Page {
    limit: usize,
    newest_first: bool,
    after: Option<String>,
}

impl Page {
    fn read(query: &HashMap<String, String>) -> Result<Self> {
        let limit = query.get("limit").map_or("20", String::as_str).parse();
        let newest_first = match query.get("order").map(String::as_str) {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(other) => return Err(Refusal::field("order", format!("{other:?} is none of asc, desc"))),
        };
        match limit {
            Ok(limit @ 1..=100) => Ok(Self {
                limit,
                newest_first,
                after: query.get("after").filter(|after| !after.is_empty()).cloned(),
            }),
            _ => Err(Refusal::field("limit", "this is not a number from 1 to 100")),
        }
    }
}

/// A page of the items before the answer.
///
/// # Errors
/// If a field of the query is wrong, or `after` names none of them.
pub(crate) fn page(response: &StoredResponse, query: &HashMap<String, String>) -> Result<Value> {
    let page = Page::read(query)?;
    let items = response.input.iter().enumerate();
    let mut items: Vec<Value> = items.map(|(index, item)| with_id(item, &response.id, index)).collect();
    if page.newest_first {
        items.reverse();
    }
    if let Some(after) = page.after {
        let place = items.iter().position(|item| item["id"] == *after);
        let place = place.ok_or_else(|| Refusal::field("after", format!("there is no item {after:?}")))?;
        items.drain(..=place);
    }
    let has_more = items.len() > page.limit;
    items.truncate(page.limit);
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    let (first, last) = (id(items.first()), id(items.last()));
    Ok(json!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}))
}

/// An item with what OpenAI adds to it: its type, an id, and the parts of its text.
fn with_id(item: &Value, response: &str, index: usize) -> Value {
    let mut item = item.clone();
    without_results(&mut item);
    let kind = item["type"].as_str().unwrap_or("message").to_owned();
    if item["id"].as_str().is_none() {
        let prefix = match kind.as_str() {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            "function_call_output" => "fco",
            _ => "item",
        };
        item["id"] = format!("{prefix}_{}_{index}", response.trim_start_matches("resp_")).into();
    }
    if let (true, Some(text)) = (kind == "message", item["content"].as_str()) {
        item["content"] = match item["role"].as_str() {
            Some("assistant") => json!([{"type": "output_text", "text": text, "annotations": []}]),
            _ => json!([{"type": "input_text", "text": text}]),
        };
    }
    if item["status"].is_null() {
        item["status"] = "completed".into();
    }
    item["type"] = kind.into();
    item
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn items_come_in_pages_with_ids_that_stay() {
        let input = [
            json!({"role": "user", "content": "q"}),
            json!({"type": "message", "id": "msg_9", "role": "assistant", "content": "a"}),
            json!({"type": "function_call_output", "call_id": "c", "output": "o"}),
        ];
        let response = StoredResponse::new("resp_1", input.map(Arc::new).into(), json!({"output": []}));
        let page = |query: &[(&str, &str)]| {
            let query = query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            page(&response, &query)
        };
        let ids = |page: &Value| -> Vec<String> {
            let data = page["data"].as_array().unwrap();
            data.iter()
                .map(|item| item["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let whole = page(&[]).unwrap();
        assert_eq!(ids(&whole), ["fco_1_2", "msg_9", "msg_1_0"]);
        assert_eq!(
            (&whole["has_more"], &whole["last_id"]),
            (&json!(false), &json!("msg_1_0"))
        );
        assert_eq!(
            whole["data"][2]["content"],
            json!([{"type": "input_text", "text": "q"}])
        );
        let first = page(&[("order", "asc"), ("limit", "1")]).unwrap();
        assert_eq!(
            (ids(&first), &first["has_more"]),
            (vec!["msg_1_0".into()], &json!(true))
        );
        let rest = page(&[("order", "asc"), ("after", "msg_1_0")]).unwrap();
        assert_eq!(ids(&rest), ["msg_9", "fco_1_2"]);
        for (name, value) in [("limit", "0"), ("limit", "x"), ("order", "up"), ("after", "none")] {
            assert_eq!(page(&[(name, value)]).unwrap_err().param.as_deref(), Some(name));
        }
    }
}
