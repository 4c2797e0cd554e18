//! Many connections: those that send nothing keep nobody out, and a sign of life is always given.

use std::time::{Duration, Instant};

use protocol::FinishReason;
use serde_json::json;
use server::{Limits, ServerConfig};

use crate::client::{get, post, request, Connection};
use crate::harness::{done, Harness};

const CHAT: &str = "/v1/chat/completions";

/// The time within which everybody is served, far less than a slow connection gets.
const SOON: Duration = Duration::from_secs(4);

async fn with_connections(connections: usize) -> Harness {
    Harness::with(ServerConfig {
        limits: Limits {
            connections,
            ..Limits::default()
        },
        ..ServerConfig::default()
    })
    .await
}

#[tokio::test]
async fn slow_connections_hinder_neither_a_probe_nor_a_chat() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut connection = Connection::open(harness.address).await;
        connection.send(b"POST / HTTP/1.1\r\nx: ").await.unwrap();
        slow.push(connection);
    }
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(get(harness.address, "/health").await.head.status, 200);
        let body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(post(harness.address, CHAT, &body).await.head.status, 200);
        // They go on, a byte at a time; those that were cut do not.
        for connection in &mut slow {
            let _ = connection.send(b"a").await;
        }
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(harness.server.figures().connections < 128);
    answering.abort();
}

#[tokio::test]
async fn the_first_request_has_less_time_than_the_next() {
    let limits = Limits {
        first_header_time: Duration::from_millis(300),
        header_time: Duration::from_secs(3600),
        ..Limits::default()
    };
    let harness = Harness::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    })
    .await;
    let mut used = Connection::open(harness.address).await;
    let health = request("GET", harness.address, "/health", &[], b"");
    used.send(&health).await.unwrap();
    let head = used.head().await.unwrap();
    used.body(&head).await;
    let mut slow = Connection::open(harness.address).await;
    slow.send(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
    assert!(slow.is_closed().await);
    tokio::time::sleep(Duration::from_millis(400)).await;
    used.send(&health).await.unwrap();
    assert_eq!(used.head().await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_beyond_the_most_are_told_to_come_back_and_idle_connections_make_room() {
    let harness = with_connections(3).await;
    let body = json!({"model": "pebble", "stream": true, "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let json = [("content-type", "application/json")];
    let chat = request("POST", harness.address, CHAT, &json, body.as_bytes());
    let mut open = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let mut connection = Connection::open(harness.address).await;
        connection.send(&chat).await.unwrap();
        jobs.push(harness.job().await);
        assert_eq!(connection.head().await.unwrap().status, 200);
        open.push(connection);
    }
    let refused = get(harness.address, "/v1/models").await;
    assert_eq!(
        (refused.head.status, refused.head.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(refused.json()["error"]["type"], "overloaded_error");
    assert_eq!(get(harness.address, "/health").await.head.status, 200);
    // The end of an answer leaves its connection open and its place to the next.
    jobs[0].events.send(done(FinishReason::Stop));
    while open[0].chunk().await.is_some() {}
    assert_eq!(get(harness.address, "/v1/models").await.head.status, 200);
    assert!(open[0].is_closed().await);
    let metrics = get(harness.address, "/metrics").await.body;
    assert!(
        metrics.contains("ponder_requests_total{route=\"/models\",status=\"503\"} 1"),
        "{metrics}"
    );
}
