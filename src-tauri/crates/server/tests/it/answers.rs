//! Answers on every surface, whole and streamed.

use std::time::Duration;

use protocol::{Content, EngineEvent, Error, ErrorCode, FinishReason, Role, Thinking};
use serde_json::{json, Value};
use server::ServerConfig;

use crate::client::{ask, get, post};
use crate::clients_seen::{accumulated, told, ClientSeen, CHAT, MESSAGES, RESPONSES};
use crate::harness::{call, delta, done, Harness};

/// A question on a surface.
fn question(surface: &str, stream: bool) -> Value {
    let mut body = match surface {
        RESPONSES => json!({"input": "hi"}),
        _ => json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}),
    };
    body["model"] = "pebble".into();
    body["stream"] = stream.into();
    if surface == MESSAGES {
        body["thinking"] = json!({"type": "adaptive"});
    }
    body
}

async fn reply(harness: &Harness, surface: &str, body: &Value) -> ClientSeen {
    let response = post(harness.address, surface, body).await;
    assert_eq!(response.head.status, 200, "{}", response.body);
    if body["stream"] == true {
        told(surface, &accumulated(surface, &response.events()))
    } else {
        told(surface, &response.json())
    }
}

#[tokio::test]
async fn every_surface_says_the_same_whole_and_streamed() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    for (surface, end, called) in [
        (CHAT, "stop", "tool_calls"),
        (RESPONSES, "completed", "completed"),
        (MESSAGES, "end_turn", "tool_use"),
    ] {
        for stream in [false, true] {
            let body = question(surface, stream);
            let answer = reply(&harness, surface, &body).await;
            let expected = ClientSeen {
                thought: "I think.".into(),
                text: "Hello there.".into(),
                calls: Vec::new(),
                end: end.into(),
                usage: (20, 8, 5),
            };
            assert_eq!(answer, expected, "{surface} {stream}");

            let mut with_tool = body.clone();
            with_tool["tools"] = match surface {
                CHAT => json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]),
                RESPONSES => json!([{"type": "function", "name": "add", "parameters": {"type": "object"}}]),
                _ => json!([{"name": "add", "input_schema": {"type": "object"}}]),
            };
            let answer = reply(&harness, surface, &with_tool).await;
            let (id, name, arguments) = &answer.calls[0];
            assert_eq!((name.as_str(), arguments), ("add", &json!({"a": 2, "b": 3})));
            assert!(id.starts_with(if surface == MESSAGES { "toolu_" } else { "call_" }));
            assert_eq!((answer.end.as_str(), answer.text.as_str()), (called, ""));
        }
    }
    answering.abort();
}

#[tokio::test]
async fn a_thought_that_was_switched_off_is_in_no_text_and_in_no_field() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    for surface in [CHAT, RESPONSES, MESSAGES] {
        for stream in [false, true] {
            let mut body = question(surface, stream);
            match surface {
                CHAT => body["reasoning_effort"] = "none".into(),
                RESPONSES => body["reasoning"] = json!({"effort": "none", "summary": "auto"}),
                _ => body["thinking"] = json!({"type": "disabled"}),
            }
            let response = post(harness.address, surface, &body).await;
            assert!(
                !response.body.contains("I think"),
                "{surface} {stream}: {}",
                response.body
            );
            assert!(response.body.contains("there."));
        }
    }
    answering.abort();
}

#[tokio::test]
async fn a_tool_turn_reaches_the_engine_with_its_own_ids_and_in_order() {
    let harness = Harness::open().await;
    let body = json!({"model": "pebble", "max_tokens": 9, "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_aaaaaaaaa", "name": "f", "input": {}},
            {"type": "tool_use", "id": "toolu_bbbbbbbbb", "name": "g", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_bbbbbbbbb", "content": "two"},
            {"type": "tool_result", "tool_use_id": "toolu_aaaaaaaaa", "content": "one"}]}]});
    let (response, job) = tokio::join!(post(harness.address, MESSAGES, &body), async {
        let job = harness.job().await;
        job.events.send(done(FinishReason::Stop));
        job
    });
    assert_eq!(response.head.status, 200);
    let messages = &job.request.messages;
    let said: Vec<_> = messages[2..]
        .iter()
        .map(|message| message.text_with_placeholders())
        .collect();
    assert_eq!(said, ["one", "two"]);
    assert_eq!(
        (messages[2].tool_call_id.as_deref(), messages[2].name.as_deref()),
        (Some("aaaaaaaaa"), Some("f"))
    );
    assert_eq!(job.request.thinking, Some(Thinking::Off));
}

