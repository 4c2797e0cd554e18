//! Models leave memory after a while, or by request.

use std::time::Duration;

use protocol::{FolderSource, LocalEngine};
use serde_json::{json, Value};
use server::{KeepAlive, ServerConfig};

use crate::client::{get, post};
use crate::clients_seen::CHAT;
use crate::harness::Harness;

async fn harness(keep_alive: KeepAlive) -> Harness {
    let harness = Harness::with(ServerConfig {
        keep_alive,
        ..ServerConfig::default()
    })
    .await;
    let model = FolderSource {
        reference: "pebble".into(),
        path: "/models".into(),
        revision: None,
        adapter: None,
    };
    drop(harness.engine.load(model));
    harness
}

async fn asked(harness: &Harness, more: Value) -> u16 {
    let answering = harness.answer_all();
    let mut body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}]});
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    let status = post(harness.address, CHAT, &body).await.head.status;
    answering.abort();
    status
}

fn loaded(harness: &Harness) -> bool {
    !harness.engine.loaded().is_empty()
}

#[tokio::test]
async fn a_model_leaves_when_nobody_asked_it_for_so_long() {
    let harness = harness(KeepAlive::For(Duration::from_secs(600))).await;
    harness.engine.set_idle(Some(Duration::from_secs(599)));
    assert_eq!(asked(&harness, json!({})).await, 200);
    assert!(loaded(&harness));
    harness.engine.set_idle(Some(Duration::from_secs(600)));
    assert!(!loaded(&harness));

    let harness = self::harness(KeepAlive::For(Duration::from_secs(600))).await;
    harness.engine.set_idle(Some(Duration::from_secs(599)));
    // The time of a request counts from then on.
    assert_eq!(asked(&harness, json!({"keep_alive": "2s"})).await, 200);
    assert!(!loaded(&harness));
}

#[tokio::test]
async fn a_model_stays_while_it_answers_and_if_it_is_told_to() {
    let harness = harness(KeepAlive::For(Duration::ZERO)).await;
    // It answers somebody else, such as the chat window.
    harness.engine.set_idle(None);
    assert_eq!(asked(&harness, json!({})).await, 200);
    assert!(loaded(&harness));
    let (status, body) = unload(&harness, "pebble").await;
    assert_eq!(status, 503, "{body}");
    harness.engine.set_idle(Some(Duration::ZERO));
    assert!(!loaded(&harness));

    let forever = self::harness(KeepAlive::For(Duration::ZERO)).await;
    forever.engine.set_idle(Some(Duration::MAX));
    assert_eq!(asked(&forever, json!({"keep_alive": -1})).await, 200);
    assert!(loaded(&forever));
    assert_eq!(asked(&forever, json!({"keep_alive": "soon"})).await, 400);
}

#[tokio::test]
async fn a_model_that_the_server_was_not_asked_for_stays() {
    let harness = harness(KeepAlive::For(Duration::ZERO)).await;
    harness.engine.set_idle(Some(Duration::MAX));
    assert!(loaded(&harness));
}

#[tokio::test]
async fn the_server_s_own_time_counts_again_for_a_request_without_one() {
    let harness = harness(KeepAlive::default()).await;
    assert_eq!(asked(&harness, json!({"keep_alive": "2s"})).await, 200);
    assert_eq!(asked(&harness, json!({})).await, 200);
    harness.engine.set_idle(Some(Duration::MAX));
    assert!(loaded(&harness));
}

#[tokio::test]
async fn a_model_of_embeddings_leaves_too() {
    let harness = harness(KeepAlive::For(Duration::from_secs(600))).await;
    let model = FolderSource {
        reference: "org/embedder".into(),
        path: "/models".into(),
        revision: None,
        adapter: None,
    };
    drop(harness.engine.load(model));
    harness.engine.set_idle(Some(Duration::from_secs(2)));
    let body = |keep_alive: &str| json!({"model": "org/embedder", "input": "text", "keep_alive": keep_alive});
    for (keep_alive, stays) in [("3s", true), ("2s", false)] {
        let response = post(harness.address, "/v1/embeddings", &body(keep_alive)).await;
        assert_eq!((response.head.status, loaded(&harness)), (200, stays), "{keep_alive}");
    }
}

async fn unload(harness: &Harness, model: &str) -> (u16, Value) {
    let response = post(harness.address, "/v1/models/unload", &json!({ "model": model })).await;
    (response.head.status, response.json())
}

#[tokio::test]
async fn a_listed_model_is_unloaded_by_request() {
    let harness = harness(KeepAlive::default()).await;
    harness.engine.set_idle(Some(Duration::ZERO));
    let listed = |body: &Value| -> Vec<bool> {
        let models = body["data"].as_array().unwrap();
        models.iter().map(|model| model["loaded"].as_bool().unwrap()).collect()
    };
    assert_eq!(
        listed(&get(harness.address, "/v1/models").await.json()),
        [true, false, false]
    );
    assert!(get(harness.address, "/metrics")
        .await
        .body
        .contains("ponder_models_loaded 1"));
    assert_eq!(unload(&harness, "/etc").await.0, 404);
    assert_eq!(unload(&harness, "org/model").await, (200, json!({"success": true})));
    assert!(loaded(&harness));
    assert_eq!(unload(&harness, "pebble").await, (200, json!({"success": true})));
    assert!(!loaded(&harness));
    assert_eq!(
        listed(&get(harness.address, "/v1/models").await.json()),
        [false, false, false]
    );
    assert!(get(harness.address, "/metrics")
        .await
        .body
        .contains("ponder_models_loaded 0"));
}
