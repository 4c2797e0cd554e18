//! Schemas that take long to check hold up nobody else.

use std::time::{Duration, Instant};

use protocol::{Content, FinishReason};
use serde_json::{json, Map, Value};
use server::{Limits, ServerConfig};

use crate::client::{get, post, request, Connection, LONG};
use crate::clients_seen::{CHAT, MESSAGES, RESPONSES};
use crate::harness::{delta, done, Harness};

/// Within the limits, and yet much work, twice as much with each level: it merges two copies of the next one.
fn slow(levels: usize) -> Value {
    let level = |next: usize| {
        let next = json!({"$ref": format!("#/$defs/{next}"), "type": "object"});
        json!({"type": "object", "properties": {"a": next, "b": next}})
    };
    let mut all: Map<String, Value> = (0..levels).map(|n| (n.to_string(), level(n + 1))).collect();
    all.insert(levels.to_string(), json!({"type": "integer"}));
    json!({"$defs": all, "$ref": "#/$defs/0"})
}

fn with_schema(surface: &str, schema: &Value) -> Value {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let format = json!({"type": "json_schema", "name": "s", "schema": schema});
    match surface {
        CHAT => {
            json!({"model": "pebble", "messages": messages, "response_format": {"type": "json_schema", "json_schema": format}})
        }
        RESPONSES => json!({"model": "pebble", "input": "hi", "text": {"format": format}}),
        _ => json!({"model": "pebble", "messages": messages, "max_tokens": 9, "output_config": {"format": format}}),
    }
}

/// A server with one schema's time, which is what is looked at.
async fn harness(schema_time: Duration) -> Harness {
    let limits = Limits {
        schema_time,
        ..Limits::default()
    };
    Harness::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    })
    .await
}

#[tokio::test]
async fn a_schema_that_takes_too_long_is_refused_by_its_name() {
    // The actual time depends on the computer.
    let begun = Instant::now();
    let checked = constraint::check(&slow(12));
    let whole = begun.elapsed();
    assert!(
        checked.is_ok() && whole > Duration::from_millis(100),
        "{whole:?}: {checked:?}"
    );
    let harness = harness(whole / 20).await;
    for (surface, param) in [
        (CHAT, "response_format.json_schema.schema"),
        (RESPONSES, "text.format.schema"),
        (MESSAGES, "output_config.format.schema"),
    ] {
        let begun = Instant::now();
        let response = post(harness.address, surface, &with_schema(surface, &slow(12))).await;
        let message = response.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(response.head.status, 400, "{message}");
        assert!(
            message.starts_with(param) && message.contains("to compile"),
            "{message}"
        );
        println!("report: refused after {:?} of {whole:?}", begun.elapsed());
        // An abandoned check ends before the next one begins.
        tokio::time::sleep(whole * 2).await;
    }
}

/// The test has one thread, so whatever holds it up holds up this stream and these requests.
#[tokio::test]
async fn others_keep_their_pace_while_a_schema_is_checked() {
    let harness = harness(Duration::from_secs(60)).await;
    let mut stream = Connection::open(harness.address).await;
    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}], "stream": true}).to_string();
    let json = [("content-type", "application/json")];
    stream
        .send(&request("POST", harness.address, CHAT, &json, body.as_bytes()))
        .await
        .unwrap();
    let job = harness.job().await;
    job.events.send(delta(Content::text("a")));
    assert_eq!(stream.head().await.unwrap().status, 200);
    while !stream.chunk().await.unwrap().contains("\"a\"") {}

    let address = harness.address;
    let slow = tokio::spawn(async move { post(address, CHAT, &with_schema(CHAT, &slow(14))).await });
    let (mut longest, mut rounds) = (Duration::ZERO, 0);
    let begun = Instant::now();
    while !slow.is_finished() && begun.elapsed() < LONG {
        let round = Instant::now();
        job.events.send(delta(Content::text("b")));
        assert!(stream.chunk().await.unwrap().contains("\"b\""));
        assert_eq!(get(address, "/health").await.head.status, 200);
        longest = longest.max(round.elapsed());
        rounds += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let whole = begun.elapsed();
    println!("report: {rounds} rounds while a schema was checked, the longest {longest:?} of {whole:?}");
    assert!(rounds >= 5, "{rounds} rounds");
    job.events.send(done(FinishReason::Stop));
    // It is one that the compiler gives up.
    assert_eq!(slow.await.unwrap().head.status, 400);
}
