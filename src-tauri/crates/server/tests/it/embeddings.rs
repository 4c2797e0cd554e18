//! Embeddings over HTTP.

use serde_json::{json, Value};

use crate::client::{get, post};
use crate::clients_seen::{CHAT, MESSAGES, RESPONSES};
use crate::harness::Harness;

async fn asked(harness: &Harness, body: &Value) -> (u16, Value) {
    let response = post(harness.address, "/v1/embeddings", body).await;
    (response.head.status, response.json())
}

#[tokio::test]
async fn texts_become_vectors_and_tokens_are_counted() {
    let harness = Harness::open().await;
    let (status, body) = asked(&harness, &json!({"model": "org/embedder", "input": ["abc", "de"]})).await;
    assert_eq!((status, &body["model"]), (200, &json!("org/embedder")));
    assert_eq!(body["data"][0]["embedding"], json!([3.0, 1.0, 0.0]));
    assert_eq!(
        (&body["data"][1]["index"], &body["data"][1]["embedding"][0]),
        (&json!(1), &json!(2.0))
    );
    assert_eq!(body["usage"], json!({"prompt_tokens": 5, "total_tokens": 5}));
    let (_, cut) = asked(
        &harness,
        &json!({"model": "org/embedder", "input": [7, 8, 9], "dimensions": 2}),
    )
    .await;
    assert_eq!(cut["data"][0]["embedding"], json!([3.0, 1.0]));
    assert_eq!(harness.server.clients()[0].prompt_tokens, 8);
    let metrics = get(harness.address, "/metrics").await.body;
    assert!(
        metrics.contains("ponder_tokens_total{kind=\"prompt\"} 8") && metrics.contains("ponder_requests_in_flight 0")
    );
}

#[tokio::test]
async fn a_model_that_chats_makes_no_vectors_and_one_that_makes_vectors_does_not_chat() {
    let harness = Harness::open().await;
    let (status, body) = asked(&harness, &json!({"model": "pebble", "input": "a"})).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("model")));
    let (status, body) = asked(&harness, &json!({"model": "other", "input": "a"})).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("model_not_found")));
    for surface in [CHAT, RESPONSES, MESSAGES] {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let body =
            json!({"model": "org/embedder", "messages": messages, "input": "hi", "max_tokens": 9, "stream": true});
        let response = post(harness.address, surface, &body).await;
        let message = response.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(
            response.head.status == 400 && message.contains("makes embeddings"),
            "{surface}: {message}"
        );
    }
    let list = get(harness.address, "/v1/models").await.json();
    let kinds: Vec<&Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["kind"])
        .collect();
    assert_eq!(kinds, ["chat", "chat", "embedding"]);
}
