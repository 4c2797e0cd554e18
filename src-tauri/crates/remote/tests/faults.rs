//! Faults that the servers of the other tests cannot be made to show: refusals, odd streams and silence, from a small
//! server on loopback.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::Router;
use net::{MemoryKeychain, Net, Settings};
use protocol::{
    Content, Engine, EngineEvent, ErrorCode, FinishReason, Message, ModelSource, NoticeCode, Reason, Request, Role,
    Sampling, Thinking,
};
use remote::RemoteEngine;
use serde_json::{json, Value};

/// Answers one after another, and what was asked.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Vec<Response<Body>>>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

async fn answer(State(script): State<Script>, body: Bytes) -> Response<Body> {
    script
        .asked
        .lock()
        .unwrap()
        .push(serde_json::from_slice(&body).unwrap());
    script.answers.lock().unwrap().remove(0)
}

/// An engine whose endpoint gives these answers, and what it was asked.
async fn endpoint(answers: Vec<Response<Body>>) -> (RemoteEngine, Script) {
    let script = Script::default();
    *script.answers.lock().unwrap() = answers;
    let router = Router::new().fallback(answer).with_state(script.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let net = Net::open(Settings::of_a_test("http://127.0.0.1:9"));
    let endpoint = remote::endpoint("lab", &url).unwrap();
    (
        RemoteEngine::new(net, tokio::runtime::Handle::current(), vec![endpoint]),
        script,
    )
}

fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

fn question() -> Request {
    let model = ModelSource::remote("endpoint:lab/m").unwrap();
    Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling {
            top_k: Some(5),
            ..Sampling::default()
        },
        ..Request::new(model, vec![Message::text(Role::User, "question")])
    }
}

