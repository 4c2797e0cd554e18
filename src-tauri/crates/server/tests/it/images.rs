//! Images in requests of all three interfaces.

use protocol::{Content, ImageDetail, Role};
use serde_json::{json, Value};
use server::ServerConfig;

use crate::client::post;
use crate::harness::Harness;

/// A PNG of one pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn url() -> String {
    format!("data:image/png;base64,{IMAGE}")
}

/// The same question in the words of each interface, with a part that is an image.
fn questions(chat: Value, response: Value, message: Value) -> [(&'static str, Value); 3] {
    let text = |kind: &str| json!({"type": kind, "text": "Which colour?"});
    [
        (
            "/v1/chat/completions",
            json!({"model": "pebble", "messages": [{"role": "user", "content": [chat, text("text")]}]}),
        ),
        (
            "/v1/responses",
            json!({"model": "pebble", "input": [{"role": "user", "content": [response, text("input_text")]}]}),
        ),
        (
            "/v1/messages",
            json!({"model": "pebble", "max_tokens": 9, "messages": [{"role": "user", "content": [message, text("text")]}]}),
        ),
    ]
}

fn shown() -> [(&'static str, Value); 3] {
    questions(
        json!({"type": "image_url", "image_url": {"url": url()}}),
        json!({"type": "input_image", "image_url": url()}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}),
    )
}

#[tokio::test]
async fn an_image_reaches_the_engine_by_every_interface() {
    let harness = Harness::open().await;
    for (path, body) in shown() {
        let address = harness.address;
        let asking = tokio::spawn(async move { post(address, path, &body).await });
        let job = harness.job().await;
        let request = &job.request;
        let [Content::Image {
            attachment,
            media_type,
            width,
            height,
            ..
        }, Content::Text { text }] = request.messages[0].content.as_slice()
        else {
            panic!("{path}: {:?}", request.messages[0].content)
        };
        assert_eq!(
            (media_type.as_str(), *width, *height, text.as_str()),
            ("image/png", 1, 1, "Which colour?"),
            "{path}"
        );
        assert_eq!(request.images[attachment].to_base64(), IMAGE, "{path}");
        drop(job);
        asking.await.unwrap();
    }
}

#[tokio::test]
async fn a_tool_may_give_an_image() {
    let harness = Harness::open().await;
    let source = json!({"type": "base64", "media_type": "image/png", "data": IMAGE});
    let body = json!({"model": "pebble", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "screenshot", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "Here."}, {"type": "image", "source": source}]}]}]});
    let address = harness.address;
    let asking = tokio::spawn(async move { post(address, "/v1/messages", &body).await });
    let job = harness.job().await;
    let result = &job.request.messages[2];
    assert_eq!(result.role, Role::Tool);
    assert!(
        matches!(result.content.as_slice(), [Content::Text { .. }, Content::Image { .. }]),
        "{:?}",
        result.content
    );
    assert_eq!(job.request.images.len(), 1);
    drop(job);
    asking.await.unwrap();
}

#[tokio::test]
async fn a_model_that_does_not_see_refuses_the_field_and_names_those_that_do() {
    let harness = Harness::open().await;
    harness.engine.make_blind("pebble");
    let places = [
        "messages[0].content[0]",
        "input[0].content[0]",
        "messages[0].content[0].source.data",
    ];
    for ((path, body), place) in shown().into_iter().zip(places) {
        let refused = post(harness.address, path, &body).await;
        assert_eq!(refused.head.status, 400, "{path}");
        let error = refused.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(place) && message.contains("cannot see") && message.contains("org/model"),
            "{path}: {message}"
        );
        assert!(harness.engine.take_job().is_none());
    }
}

#[tokio::test]
async fn a_vision_part_that_cannot_be_read_is_the_reason_of_the_refusal() {
    let harness = Harness::open().await;
    harness.engine.break_vision("pebble", "config.json lacks `depth`");
    for (path, body) in shown() {
        let refused = post(harness.address, path, &body).await;
        assert_eq!(refused.head.status, 400, "{path}");
        let error = refused.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("because its vision part cannot be read (config.json lacks `depth`)"),
            "{path}: {message}"
        );
    }
}

#[tokio::test]
async fn no_address_is_opened_and_no_file() {
    let harness = Harness::open().await;
    for address in [
        "http://127.0.0.1:1/a.png",
        "https://example.org/a.png",
        "file:///etc/passwd",
        "/etc/passwd",
    ] {
        let bodies = questions(
            json!({"type": "image_url", "image_url": {"url": address}}),
            json!({"type": "input_image", "image_url": address}),
            json!({"type": "image", "source": {"type": "url", "url": address}}),
        );
        for (path, body) in bodies {
            let refused = post(harness.address, path, &body).await;
            assert_eq!(refused.head.status, 400, "{path}");
            assert!(
                refused.body.contains("no address is opened"),
                "{path}: {}",
                refused.body
            );
        }
    }
    for broken in [
        "data:image/png;base64,AAAA",
        "data:image/png;base64,!",
        "data:text/plain,hello",
    ] {
        for (path, body) in questions(
            json!({"type": "image_url", "image_url": {"url": broken}}),
            json!({"type": "input_image", "image_url": broken}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": broken}}),
        ) {
            assert_eq!(
                post(harness.address, path, &body).await.head.status,
                400,
                "{path} {broken}"
            );
        }
    }
    assert!(harness.engine.take_job().is_none());
}

#[tokio::test]
async fn there_is_an_end_to_images() {
    let harness = Harness::open().await;
    let part = json!({"type": "image_url", "image_url": {"url": url()}});
    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": vec![part; 65]}]});
    let refused = post(harness.address, "/v1/chat/completions", &body).await;
    assert_eq!(refused.head.status, 400);
    assert!(refused.body.contains("messages[0].content[64]"), "{}", refused.body);
}

#[tokio::test]
async fn images_are_looked_at_as_is_set_unless_a_quick_look_is_asked_for() {
    let harness = Harness::with(ServerConfig {
        image_detail: ImageDetail::Full,
        ..ServerConfig::default()
    })
    .await;
    let chat = |detail: Value| {
        let part = json!({"type": "image_url", "image_url": {"url": url(), "detail": detail}});
        let [(path, body), ..] = questions(part, Value::Null, Value::Null);
        (path, body)
    };
    let [_, _, message] = shown();
    let asked = [
        (chat(Value::Null), ImageDetail::Full),
        (chat("auto".into()), ImageDetail::Full),
        (chat("low".into()), ImageDetail::Quick),
        (message, ImageDetail::Full),
    ];
    for ((path, body), expected) in asked {
        let address = harness.address;
        let asking = tokio::spawn(async move { post(address, path, &body).await });
        let job = harness.job().await;
        assert_eq!(job.request.image_detail, expected, "{path}");
        drop(job);
        asking.await.unwrap();
    }
}
