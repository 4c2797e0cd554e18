//! Schemas of responses. Tests compare them with real ones.

use serde_json::{json, Value};

fn object(properties: Value) -> Value {
    let names: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(|properties| properties.keys())
        .collect();
    json!({"type": "object", "required": names, "properties": properties, "additionalProperties": false})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// All of them, by name.
pub(super) fn schemas() -> Value {
    let (text, count, flag) = (
        json!({"type": "string"}),
        json!({"type": "integer", "minimum": 0}),
        json!({"type": "boolean"}),
    );
    let or_null = |kind: &str| json!({"type": [kind, "null"]});
    let function = object(json!({"name": text, "arguments": text}));
    let call = object(json!({"id": text, "type": one_of(&["function"]), "function": function}));
    let mut message =
        object(json!({"role": one_of(&["assistant"]), "content": or_null("string"), "refusal": {"type": "null"}}));
    message["properties"]["reasoning_content"] = text.clone();
    message["properties"]["tool_calls"] = list(call);
    let usage = object(
        json!({"prompt_tokens": count, "completion_tokens": count, "total_tokens": count,
        "prompt_tokens_details": object(json!({"cached_tokens": count})),
        "completion_tokens_details": object(json!({"reasoning_tokens": count}))}),
    );
    let choice = object(
        json!({"index": count, "message": message, "logprobs": or_null("object"),
        "finish_reason": one_of(&["stop", "length", "tool_calls"])}),
    );
    let completed = object(
        json!({"index": count, "text": text, "logprobs": or_null("object"), "finish_reason": one_of(&["stop", "length"])}),
    );
    let completion = |kind: &str, choice: Value| {
        object(
            json!({"id": text, "object": one_of(&[kind]), "created": count, "model": text, "choices": list(choice), "usage": usage}),
        )
    };
    let mut response = object(json!({"id": text, "object": one_of(&["response"]), "created_at": count,
        "status": one_of(&["completed", "incomplete", "failed"]), "error": or_null("object"), "incomplete_details": or_null("object"),
        "model": text, "output": list(json!({"type": "object", "required": ["type", "id"], "properties": {
            "type": one_of(&["reasoning", "message", "function_call", "file_search_call"]), "id": text, "status": text}})),
        "usage": object(json!({"input_tokens": count, "output_tokens": count, "total_tokens": count,
            "input_tokens_details": object(json!({"cached_tokens": count, "cache_write_tokens": count})),
            "output_tokens_details": object(json!({"reasoning_tokens": count}))}))}));
    // The echoed fields of the request.
    response["additionalProperties"] = true.into();
    let block = json!({"type": "object", "required": ["type"], "properties": {"type": one_of(&["text", "thinking", "tool_use"]),
        "text": text, "thinking": text, "signature": text, "id": text, "name": text, "input": {"type": "object"}}, "additionalProperties": false});
    let vector = json!({"anyOf": [list(json!({"type": "number"})), {"type": "string"}]});
    let embedding = object(json!({"object": one_of(&["embedding"]), "index": count, "embedding": vector}));
    let model = json!({"type": "object", "required": ["id"], "properties": {"id": text}});
    let said = json!({"role": one_of(&["assistant"]), "content": text, "thinking": text, "tool_calls": list(object(json!({"id": text,
        "function": object(json!({"index": count, "name": text, "arguments": {"type": "object"}}))})))});
    // Without a question there are no figures; only a chat has a message, only a prompt a response.
    let answer = |required: &str, own: Value| {
        let mut properties = json!({"model": text, "created_at": text, "done": flag, "done_reason": one_of(&["stop", "length", "load", "unload"]),
            "logprobs": list(json!({"type": "object"})), "total_duration": count, "load_duration": count, "prompt_eval_count": count,
            "prompt_eval_duration": count, "eval_count": count, "eval_duration": count});
        for (name, schema) in own.as_object().into_iter().flatten() {
            properties[name] = schema.clone();
        }
        json!({"type": "object", "required": ["model", "created_at", "done", "done_reason", required], "properties": properties,
            "additionalProperties": false})
    };
    let details = json!({"type": "object", "required": ["format"], "properties": {"format": text, "family": text, "families": list(text.clone()),
        "quantization_level": text, "parameter_size": text}, "additionalProperties": false});
    let local = json!({"type": "object", "required": ["name", "model"], "properties": {"name": text, "model": text, "size": count,
        "size_vram": count, "digest": text, "context_length": count, "details": details}, "additionalProperties": false});
    let studio_model = json!({"type": "object", "required": ["id", "object", "type", "compatibility_type", "state"], "properties": {
        "id": text, "object": one_of(&["model"]), "type": one_of(&["llm", "vlm", "embeddings"]), "compatibility_type": one_of(&["mlx"]),
        "state": one_of(&["loaded", "not-loaded"]), "publisher": text, "arch": text, "quantization": text, "max_context_length": count},
        "additionalProperties": false});
    json!({
        "OllamaChat": answer("message", json!({"message": {"type": "object", "required": ["role", "content"], "properties": said,
            "additionalProperties": false}})),
        "OllamaGenerate": answer("response", json!({"response": text, "thinking": text})),
        "OllamaEmbed": object(json!({"model": text, "embeddings": list(list(json!({"type": "number"}))), "total_duration": count,
            "prompt_eval_count": count})),
        "OllamaEmbeddings": object(json!({"embedding": list(json!({"type": "number"}))})),
        "OllamaModels": object(json!({"models": list(local)})),
        "OllamaShow": object(json!({"details": details, "model_info": {"type": "object"},
            "capabilities": list(one_of(&["completion", "tools", "vision", "thinking", "embedding"]))})),
        "OllamaVersion": object(json!({"version": text})),
        "OllamaError": object(json!({"error": text})),
        "LmStudioModels": object(json!({"object": one_of(&["list"]), "data": list(studio_model.clone())})),
        "LmStudioModel": studio_model,
        "ChatCompletion": completion("chat.completion", choice),
        "Completion": completion("text_completion", completed),
        "Response": response,
        "InputItems": object(json!({"object": one_of(&["list"]), "data": list(json!({"type": "object", "required": ["type", "id"], "properties": {
            "type": text, "id": text}})), "first_id": or_null("string"), "last_id": or_null("string"), "has_more": flag})),
        "VectorStores": object(json!({"object": one_of(&["list"]), "data": list(json!({"type": "object", "required": ["id", "object", "name"], "properties": {
            "id": text, "object": one_of(&["vector_store"]), "name": text, "created_at": count, "usage_bytes": count,
            "status": one_of(&["completed", "in_progress"]), "file_counts": {"type": "object"}}})),
            "first_id": or_null("string"), "last_id": or_null("string"), "has_more": flag})),
        "InputTokens": object(json!({"object": one_of(&["response.input_tokens"]), "input_tokens": count})),
        "DeletedResponse": object(json!({"id": text, "object": one_of(&["response"]), "deleted": flag})),
        "Message": object(json!({"id": text, "type": one_of(&["message"]), "role": one_of(&["assistant"]), "model": text,
            "content": list(block), "stop_sequence": or_null("string"),
            "stop_reason": one_of(&["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use"]),
            "usage": object(json!({"input_tokens": count, "cache_creation_input_tokens": count, "cache_read_input_tokens": count,
                "output_tokens": count}))})),
        "TokenCount": object(json!({"input_tokens": count})),
        "Embeddings": object(json!({"object": one_of(&["list"]), "data": list(embedding), "model": text,
            "usage": object(json!({"prompt_tokens": count, "total_tokens": count}))})),
        "Models": {"type": "object", "required": ["data"], "properties": {"data": list(model.clone())}},
        "Model": model,
        "Unloaded": object(json!({"success": flag})),
        "Health": object(json!({"status": one_of(&["ok"])})),
        "Description": {"type": "object"},
        "OpenAiError": object(json!({"error": object(json!({"message": text, "type": text, "param": or_null("string"), "code": or_null("string")}))})),
        "AnthropicError": object(json!({"type": one_of(&["error"]), "error": object(json!({"type": text, "message": text})), "request_id": text})),
    })
}
