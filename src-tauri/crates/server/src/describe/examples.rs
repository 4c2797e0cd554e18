//! Example requests of the description.

use serde_json::{json, Value};

type Examples = Vec<(&'static str, Value)>;

fn messages() -> Value {
    json!([{"role": "user", "content": "What is 2 + 3?"}])
}

/// A PNG of one pixel, as base64.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn schema() -> Value {
    json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": false})
}

/// `POST /v1/chat/completions`
pub(super) fn chat() -> Examples {
    let function = json!({"name": "add", "description": "Adds two numbers.", "parameters": {"type": "object"}});
    let called = json!([{"role": "user", "content": "What is 2 + 3?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":3}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "5"}]);
    vec![
        (
            "a question",
            json!({"model": "pebble", "messages": messages(), "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 500, "temperature": 0.7, "seed": 1, "stop": ["END"]}),
        ),
        (
            "tools",
            json!({"model": "pebble", "messages": called, "tools": [{"type": "function", "function": function}, {"type": "web_search"}],
            "tool_choice": {"type": "function", "function": {"name": "add"}}, "parallel_tool_calls": false}),
        ),
        (
            "an image",
            json!({"model": "pebble", "messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{IMAGE}"), "detail": "low"}},
                {"type": "text", "text": "Which colour is it?"}]}]}),
        ),
        (
            "a JSON schema",
            json!({"model": "pebble", "messages": messages(), "max_completion_tokens": 500,
            "response_format": {"type": "json_schema", "json_schema": {"name": "sum", "schema": schema()}}}),
        ),
        (
            "thinking",
            json!({"model": "pebble", "messages": messages(), "reasoning_effort": "high",
            "chat_template_kwargs": {"enable_thinking": true}, "response_format": {"type": "json_object"}}),
        ),
    ]
}

/// `POST /v1/completions`
pub(super) fn completion() -> Examples {
    vec![
        (
            "a text to go on with",
            json!({"model": "pebble", "prompt": "Two and three are", "max_tokens": 16, "stream": true,
            "stream_options": {"include_usage": true}}),
        ),
        (
            "a gap to fill",
            json!({"model": "pebble", "prompt": "def add(a, b):\n", "suffix": "\n\nprint(add(2, 3))"}),
        ),
    ]
}

/// `POST /v1/responses`
pub(super) fn response() -> Examples {
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "What is 2 + 3?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I add."}], "content": []},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{\"a\":2,\"b\":3}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "5"}]);
    let add = json!({"type": "function", "name": "add", "description": "Adds two numbers.", "parameters": {"type": "object"}});
    let shown = json!([{"role": "user", "content": [
        {"type": "input_image", "image_url": format!("data:image/png;base64,{IMAGE}"), "detail": "auto"},
        {"type": "input_text", "text": "Which colour is it?"}]}]);
    vec![
        (
            "a question",
            json!({"model": "pebble", "input": "What is 2 + 3?", "instructions": "Be short.", "stream": true,
            "max_output_tokens": 500, "text": {"format": {"type": "text"}}, "reasoning": {"effort": "high", "summary": "auto"}}),
        ),
        (
            "tools",
            json!({"model": "pebble", "input": input, "tools": [add, {"type": "web_search"}],
            "tool_choice": {"type": "function", "name": "add"}}),
        ),
        (
            "a JSON schema",
            json!({"model": "pebble", "input": "What is 2 + 3?", "previous_response_id": "resp_1", "store": false,
            "text": {"format": {"type": "json_schema", "name": "sum", "schema": schema()}}}),
        ),
        (
            "thinking",
            json!({"model": "pebble", "input": "What is 2 + 3?", "reasoning": {"generate_summary": "auto"},
            "chat_template_kwargs": {"enable_thinking": true}}),
        ),
        ("an image", json!({"model": "pebble", "input": shown})),
    ]
}

/// `POST /v1/messages`
pub(super) fn message() -> Examples {
    let add = json!({"name": "add", "description": "Adds two numbers.", "input_schema": {"type": "object"}});
    let called = json!([{"role": "user", "content": [{"type": "text", "text": "What is 2 + 3?"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "I add.", "signature": ""},
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 2, "b": 3}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "5", "is_error": false}]}]);
    let source = json!({"type": "base64", "media_type": "image/png", "data": IMAGE});
    let shown = json!([{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "Which colour is it?"}]}]);
    vec![
        (
            "a question",
            json!({"model": "pebble", "max_tokens": 500, "system": "Be short.", "messages": messages(), "stream": true,
            "stop_sequences": ["END"], "temperature": 0.7}),
        ),
        (
            "tools",
            json!({"model": "pebble", "max_tokens": 500, "messages": called, "tools": [add, {"type": "web_search_20250305"}],
            "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": true}}),
        ),
        (
            "a JSON schema",
            json!({"model": "pebble", "max_tokens": 500, "messages": messages(),
            "output_config": {"format": {"type": "json_schema", "schema": schema()}}}),
        ),
        (
            "thinking",
            json!({"model": "pebble", "max_tokens": 5000, "messages": messages(), "output_config": {"effort": "high", "format": {"type": "text"}},
            "tools": [{"name": "now"}], "tool_choice": {"type": "auto"},
            "thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ),
        (
            "an image",
            json!({"model": "pebble", "max_tokens": 500, "messages": shown}),
        ),
    ]
}

/// `POST /v1/messages/count_tokens`
pub(super) fn count_tokens() -> Examples {
    let mut examples = message();
    for (_, example) in &mut examples {
        if let Value::Object(fields) = example {
            fields
                .retain(|name, _| !["max_tokens", "stream", "stop_sequences", "temperature"].contains(&name.as_str()));
        }
    }
    examples
}

/// `POST /v1/embeddings`
pub(super) fn embeddings() -> Examples {
    vec![
        (
            "texts",
            json!({"model": "embedder", "input": ["Two and three", "are five"], "encoding_format": "float"}),
        ),
        (
            "token ids",
            json!({"model": "embedder", "input": [1, 2, 3], "encoding_format": "base64"}),
        ),
    ]
}

/// `POST /v1/models/unload`
pub(super) fn unload() -> Examples {
    vec![("a model", json!({"model": "pebble"}))]
}
