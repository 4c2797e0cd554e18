//! Ollama's and LM Studio's routes, as their clients read them.

use std::time::Duration;

use protocol::{Content, Engine, EngineEvent, Error, ErrorCode, FinishReason, FolderSource, Role, Thinking};
use serde_json::{json, Value};

use crate::client::{ask, get, post, request, Connection, Response};
use crate::harness::{call, delta, done, short_limits, Harness};
use server::ServerConfig;

pub const CHAT: &str = "/api/chat";
pub const GENERATE: &str = "/api/generate";

/// The objects of a response, one for each line.
pub fn lines(response: &Response) -> Vec<Value> {
    let lines = response.body.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Puts lines together as clients do: texts are joined, calls collected, and the rest is the last line's.
pub fn joined(lines: &[Value]) -> Value {
    let mut whole = lines.last().unwrap().clone();
    let in_message = whole.get("message").is_some();
    for (name, chat) in [
        ("thinking", true),
        ("content", true),
        ("thinking", false),
        ("response", false),
    ] {
        if chat != in_message {
            continue;
        }
        let part = |line: &Value| {
            if chat {
                line["message"][name].clone()
            } else {
                line[name].clone()
            }
        };
        let text: String = lines
            .iter()
            .filter_map(|line| part(line).as_str().map(str::to_owned))
            .collect();
        match chat {
            true => whole["message"][name] = text.into(),
            false => whole[name] = text.into(),
        }
    }
    let calls = lines
        .iter()
        .filter_map(|line| line["message"]["tool_calls"].as_array())
        .flatten();
    let calls: Vec<Value> = calls.cloned().collect();
    if !calls.is_empty() {
        whole["message"]["tool_calls"] = calls.into();
    }
    whole
}

fn question(more: Value) -> Value {
    let mut body = json!({"model": "pebble", "messages": [{"role": "user", "content": "2 + 3?"}]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Posts a body, and what the engine was asked.
async fn asked(harness: &Harness, path: &str, body: &Value) -> (Response, protocol::Request) {
    let (response, job) = tokio::join!(post(harness.address, path, body), async {
        let job = harness.job().await;
        job.events.send(delta(Content::text("5")));
        job.events.send(done(FinishReason::Stop));
        job
    });
    (response, job.request)
}

#[tokio::test]
async fn an_answer_streams_as_lines_unless_the_client_says_no() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]);
    for (body, stream) in [(question(json!({})), true), (question(json!({"stream": false})), false)] {
        let response = post(harness.address, CHAT, &body).await;
        let kind = response.head.header("content-type").unwrap();
        assert_eq!(
            kind,
            if stream {
                "application/x-ndjson"
            } else {
                "application/json"
            }
        );
        assert_eq!(lines(&response).len() > 1, stream);
        let whole = joined(&lines(&response));
        let message = json!({"role": "assistant", "content": "Hello there.", "thinking": "I think."});
        assert_eq!((&whole["message"], &whole["done_reason"]), (&message, &json!("stop")));
        assert_eq!((&whole["model"], &whole["eval_count"]), (&json!("pebble"), &json!(5)));
        for figure in [
            "total_duration",
            "load_duration",
            "prompt_eval_duration",
            "eval_duration",
        ] {
            assert!(whole[figure].is_u64(), "{figure}: {whole}");
        }
        let mut with_tools = body.clone();
        with_tools["tools"] = tools.clone();
        let called = joined(&lines(&post(harness.address, CHAT, &with_tools).await));
        let function = &called["message"]["tool_calls"][0]["function"];
        assert_eq!(
            (&function["name"], &function["arguments"]),
            (&json!("add"), &json!({"a": 2, "b": 3}))
        );
    }
    let body = json!({"model": "pebble", "prompt": "2 + 3?"});
    let whole = joined(&lines(&post(harness.address, GENERATE, &body).await));
    assert_eq!(
        (&whole["response"], &whole["thinking"]),
        (&json!("Hello there."), &json!("I think."))
    );
    assert_eq!(harness.server.clients()[0].completion_tokens, 25);
    assert!(get(harness.address, "/metrics").await.body.contains("/api/chat"));
    answering.abort();
}

#[tokio::test]
async fn every_field_reaches_the_engine() {
    let harness = Harness::open().await;
    let body = question(json!({"think": "high", "keep_alive": "10m", "stream": false,
        "options": {"temperature": 0.5, "seed": 7, "num_predict": 9, "num_ctx": 1024, "repeat_last_n": 32},
        "format": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}}));
    let (_, request) = asked(&harness, CHAT, &body).await;
    assert_eq!((request.thinking, request.max_tokens), (Some(Thinking::High), Some(9)));
    assert_eq!(
        (request.sampling.temperature, request.sampling.seed),
        (Some(0.5), Some(7))
    );
    assert_eq!((request.sampling.penalty_context, request.context), (Some(32), None));
    assert_eq!(
        (request.keep_alive, request.schema),
        (Some(Duration::from_secs(600)), Some(body["format"].clone()))
    );
    let (_, request) = asked(&harness, CHAT, &question(json!({"think": false, "stream": false}))).await;
    assert_eq!((request.thinking, request.schema), (Some(Thinking::Off), None));
    let (_, request) = asked(
        &harness,
        GENERATE,
        &json!({"model": "pebble:latest", "prompt": "a", "system": "b"}),
    )
    .await;
    let said: Vec<(Role, String)> = request
        .messages
        .iter()
        .map(|message| (message.role, message.text_with_placeholders()))
        .collect();
    assert_eq!(said, [(Role::System, "b".into()), (Role::User, "a".into())]);
}

