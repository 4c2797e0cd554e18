use std::time::Duration;

use protocol::{Endpoint, ErrorCode, Settings, Thinking};
use serde_json::{json, Map, Value};
use tokio::time::timeout;

use crate::{open, Harness};

fn values(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_change_is_told_to_everybody_in_every_process() {
    let harness = Harness::new().await;
    let (_, other) = open(&harness.path).await;
    let (mut here, mut there) = (harness.chat.follow_settings(), other.follow_settings());
    assert_eq!(*there.borrow(), Settings::default());
    let change = values(json!({"thinking": "low", "thinking_budget": 256}));
    let wanted = harness.chat.change_settings(&change).await.unwrap();
    assert_eq!((wanted.thinking, wanted.thinking_budget), (Some(Thinking::Low), Some(256)));
    for told in [&mut here, &mut there] {
        timeout(Duration::from_secs(120), told.changed()).await.unwrap().unwrap();
        assert_eq!(*told.borrow_and_update(), wanted);
    }
    // Two programs that change different settings do not undo each other's.
    other.change_settings(&values(json!({"default_model": "c/d"}))).await.unwrap();
    assert_eq!(harness.chat.settings().await.unwrap().thinking_budget, Some(256));
    assert_eq!(harness.chat.default_model().await.unwrap(), "c/d");
}

#[tokio::test]
async fn a_change_that_means_nothing_changes_nothing() {
    let harness = Harness::new().await;
    let told = harness.chat.follow_settings();
    for (change, code) in [
        (
            json!({"thinking_budget": 256, "default_model": "missing"}),
            ErrorCode::ModelNotFound,
        ),
        (json!({"thinking_budget": 256, "colour": "green"}), ErrorCode::BadRequest),
        (json!({"thinking_budget": "much"}), ErrorCode::BadRequest),
    ] {
        assert_eq!(harness.chat.change_settings(&values(change)).await.unwrap_err().code, code);
    }
    assert_eq!(harness.chat.settings().await.unwrap(), Settings::default());
    // What is set already is no change.
    harness
        .chat
        .change_settings(&values(json!({"thinking_budget": null})))
        .await
        .unwrap();
    assert!(!told.has_changed().unwrap());
}

#[tokio::test]
async fn a_new_chat_begins_as_it_is_set() {
    let harness = Harness::new().await;
    let change = values(json!({"thinking": "off", "thinking_budget": 64}));
    let settings = harness.chat.change_settings(&change).await.unwrap().new_chat();
    assert_eq!(
        (settings.model, settings.thinking, settings.thinking_budget),
        (None, Some(Thinking::Off), Some(64))
    );
}

#[tokio::test]
async fn a_default_model_goes_with_its_endpoint() {
    let harness = Harness::new().await;
    let endpoint = |name: &str| Endpoint {
        name: name.into(),
        base_url: "http://127.0.0.1:1/v1".into(),
        has_key: false,
    };
    harness.chat.set_endpoints(&[endpoint("lab"), endpoint("desk")]).await.unwrap();
    harness.chat.set_default_model("endpoint:lab/a/b").await.unwrap();
    harness.chat.set_endpoints(&[endpoint("lab")]).await.unwrap();
    assert_eq!(harness.chat.default_model().await.unwrap(), "endpoint:lab/a/b");
    harness.chat.set_endpoints(&[]).await.unwrap();
    assert_eq!(harness.chat.default_model().await.unwrap(), Settings::default().default_model);
}
