//! Bodies of many requests at once: they share a budget, which they hold until they are translated.

use std::sync::atomic::{AtomicUsize, Ordering};
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

static TRIMMED: AtomicUsize = AtomicUsize::new(0);

#[tokio::test]
async fn memory_is_given_back_after_large_requests_once_for_all_that_end_together() {
    let limits = Limits {
        trim_delay: Duration::from_millis(100),
        ..Limits::default()
    };
    let config = ServerConfig {
        limits,
        trim_heap: Some(|| {
            TRIMMED.fetch_add(1, Ordering::SeqCst);
        }),
        ..ServerConfig::default()
    };
    let harness = Harness::serving(config, Arc::new(Wide)).await;
    let answering = harness.answer_all();
    let body = |bytes: usize| json!({"model": "pebble", "messages": [{"role": "user", "content": "a".repeat(bytes)}]});
    let trimmed = || async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        TRIMMED.load(Ordering::SeqCst)
    };
    assert_eq!(post(harness.address, CHAT, &body(1 << 20)).await.head.status, 200);
    assert_eq!(trimmed().await, 0);
    let large = body(5 << 20);
    let both = tokio::join!(post(harness.address, CHAT, &large), post(harness.address, CHAT, &large));
    assert_eq!((both.0.head.status, both.1.head.status), (200, 200));
    assert!((1..=2).contains(&trimmed().await));
    let before = TRIMMED.load(Ordering::SeqCst);
    // One that is refused was read all the same.
    let mut refused = body(5 << 20);
    refused["temperature"] = json!(-1);
    assert_eq!(post(harness.address, CHAT, &refused).await.head.status, 400);
    assert_eq!(trimmed().await, before + 1);
    // It is not given back while an answer still needs it.
    answering.abort();
    let waiting = tokio::spawn({
        let (address, large) = (harness.address, large.clone());
        async move { post(address, CHAT, &large).await }
    });
    let job = harness.job().await;
    assert_eq!(trimmed().await, before + 1);
    drop(job);
    assert_eq!(waiting.await.unwrap().head.status, 503);
    assert_eq!(trimmed().await, before + 2);
}