#[tokio::test]
async fn images_are_base64_beside_the_text() {
    let harness = Harness::open().await;
    let png = include_str!("../../src/describe/examples.json")
        .split_once("\"images\": [\"")
        .unwrap()
        .1;
    let png = png.split('"').next().unwrap();
    let message = json!([{"role": "user", "content": "Which colour is it?", "images": [png]}]);
    let (_, request) = asked(&harness, CHAT, &question(json!({ "messages": message }))).await;
    assert_eq!((request.images.len(), request.messages[0].content.len()), (1, 2));
    let (_, request) = asked(
        &harness,
        GENERATE,
        &json!({"model": "pebble", "prompt": "colour?", "images": [png]}),
    )
    .await;
    assert_eq!(request.shown_images().count(), 1);
    harness.engine.make_blind("pebble");
    let refused = post(harness.address, CHAT, &question(json!({ "messages": message }))).await;
    let told = refused.json()["error"].as_str().unwrap().to_owned();
    assert_eq!(refused.head.status, 400);
    assert!(
        told.starts_with("messages[0].images[0]") && told.contains("org/model"),
        "{told}"
    );
}

#[tokio::test]
async fn errors_are_a_text_before_a_stream_and_a_line_within_it() {
    let harness = Harness::open().await;
    for (path, body, status) in [
        (CHAT, question(json!({"model": "llama3"})), 404),
        (CHAT, json!({"messages": []}), 400),
        (CHAT, question(json!({"model": "org/embedder"})), 400),
        (CHAT, question(json!({"options": {"temperature": -1}})), 400),
        (
            CHAT,
            question(json!({"messages": [{"role": "user", "content": "a ".repeat(9000)}]})),
            400,
        ),
        (GENERATE, json!({"model": "pebble", "prompt": "a", "context": [1]}), 400),
        ("/api/embed", json!({"model": "pebble", "input": "a"}), 400),
        ("/api/show", json!({"model": "llama3"}), 404),
    ] {
        let refused = post(harness.address, path, &body).await;
        assert_eq!(refused.head.status, status, "{path} {}", refused.body);
        let error = refused.json();
        assert!(
            error["error"].is_string() && error.as_object().unwrap().len() == 1,
            "{error}"
        );
    }
    let body = question(json!({}));
    let (response, _) = tokio::join!(post(harness.address, CHAT, &body), async {
        let job = harness.job().await;
        job.events.send(delta(Content::text("5")));
        tokio::time::sleep(Duration::from_millis(300)).await;
        job.events
            .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "the device is gone")));
    });
    assert_eq!(response.head.status, 200);
    assert_eq!(
        lines(&response).last().unwrap(),
        &json!({"error": "the device is gone"})
    );
}

#[tokio::test]
async fn a_client_that_waits_gets_empty_pieces_and_one_that_leaves_ends_the_answer() {
    let limits = short_limits();
    let harness = Harness::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    })
    .await;
    let mut connection = Connection::open(harness.address).await;
    let json = [("content-type", "application/json")];
    let body = question(json!({})).to_string();
    connection
        .send(&request("POST", harness.address, CHAT, &json, body.as_bytes()))
        .await
        .unwrap();
    let job = harness.job().await;
    assert_eq!(connection.head().await.unwrap().status, 200);
    for _ in 0..3 {
        let piece: Value = serde_json::from_str(&connection.chunk().await.unwrap()).unwrap();
        assert_eq!(
            (&piece["message"]["content"], &piece["done"]),
            (&json!(""), &json!(false))
        );
    }
    drop(connection);
    job.cancel.cancelled().await;
}

#[tokio::test]
async fn a_call_has_an_id_that_finds_its_result() {
    let harness = Harness::open().await;
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]);
    let body = question(json!({"tools": tools, "stream": false}));
    let (response, ()) = tokio::join!(post(harness.address, CHAT, &body), async {
        let job = harness.job().await;
        job.events.send(delta(call("add")));
        job.events.send(done(FinishReason::ToolCalls));
    });
    let call = response.json()["message"]["tool_calls"][0].clone();
    assert!(call["id"].as_str().unwrap().starts_with("call_"), "{call}");
}