#[tokio::test]
async fn one_of_several_calls_is_told_if_the_client_wants_one() {
    let harness = Harness::open().await;
    let mut body = question(CHAT, true);
    body["tools"] = json!([{"type": "function", "function": {"name": "add"}}]);
    body["parallel_tool_calls"] = false.into();
    let (response, ()) = tokio::join!(post(harness.address, CHAT, &body), async {
        let job = harness.job().await;
        job.events.send(delta(call("add")));
        job.events.send(delta(call("add")));
        job.cancel.cancelled().await;
        job.events.send(done(FinishReason::Cancelled));
    });
    let answer = told(CHAT, &accumulated(CHAT, &response.events()));
    assert_eq!((answer.calls.len(), answer.end.as_str()), (1, "tool_calls"));
}

#[tokio::test]
async fn several_answers_are_several_jobs_with_seeds_of_their_own() {
    let harness = Harness::open().await;
    for stream in [false, true] {
        let mut body = question(CHAT, stream);
        (body["n"], body["seed"]) = (3.into(), 7.into());
        let (response, seeds) = tokio::join!(post(harness.address, CHAT, &body), async {
            let jobs = [harness.job().await, harness.job().await, harness.job().await];
            for (number, job) in jobs.iter().enumerate().rev() {
                job.events.send(delta(Content::text(format!("answer {number}"))));
                job.events.send(done(FinishReason::Stop));
            }
            jobs.map(|job| job.request.sampling.seed)
        });
        assert_eq!(seeds, [Some(7), Some(8), Some(9)]);
        let usage = if stream {
            let events = response.events();
            let said = |index: usize| {
                let of = events.iter().filter(|chunk| chunk["choices"][0]["index"] == index);
                of.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
                    .collect::<String>()
            };
            assert_eq!([said(0), said(1), said(2)], ["answer 0", "answer 1", "answer 2"]);
            events.last().unwrap()["usage"].clone()
        } else {
            let whole = response.json();
            assert_eq!(whole["choices"][2]["message"]["content"], "answer 2");
            whole["usage"].clone()
        };
        assert_eq!(
            (
                &usage["prompt_tokens"],
                &usage["completion_tokens"],
                &usage["total_tokens"]
            ),
            (&json!(20), &json!(15), &json!(35))
        );
    }
}

