//! Stored responses, as OpenAI's SDKs ask for them again, and prompts that no context holds.

use serde_json::{json, Value};

use crate::client::{get, post};
use crate::harness::Harness;

#[tokio::test]
async fn a_stored_response_tells_its_input_and_streams_again() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let first = post(
        harness.address,
        "/v1/responses",
        &json!({"model": "pebble", "input": "hi"}),
    )
    .await
    .json();
    let next = json!({"model": "pebble", "previous_response_id": first["id"], "stream": true,
        "input": [{"role": "user", "content": "and now?"}]});
    let streamed = post(harness.address, "/v1/responses", &next).await.events();
    let whole = streamed.last().unwrap()["response"].clone();
    let place = format!("/v1/responses/{}", whole["id"].as_str().unwrap());

    let items = get(harness.address, &format!("{place}/input_items?order=asc&limit=50"))
        .await
        .json();
    let kinds: Vec<&str> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "message"]);
    assert_eq!(
        items["data"][0]["content"],
        json!([{"type": "input_text", "text": "hi"}])
    );
    assert_eq!(
        get(harness.address, "/v1/responses/none/input_items").await.head.status,
        404
    );
    assert_eq!(
        get(harness.address, &format!("{place}/input_items?limit=0"))
            .await
            .head
            .status,
        400
    );

    let again = get(harness.address, &format!("{place}?stream=true")).await;
    assert_eq!(
        again.head.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    let events = again.events();
    assert_eq!(events.last().unwrap()["response"], whole);
    let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
    assert_eq!(kind(&events[0]), "response.created");
    let rest = get(harness.address, &format!("{place}?stream=true&starting_after=4"))
        .await
        .events();
    assert_eq!(rest, events[5..]);
    assert_eq!(get(harness.address, &place).await.json(), whole);
    for wrong in ["stream=maybe", "starting_after=x"] {
        assert_eq!(get(harness.address, &format!("{place}?{wrong}")).await.head.status, 400);
    }
    answering.abort();
}

#[tokio::test]
async fn the_tokens_of_a_response_are_counted_before_it_is_made() {
    let harness = Harness::open().await;
    let body = json!({"model": "pebble", "input": "hello", "tools": [], "instructions": null});
    let counted = post(harness.address, "/v1/responses/input_tokens", &body).await;
    // The fake engine has one token for each byte.
    assert_eq!(
        counted.json(),
        json!({"object": "response.input_tokens", "input_tokens": 5})
    );
    assert!(harness.engine.take_job().is_none());
    let wrong = json!({"model": "pebble", "input": 5});
    assert_eq!(
        post(harness.address, "/v1/responses/input_tokens", &wrong)
            .await
            .head
            .status,
        400
    );
}

#[tokio::test]
async fn a_prompt_that_no_context_holds_is_refused_before_it_is_rendered() {
    let harness = Harness::open().await;
    let text = "word ".repeat(6 << 20);
    let messages = json!([{"role": "user", "content": text}]);
    let tools = json!([{"type": "function", "function": {"name": "f", "description": text}}]);
    let small = json!([{"role": "user", "content": "hi"}]);
    for (path, mut body) in [
        ("/v1/chat/completions", json!({"messages": messages})),
        ("/v1/chat/completions", json!({"messages": messages, "stream": true})),
        ("/v1/chat/completions", json!({"messages": small, "tools": tools})),
        ("/v1/completions", json!({"prompt": text})),
        ("/v1/responses", json!({"input": text})),
        ("/v1/responses/input_tokens", json!({"input": text})),
        ("/v1/messages", json!({"messages": messages, "max_tokens": 9})),
        ("/v1/messages/count_tokens", json!({"messages": messages})),
    ] {
        body["model"] = "pebble".into();
        let refused = post(harness.address, path, &body).await;
        assert_eq!(refused.head.status, 400, "{path}");
        let error = &refused.json()["error"];
        let message = error["message"].as_str().unwrap();
        if path.starts_with("/v1/messages") {
            assert!(
                message.starts_with("prompt is too long: 491520 tokens > 4096"),
                "{message}"
            );
        } else {
            assert_eq!(error["code"], "context_length_exceeded");
            assert!(message.contains("maximum context length is 4096 tokens"), "{message}");
        }
        assert!(harness.engine.take_job().is_none(), "{path}");
    }
}