#[tokio::test]
async fn a_request_without_a_question_loads_its_model_or_frees_it() {
    let harness = Harness::open().await;
    let loaded = || harness.engine.local().unwrap().loaded().len();
    harness.engine.set_idle(Some(Duration::ZERO));
    for (path, body, reason, count) in [
        (GENERATE, json!({"model": "pebble"}), "load", 1),
        (
            GENERATE,
            json!({"model": "pebble", "prompt": "", "keep_alive": 0}),
            "unload",
            0,
        ),
        (CHAT, json!({"model": "pebble", "messages": []}), "load", 1),
        (
            CHAT,
            json!({"model": "pebble", "messages": [], "keep_alive": "0s"}),
            "unload",
            0,
        ),
    ] {
        let response = post(harness.address, path, &body).await;
        let told = response.json();
        assert_eq!(
            (&told["done"], &told["done_reason"], loaded()),
            (&json!(true), &json!(reason), count),
            "{told}"
        );
    }
}

#[tokio::test]
async fn vectors_come_in_both_forms() {
    let harness = Harness::open().await;
    for (input, vectors, tokens) in [
        (json!(["abc", "de"]), json!([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0]]), 5),
        (json!("abc"), json!([[3.0, 1.0, 0.0]]), 3),
        (json!([]), json!([]), 0),
    ] {
        let body = json!({"model": "org/embedder", "input": input, "truncate": true, "options": {"num_ctx": null}});
        let told = post(harness.address, "/api/embed", &body).await.json();
        assert_eq!(
            (&told["embeddings"], &told["prompt_eval_count"]),
            (&vectors, &json!(tokens))
        );
    }
    let one = post(
        harness.address,
        "/api/embeddings",
        &json!({"model": "org/embedder", "prompt": "abc"}),
    )
    .await;
    assert_eq!(one.json(), json!({"embedding": [3.0, 1.0, 0.0]}));
}

#[tokio::test]
async fn models_are_listed_as_each_client_expects() {
    let harness = Harness::open().await;
    let (tags, ps) = (
        get(harness.address, "/api/tags").await.json(),
        get(harness.address, "/api/ps").await.json(),
    );
    let names: Vec<&Value> = tags["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["model"])
        .collect();
    assert_eq!(names, ["pebble", "org/model", "org/embedder"]);
    assert_eq!(ps, json!({"models": []}));
    let folder = FolderSource {
        reference: "pebble".into(),
        path: "/models".into(),
        revision: None,
        adapter: None,
    };
    drop(harness.engine.local().unwrap().load(folder));
    let ps = get(harness.address, "/api/ps").await.json();
    assert_eq!(
        (&ps["models"][0]["name"], &ps["models"][0]["context_length"]),
        (&json!("pebble"), &json!(4096))
    );
    for body in [json!({"model": "pebble"}), json!({"name": "pebble:latest"})] {
        let shown = post(harness.address, "/api/show", &body).await.json();
        assert_eq!(shown["capabilities"], json!(["completion", "tools"]));
        assert!(shown["model_info"].is_object());
    }
    let version = get(harness.address, "/api/version").await.json();
    assert_eq!(version, json!({"version": env!("CARGO_PKG_VERSION")}));
    let studio = get(harness.address, "/api/v0/models").await.json();
    let kinds: Vec<&Value> = studio["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["type"])
        .collect();
    assert_eq!(kinds, ["llm", "vlm", "embeddings"]);
    assert_eq!(
        (&studio["data"][0]["state"], &studio["data"][1]["state"]),
        (&json!("loaded"), &json!("not-loaded"))
    );
    let one = get(harness.address, "/api/v0/models/org/model").await.json();
    assert_eq!(one, studio["data"][1]);
}

#[tokio::test]
async fn what_manages_models_is_told_where_that_is_done() {
    let harness = Harness::open().await;
    let json = [("content-type", "application/json")];
    for (method, path) in [
        ("POST", "/api/pull"),
        ("DELETE", "/api/delete"),
        ("POST", "/api/create"),
        ("HEAD", "/api/blobs/sha256:29"),
    ] {
        let response = ask(method, harness.address, path, &json, b"{\"model\": \"pebble\"}").await;
        assert_eq!(response.head.status, 501, "{path}");
        if method != "HEAD" {
            let told = response.json()["error"].as_str().unwrap().to_owned();
            assert!(told.contains("Models window"), "{told}");
        }
    }
    assert_eq!(get(harness.address, "/api/other").await.head.status, 404);
}
