//! A smaller model that a request names to draft its response.

use serde_json::json;

use crate::client::post;
use crate::clients_seen::CHAT;
use crate::harness::Harness;

#[tokio::test]
async fn a_draft_model_goes_to_the_engine_with_the_request() {
    let harness = Harness::open().await;
    for (draft_model, expected) in [
        (json!("pebble"), Some("pebble")),
        (json!(""), None),
        (json!(null), None),
    ] {
        let body =
            json!({"model": "pebble", "draft_model": draft_model, "messages": [{"role": "user", "content": "hi"}]});
        let address = harness.address;
        let asked = tokio::spawn(async move { post(address, CHAT, &body).await.head.status });
        let job = harness.job().await;
        let drafts = job.request.draft_model.as_ref().map(|model| model.reference.as_str());
        assert_eq!(drafts, expected);
        drop(job);
        asked.await.unwrap();
    }
}

#[tokio::test]
async fn a_draft_model_that_is_none_is_refused_by_name() {
    let harness = Harness::open().await;
    for (name, status) in [("nobody/nothing", 404), ("org/embedder", 400)] {
        let body = json!({"model": "pebble", "draft_model": name, "messages": [{"role": "user", "content": "hi"}]});
        let refused = post(harness.address, CHAT, &body).await;
        assert_eq!(refused.head.status, status, "{name}");
        assert!(refused.body.contains(name), "{name}: {}", refused.body);
    }
}
