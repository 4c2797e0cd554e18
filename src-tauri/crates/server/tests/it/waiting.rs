//! Long waits: the first event at once, signs of life, and an end if nobody waits any more.

use std::time::Duration;

use protocol::{Content, EngineEvent, FinishReason, Stage};
use serde_json::{json, Value};
use server::{Limits, ServerConfig};

use crate::client::{post, request, Connection, LONG};
use crate::harness::{delta, done, short_limits, Harness};

async fn harness() -> Harness {
    Harness::with(ServerConfig {
        limits: Limits {
            // Only the clock is short here.
            reader_patience: Duration::from_secs(20),
            ..short_limits()
        },
        ..ServerConfig::default()
    })
    .await
}

async fn ask(harness: &Harness, path: &str, body: &Value) -> Connection {
    let mut connection = Connection::open(harness.address).await;
    let json = [("content-type", "application/json")];
    connection
        .send(&request(
            "POST",
            harness.address,
            path,
            &json,
            body.to_string().as_bytes(),
        ))
        .await
        .unwrap();
    connection
}

fn question(path: &str) -> Value {
    match path {
        "/v1/responses" => json!({"model": "pebble", "input": "hi", "stream": true}),
        _ => {
            json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "stream": true,
            "thinking": {"type": "adaptive"}})
        }
    }
}

#[tokio::test]
async fn a_client_hears_at_once_and_then_again_and_again() {
    let harness = harness().await;
    for (path, first, sign, counted) in [
        (
            "/v1/chat/completions",
            "\"role\":\"assistant\"",
            ": still working",
            ": still working",
        ),
        (
            "/v1/responses",
            "response.created",
            ": still working",
            "\"type\":\"response.in_progress\"",
        ),
        (
            "/v1/messages",
            "message_start",
            "\"type\":\"ping\"",
            "\"thinking\":\"\"",
        ),
    ] {
        let mut connection = ask(&harness, path, &question(path)).await;
        let job = harness.job().await;
        assert_eq!(connection.head().await.unwrap().status, 200);
        assert!(connection.chunk().await.unwrap().contains(first));
        // The model is loaded and the prompt read for a while, which the client must not take for death.
        let (mut signs, mut progress) = (0, 0);
        for _ in 0..200 {
            if signs >= 6 && progress >= 2 {
                break;
            }
            job.events.send(EngineEvent::Progress {
                stage: Stage::Prefill,
                done: 1,
                total: 2,
            });
            let chunk = connection.chunk().await.unwrap();
            signs += usize::from(chunk.contains(sign));
            progress += usize::from(chunk.contains(counted));
        }
        assert!(signs >= 6 && progress >= 2, "{path}: {signs} {progress}");
        job.events.send(delta(Content::text("Hello")));
        job.events.send(done(FinishReason::Stop));
        let mut rest = String::new();
        while let Some(chunk) = connection.chunk().await {
            rest.push_str(&chunk);
        }
        assert!(rest.contains("Hello"));
    }
}

#[tokio::test]
async fn an_answer_that_flows_needs_no_signs() {
    let harness = harness().await;
    let mut connection = ask(&harness, "/v1/messages", &question("/v1/messages")).await;
    let job = harness.job().await;
    connection.head().await.unwrap();
    let mut all = String::new();
    for _ in 0..20 {
        job.events.send(delta(Content::text("a")));
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    job.events.send(done(FinishReason::Stop));
    while let Some(chunk) = connection.chunk().await {
        all.push_str(&chunk);
    }
    assert!(!all.contains("ping"), "{all}");
}

#[tokio::test]
async fn a_client_that_is_gone_ends_its_job() {
    let harness = harness().await;
    for stream in [true, false] {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
            let mut body = question(path);
            body["stream"] = stream.into();
            let connection = ask(&harness, path, &body).await;
            let job = harness.job().await;
            assert!(!job.cancel.is_cancelled());
            drop(connection);
            let cancelled = tokio::time::timeout(LONG, job.cancel.cancelled()).await;
            assert!(cancelled.is_ok(), "{path} {stream}");
        }
    }
    for _ in 0..6000 {
        if harness.server.figures().in_flight == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?}", harness.server.figures());
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut() {
    let harness = Harness::with(ServerConfig {
        limits: short_limits(),
        ..ServerConfig::default()
    })
    .await;
    let connection = ask(&harness, "/v1/chat/completions", &question("/v1/chat/completions")).await;
    let job = harness.job().await;
    // More than the system's buffers hold; nobody reads it.
    for _ in 0..400 {
        job.events.send(delta(Content::text("x".repeat(100_000))));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let cancelled = tokio::time::timeout(LONG, job.cancel.cancelled()).await;
    assert!(cancelled.is_ok());
    drop(connection);
}

#[tokio::test]
async fn a_stopped_answer_of_this_computer_is_an_error() {
    let harness = harness().await;
    let mut body = question("/v1/messages");
    body["stream"] = false.into();
    let (response, ()) = tokio::join!(post(harness.address, "/v1/messages", &body), async {
        let job = harness.job().await;
        job.events.send(done(FinishReason::Cancelled));
    });
    assert_eq!(response.head.status, 529);
}
