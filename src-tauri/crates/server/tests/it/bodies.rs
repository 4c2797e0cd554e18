//! Bodies of many requests at once: they share a budget, which they hold until they are translated.

use std::sync::Arc;
use std::time::Duration;

use api::{LocalModel, ModelShelf};
use protocol::ModelSource;
use serde_json::json;
use server::{Limits, ServerConfig};

use crate::client::{post, request, Connection};
use crate::harness::{listed, Harness, Shelf};

const CHAT: &str = "/v1/chat/completions";
const JSON: (&str, &str) = ("content-type", "application/json");

/// A model whose context holds whatever a body has.
struct Wide;

impl ModelShelf for Wide {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        Shelf.resolve(reference)
    }

    fn list(&self) -> Vec<LocalModel> {
        vec![LocalModel {
            context: Some(u32::MAX),
            ..listed("pebble")
        }]
    }
}

async fn with_limits(limits: Limits) -> Harness {
    let config = ServerConfig {
        limits,
        ..ServerConfig::default()
    };
    Harness::serving(config, Arc::new(Wide)).await
}

async fn with_budget(all_body_bytes: usize) -> Harness {
    with_limits(Limits {
        all_body_bytes,
        body_bytes: 1 << 20,
        ..Limits::default()
    })
    .await
}

/// The head of a request with this header for its length, and the beginning of its body.
async fn begun(harness: &Harness, length: &str, body: &str) -> Connection {
    let mut connection = Connection::open(harness.address).await;
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{length}\r\n\r\n{body}",
        harness.address
    );
    connection.send(head.as_bytes()).await.unwrap();
    connection
}

/// A chat that no engine sees, because its model is unknown.
fn small() -> Vec<u8> {
    json!({"model": "none", "messages": [{"role": "user", "content": "hi"}]})
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn a_body_waits_until_those_before_it_leave_room() {
    let harness = with_budget(2 << 20).await;
    let whole = format!("content-length: {}", 1 << 20);
    // One tells its length, the other may have the most.
    let first = begun(&harness, &whole, "{").await;
    let second = begun(&harness, "transfer-encoding: chunked", "1\r\n{\r\n").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut third = Connection::open(harness.address).await;
    third
        .send(&request("POST", harness.address, CHAT, &[JSON], &small()))
        .await
        .unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(400), third.head()).await;
    assert!(waited.is_err(), "it was read beyond the budget: {waited:?}");
    drop(first);
    assert_eq!(third.head().await.unwrap().status, 404);
    drop(second);
}

#[tokio::test]
async fn an_answer_that_is_being_written_holds_no_part_of_the_budget() {
    let harness = with_budget(1 << 20).await;
    let text = "x".repeat(700 << 10);
    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": text}]}).to_string();
    let mut open = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(harness.address).await;
        let chat = request("POST", harness.address, CHAT, &[JSON], body.as_bytes());
        connection.send(&chat).await.unwrap();
        jobs.push(harness.job().await);
        open.push(connection);
    }
    assert_eq!(
        post(harness.address, CHAT, &json!({"model": "none"})).await.head.status,
        404
    );
}