#[tokio::test]
async fn ids_are_never_used_twice() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let mut ids = std::collections::HashSet::new();
    for _ in 0..20 {
        for surface in [CHAT, RESPONSES, MESSAGES] {
            let whole = post(harness.address, surface, &question(surface, false)).await.json();
            assert!(ids.insert(whole["id"].as_str().unwrap().to_owned()));
            for item in whole["output"].as_array().into_iter().flatten() {
                assert!(ids.insert(item["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    answering.abort();
}

#[tokio::test]
async fn a_response_is_gone_on_from_and_can_be_read_and_removed() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let first = post(harness.address, RESPONSES, &question(RESPONSES, true))
        .await
        .events();
    let first = first.last().unwrap()["response"].clone();
    let id = first["id"].as_str().unwrap().to_owned();
    assert_eq!(get(harness.address, &format!("{RESPONSES}/{id}")).await.json(), first);
    answering.abort();

    let body = json!({"model": "pebble", "input": "and now?", "previous_response_id": id, "instructions": "be short"});
    let (second, job) = tokio::join!(post(harness.address, RESPONSES, &body), async {
        let job = harness.job().await;
        job.events.send(done(FinishReason::Stop));
        job
    });
    assert_eq!(second.json()["previous_response_id"], id.as_str());
    let roles: Vec<Role> = job.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(job.request.messages[2].reasoning.as_deref(), Some("I think."));

    let removed = ask("DELETE", harness.address, &format!("{RESPONSES}/{id}"), &[], b"").await;
    assert_eq!(removed.json()["deleted"], true);
    for path in [format!("{RESPONSES}/{id}"), format!("{RESPONSES}/resp_other")] {
        assert_eq!(get(harness.address, &path).await.head.status, 404);
    }
    let gone = post(harness.address, RESPONSES, &body).await;
    assert_eq!(
        (gone.head.status, gone.json()["error"]["param"].as_str()),
        (404, Some("previous_response_id"))
    );
}

#[tokio::test]
async fn what_the_engine_refuses_has_a_status_of_its_own_streamed_or_not() {
    let harness = Harness::open().await;
    let full = || {
        Error::new(ErrorCode::ContextFull, "too long")
            .with("prompt", 9000u32)
            .with("context", 4096u32)
    };
    let busy = || Error::new(ErrorCode::Busy, "too many").with("retry_after", 3u32);
    let broken = || Error::new(ErrorCode::ModelBroken, "broken");
    for surface in [CHAT, RESPONSES, MESSAGES] {
        for stream in [false, true] {
            for (error, status) in [
                (full(), 400),
                (busy(), 429),
                (broken(), 500),
                (Error::new(ErrorCode::EngineGone, "gone"), 503),
            ] {
                let status = if surface == MESSAGES && status == 503 {
                    529
                } else {
                    status
                };
                let code = error.code;
                let body = question(surface, stream);
                let (response, ()) = tokio::join!(post(harness.address, surface, &body), async {
                    let job = harness.job().await;
                    job.events.send(EngineEvent::Failed(error));
                });
                assert_eq!(response.head.status, status, "{surface} {stream}");
                let error = &response.json()["error"];
                match code {
                    ErrorCode::Busy => assert_eq!(response.head.header("retry-after"), Some("3")),
                    ErrorCode::ModelBroken => assert_eq!(response.head.header("x-should-retry"), Some("false")),
                    ErrorCode::ContextFull if surface == MESSAGES => {
                        assert_eq!(error["message"], "prompt is too long: 9000 tokens > 4096 maximum");
                    }
                    ErrorCode::ContextFull => assert_eq!(error["code"], "context_length_exceeded"),
                    _ => {}
                }
                let id = response.head.header("x-request-id").unwrap();
                assert!(id.starts_with("req_") && response.head.header("request-id") == Some(id));
            }
        }
    }
}

#[tokio::test]
async fn a_failure_in_the_middle_is_an_event_and_the_body_ends() {
    let harness = Harness::open().await;
    for surface in [CHAT, RESPONSES, MESSAGES] {
        let body = question(surface, true);
        let (response, ()) = tokio::join!(post(harness.address, surface, &body), async {
            let job = harness.job().await;
            job.events.send(delta(Content::text("Hel")));
            tokio::time::sleep(Duration::from_millis(30)).await;
            job.events
                .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "it broke")));
        });
        assert_eq!(response.head.status, 200);
        let last = response.events().pop().unwrap();
        let message = match surface {
            RESPONSES => &last["response"]["error"]["message"],
            _ => &last["error"]["message"],
        };
        assert_eq!(message, "it broke");
        assert!(!response.body.contains("[DONE]"));
    }
}

#[tokio::test]
async fn a_template_that_wants_roles_to_alternate_gets_its_way() {
    let harness = Harness::open().await;
    let body =
        json!({"model": "pebble", "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]});
    let (response, lengths) = tokio::join!(post(harness.address, CHAT, &body), async {
        let first = harness.job().await;
        let refused = Error::new(ErrorCode::TemplateRefused, "roles must alternate");
        first.events.send(EngineEvent::Failed(refused));
        let second = harness.job().await;
        second.events.send(done(FinishReason::Stop));
        (first.request.messages.len(), second.request.messages.len())
    });
    assert_eq!((response.head.status, lengths), (200, (2, 1)));
}

#[tokio::test]
async fn models_and_counts_are_told_in_both_dialects() {
    let harness = Harness::open().await;
    for path in ["/v1/models", "/models"] {
        let list = get(harness.address, path).await.json();
        assert_eq!(
            (&list["object"], &list["data"][1]["id"]),
            (&json!("list"), &json!("org/model"))
        );
    }
    let anthropic = [("anthropic-version", "2023-06-01")];
    let list = ask("GET", harness.address, "/v1/models?limit=1000", &anthropic, b"")
        .await
        .json();
    assert_eq!(
        (&list["has_more"], &list["data"][0]["type"]),
        (&json!(false), &json!("model"))
    );
    assert_eq!(
        get(harness.address, "/v1/models/org/model").await.json()["id"],
        "org/model"
    );
    let unknown = get(harness.address, "/v1/models/org/other").await;
    assert_eq!(
        (unknown.head.status, &unknown.json()["error"]["code"]),
        (404, &json!("model_not_found"))
    );

    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": "12345"}]});
    let counted = post(harness.address, "/v1/messages/count_tokens?beta=true", &body).await;
    assert_eq!(counted.json(), json!({"input_tokens": 5}));
    assert!(harness.engine.take_job().is_none());
}

#[tokio::test]
async fn unknown_models_paths_and_methods_are_told_in_the_clients_dialect() {
    let harness = Harness::open().await;
    let mut body = question(CHAT, false);
    body["model"] = "gpt-5".into();
    let unknown = post(harness.address, CHAT, &body).await;
    let error = &unknown.json()["error"];
    assert_eq!(
        (unknown.head.status, &error["code"], &error["param"]),
        (404, &json!("model_not_found"), &json!("model"))
    );
    assert!(error["message"].as_str().unwrap().contains("pebble, org/model"));
    let unknown = post(harness.address, MESSAGES, &body).await;
    assert_eq!(
        (unknown.head.status, &unknown.json()["error"]["type"]),
        (404, &json!("not_found_error"))
    );
    let path = get(harness.address, "/v1/other").await;
    assert_eq!(
        (path.head.status, &path.json()["error"]["type"]),
        (404, &json!("invalid_request_error"))
    );
    let method = get(harness.address, MESSAGES).await;
    assert_eq!((method.head.status, &method.json()["type"]), (405, &json!("error")));

    let any = ServerConfig {
        fallback_model: Some("pebble".into()),
        ..ServerConfig::default()
    };
    let harness = Harness::with(any).await;
    let answering = harness.answer_all();
    let answered = post(harness.address, CHAT, &body).await;
    assert_eq!(answered.json()["model"], "pebble");
    answering.abort();
}

#[tokio::test]
async fn people_and_monitors_find_what_they_look_for() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let head = ask("HEAD", harness.address, "/", &[("user-agent", "Bun/1.4.0")], b"").await;
    assert_eq!(head.head.status, 200);
    let page = get(harness.address, "/").await;
    assert!(page.body.contains(&format!("http://{}/v1", harness.address)) && page.body.contains("Ponder"));
    assert!(page.head.header("content-security-policy").is_some());
    assert_eq!(get(harness.address, "/health").await.json(), json!({"status": "ok"}));

    let headers = [
        ("content-type", "application/json"),
        ("user-agent", "claude-cli/2.1.197 (external)"),
    ];
    let body = question(MESSAGES, true).to_string();
    ask("POST", harness.address, MESSAGES, &headers, body.as_bytes()).await;
    let clients = harness.server.clients();
    assert_eq!(
        (clients.len(), clients[0].name.as_str(), clients[0].requests),
        (1, "Claude Code", 1)
    );
    assert_eq!((clients[0].prompt_tokens, clients[0].completion_tokens), (20, 5));
    let metrics = get(harness.address, "/metrics").await.body;
    for line in [
        "ponder_requests_total{route=\"/messages\",status=\"200\"} 1",
        "ponder_tokens_total{kind=\"cached\"} 8",
        "ponder_tokens_total{kind=\"reasoning\"} 2",
        "ponder_requests_in_flight 0",
        "ponder_first_token_seconds_count 1",
    ] {
        assert!(
            metrics.lines().any(|other| other == line),
            "{line} is not in\n{metrics}"
        );
    }
    assert_eq!(harness.server.figures().in_flight, 0);
    answering.abort();
}