/// The text, the codes of the notices and the end.
async fn hear(engine: &RemoteEngine) -> (String, Vec<NoticeCode>, Result<FinishReason, protocol::Error>) {
    let mut job = engine.generate(question());
    let (mut said, mut notices) = (String::new(), Vec::new());
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Delta {
                content: Content::Text { text },
                ..
            } => said.push_str(&text),
            EngineEvent::Notice(notice) => notices.push(notice.code),
            EngineEvent::Done(done) => return (said, notices, Ok(done.finish_reason)),
            EngineEvent::Failed(error) => return (said, notices, Err(error)),
            EngineEvent::Started { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("a job ends")
}

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_refusal_says_what_it_means() {
    let error = json!({"error": {"message": "This model's maximum context length is 8 tokens", "code": "context_length_exceeded"}});
    for (answer, code, words) in [
        (
            reply(429, &[("retry-after", "7")], "slow down"),
            ErrorCode::Network,
            "7 seconds",
        ),
        (
            reply(503, &[], "{\"error\":{\"message\":\"loading\"}}"),
            ErrorCode::Network,
            "loading",
        ),
        (reply(404, &[], "no such model"), ErrorCode::ModelNotFound, "`m`"),
        (reply(403, &[], ""), ErrorCode::KeyRefused, "asks for a key"),
        (
            reply(400, &[], error.to_string()),
            ErrorCode::ContextFull,
            "maximum context length",
        ),
        (
            reply(400, &[], "{\"detail\":\"temperature must be positive\"}"),
            ErrorCode::BadRequest,
            "temperature",
        ),
        (reply(200, &[], "<html>"), ErrorCode::Network, "OpenAI-compatible"),
        (reply(200, &[], ""), ErrorCode::Network, "no answer"),
    ] {
        let (engine, _) = endpoint(vec![answer]).await;
        let failed = hear(&engine).await.2.unwrap_err();
        assert_eq!(failed.code, code, "{failed}");
        assert!(failed.message.contains(words), "{failed}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let whole = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}).to_string();
    let (engine, _) = endpoint(vec![reply(
        200,
        &[("content-type", "text/plain")],
        format!("\n {whole}"),
    )])
    .await;
    assert_eq!(hear(&engine).await, ("Hello".into(), vec![], Ok(FinishReason::Stop)));
}

#[tokio::test]
async fn an_end_without_done_is_an_end_and_none_without_a_reason() {
    let (engine, _) = endpoint(vec![
        reply(200, &[], format!("{HELLO}{STOP}")),
        reply(200, &[], format!("{HELLO}data: [DONE]\n\n")),
        reply(200, &[], HELLO),
        reply(
            200,
            &[],
            format!("{HELLO}data: {{\"error\":{{\"message\":\"out of memory\"}}}}\n\n"),
        ),
    ])
    .await;
    for _ in 0..2 {
        assert_eq!(hear(&engine).await, ("Hello".into(), vec![], Ok(FinishReason::Stop)));
    }
    let (said, _, end) = hear(&engine).await;
    assert_eq!((said.as_str(), end.unwrap_err().code), ("Hello", ErrorCode::Network));
    let (said, _, end) = hear(&engine).await;
    assert_eq!(said, "Hello");
    assert!(end.unwrap_err().message.contains("out of memory"));
}

#[tokio::test]
async fn what_is_refused_is_left_out_once_and_for_all() {
    let refusal = |field: &str| {
        let words = format!("Unrecognized request argument supplied: {field}");
        reply(400, &[], json!({"error": {"message": words}}).to_string())
    };
    let hello = || reply(200, &[], format!("{HELLO}{STOP}"));
    let (engine, script) = endpoint(vec![refusal("top_k"), refusal("stream_options"), hello(), hello()]).await;
    let (said, notices, _) = hear(&engine).await;
    assert_eq!((said.as_str(), notices), ("Hello", vec![NoticeCode::FieldRefused]));
    assert!(hear(&engine).await.1.is_empty());
    let asked = script.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 4);
    assert!(asked[0].get("top_k").is_some() && asked[0].get("stream_options").is_some());
    for body in &asked[2..] {
        assert!(
            body.get("top_k").is_none() && body.get("stream_options").is_none(),
            "{body}"
        );
        assert_eq!(body["chat_template_kwargs"]["enable_thinking"], false);
    }
}

#[tokio::test]
async fn without_a_keychain_a_key_has_another_place() {
    let net = Net::open(Settings {
        keychain: Arc::new(MemoryKeychain::absent()),
        ..Settings::of_a_test("http://127.0.0.1:9")
    });
    let endpoint = remote::endpoint("lab-2", "http://127.0.0.1:9").unwrap();
    let engine = RemoteEngine::new(net, tokio::runtime::Handle::current(), vec![endpoint]);
    let error: protocol::Error = engine.store_key("lab-2", "sk-secret", false).await.unwrap_err().into();
    assert_eq!(error.code, ErrorCode::Keychain);
    assert_eq!(error.arguments["variable"], "PONDER_KEY_LAB_2".into());
    assert!(
        error.message.contains("PONDER_KEY_LAB_2") && !error.message.contains("HF_TOKEN"),
        "{error}"
    );
    assert_eq!(engine.endpoint("lab-2").map(|endpoint| endpoint.has_key), Some(false));
}

#[tokio::test]
async fn an_endpoint_gets_its_key_before_it_is_listed() {
    let net = Net::open(Settings {
        keychain: Arc::new(MemoryKeychain::default()),
        ..Settings::of_a_test("http://127.0.0.1:9")
    });
    let mut endpoint = remote::endpoint("lab", "http://127.0.0.1:9").unwrap();
    let engine = RemoteEngine::new(net, tokio::runtime::Handle::current(), Vec::new());
    engine.store_first_key(&mut endpoint, "sk-right").await.unwrap();
    assert!(endpoint.has_key);
    engine.set_endpoints(vec![endpoint.clone()]);
    // The name is taken now.
    assert!(engine.store_first_key(&mut endpoint, "sk-other").await.is_err());
}

#[tokio::test]
async fn a_key_is_sent_unencrypted_only_if_that_was_allowed() {
    let net = Net::open(Settings {
        keychain: Arc::new(MemoryKeychain::default()),
        ..Settings::of_a_test("http://127.0.0.1:9")
    });
    let far = |name| remote::endpoint(name, "http://192.0.2.1/v1").unwrap();
    let unencrypted = |error: remote::Error| {
        let error = protocol::Error::from(error);
        assert_eq!(error.reason, Some(Reason::KeyUnencrypted), "{error}");
        assert!(error.message.contains("--unencrypted-key"), "{error}");
    };
    let engine = RemoteEngine::new(net.clone(), tokio::runtime::Handle::current(), vec![far("lab")]);
    let mut added = far("added");
    unencrypted(engine.store_first_key(&mut added, "sk-secret").await.unwrap_err());
    unencrypted(engine.store_key("lab", "sk-secret", false).await.unwrap_err());
    for name in ["lab", "added"] {
        assert_eq!(
            net.secret(&format!("endpoint:{name}")).await,
            Ok(None),
            "nothing is kept"
        );
    }
    assert!(!added.has_key);

    engine.store_key("lab", "sk-secret", true).await.unwrap();
    let allowed = engine.endpoint("lab").unwrap();
    assert!(allowed.has_key && allowed.unencrypted_key && !remote::info(&allowed).key_held_back);
    // As it was stored before there was a question.
    let before = api::Endpoint {
        unencrypted_key: false,
        ..allowed
    };
    assert!(remote::info(&before).key_held_back && !remote::info(&far("keyless")).key_held_back);
    engine.set_endpoints(vec![before]);
    // Offline, so that a request that is not refused before fails with another error.
    net.set_offline(true).unwrap();
    let listed = engine.models_of("lab").await.unwrap().problem.unwrap();
    assert_eq!(listed.reason, Some(Reason::KeyUnencrypted));
    let failed = hear(&engine).await.2.unwrap_err();
    assert_eq!(failed.reason, Some(Reason::KeyUnencrypted));
    assert!(net.requests().is_empty());

    engine.forget_key("lab").await.unwrap();
    let listed = engine.models_of("lab").await.unwrap().problem.unwrap();
    assert_eq!(
        listed.code,
        ErrorCode::Offline,
        "without a key there is nothing to hold back"
    );
}
