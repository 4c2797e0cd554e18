//! Replies as the clients of each surface read them.

use serde_json::{json, Value};

pub const CHAT: &str = "/v1/chat/completions";
pub const RESPONSES: &str = "/v1/responses";
pub const MESSAGES: &str = "/v1/messages";

/// Thought, text and calls of a reply, and the reason of its end.
#[derive(Debug, Default, PartialEq)]
pub struct ClientSeen {
    pub thought: String,
    pub text: String,
    pub calls: Vec<(String, String, Value)>,
    pub end: String,
    /// Prompt, cached and completion tokens.
    pub usage: (u64, u64, u64),
}

/// Reads a whole reply as the clients of its surface do.
pub fn told(surface: &str, whole: &Value) -> ClientSeen {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parsed = |value: &Value| serde_json::from_str::<Value>(value.as_str().unwrap()).unwrap();
    let count = |value: &Value| value.as_u64().unwrap();
    let mut told = ClientSeen::default();
    let usage = &whole["usage"];
    match surface {
        CHAT => {
            let (message, choice) = (&whole["choices"][0]["message"], &whole["choices"][0]);
            told.thought = text(&message["reasoning_content"]);
            told.text = text(&message["content"]);
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                told.calls.push((
                    text(&call["id"]),
                    text(&function["name"]),
                    parsed(&function["arguments"]),
                ));
            }
            told.end = text(&choice["finish_reason"]);
            let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
            told.usage = (
                count(&usage["prompt_tokens"]),
                cached,
                count(&usage["completion_tokens"]),
            );
            assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 2);
        }
        RESPONSES => {
            for item in whole["output"].as_array().unwrap() {
                match item["type"].as_str().unwrap() {
                    "reasoning" => told.thought = text(&item["content"][0]["text"]),
                    "message" => told.text = text(&item["content"][0]["text"]),
                    _ => told
                        .calls
                        .push((text(&item["call_id"]), text(&item["name"]), parsed(&item["arguments"]))),
                }
            }
            told.end = text(&whole["status"]);
            let cached = count(&usage["input_tokens_details"]["cached_tokens"]);
            told.usage = (count(&usage["input_tokens"]), cached, count(&usage["output_tokens"]));
            assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 2);
        }
        _ => {
            for block in whole["content"].as_array().unwrap() {
                match block["type"].as_str().unwrap() {
                    "thinking" => {
                        told.thought = text(&block["thinking"]);
                        assert!(!block["signature"].as_str().unwrap().is_empty());
                    }
                    "text" => told.text = text(&block["text"]),
                    _ => told
                        .calls
                        .push((text(&block["id"]), text(&block["name"]), block["input"].clone())),
                }
            }
            told.end = text(&whole["stop_reason"]);
            let cached = count(&usage["cache_read_input_tokens"]);
            told.usage = (
                count(&usage["input_tokens"]) + cached,
                cached,
                count(&usage["output_tokens"]),
            );
        }
    }
    told
}

/// Puts a stream together as the clients of its surface do.
pub fn accumulated(surface: &str, events: &[Value]) -> Value {
    match surface {
        RESPONSES => events.last().unwrap()["response"].clone(),
        CHAT => {
            let mut message = json!({"reasoning_content": "", "content": "", "tool_calls": []});
            let mut whole = json!({"choices": [{}]});
            for chunk in events {
                let choice = &chunk["choices"][0];
                for field in ["reasoning_content", "content"] {
                    if let Some(more) = choice["delta"][field].as_str() {
                        message[field] = format!("{}{more}", message[field].as_str().unwrap()).into();
                    }
                }
                for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    let calls = message["tool_calls"].as_array_mut().unwrap();
                    if piece["index"] == calls.len() {
                        calls.push(piece.clone());
                    } else {
                        calls[piece["index"].as_u64().unwrap() as usize]["function"]["arguments"] =
                            piece["function"]["arguments"].clone();
                    }
                }
                if choice["finish_reason"].is_string() {
                    whole["choices"][0]["finish_reason"] = choice["finish_reason"].clone();
                }
                if chunk["usage"].is_object() {
                    whole["usage"] = chunk["usage"].clone();
                }
            }
            whole["choices"][0]["message"] = message;
            whole
        }
        _ => {
            let mut whole = events[0]["message"].clone();
            let mut blocks: Vec<Value> = Vec::new();
            for event in &events[1..] {
                let delta = &event["delta"];
                match event["type"].as_str().unwrap() {
                    "content_block_start" => blocks.push(event["content_block"].clone()),
                    "content_block_delta" => {
                        let block = blocks.last_mut().unwrap();
                        if let Some(json) = delta["partial_json"].as_str() {
                            block["input"] = serde_json::from_str(json).unwrap();
                        }
                        for field in ["thinking", "text", "signature"] {
                            if let Some(more) = delta[field].as_str() {
                                block[field] = format!("{}{more}", block[field].as_str().unwrap()).into();
                            }
                        }
                    }
                    "message_delta" => {
                        whole["stop_reason"] = delta["stop_reason"].clone();
                        whole["usage"] = event["usage"].clone();
                    }
                    _ => {}
                }
            }
            whole["content"] = blocks.into();
            whole
        }
    }
}
