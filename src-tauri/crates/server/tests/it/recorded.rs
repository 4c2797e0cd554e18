//! Recorded requests of fifteen clients, trimmed and with other text, sent again.

use std::path::Path;

use protocol::{FinishReason, Message, Role, Thinking};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::client::{ask, Response};
use crate::clients_seen::{accumulated, told, CHAT, MESSAGES, RESPONSES};
use crate::harness::{done, Harness};
use crate::ollama::{joined, lines, CHAT as OLLAMA_CHAT, GENERATE};

#[derive(Deserialize)]
struct Recorded {
    client: String,
    requests: Vec<Sent>,
}

#[derive(Deserialize)]
struct Sent {
    method: String,
    path: String,
    headers: std::collections::BTreeMap<String, String>,
    body: Value,
}

/// The path and the body of every recorded request that has one.
pub fn every_recorded_request() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = std::fs::read_dir(folder).unwrap();
    let all = files.flat_map(|file| recorded(file.unwrap().file_name().to_str().unwrap()).requests);
    all.filter(|sent| sent.body.is_object())
        .map(|sent| (sent.path, sent.body))
        .collect()
}

impl Sent {
    /// The path without its question.
    fn surface(&self) -> &str {
        self.path.split('?').next().unwrap()
    }

    async fn send(&self, harness: &Harness) -> Response {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut body = self.body.clone();
        if self.surface() == "/v1/embeddings" {
            // The clients were recorded with one model for everything.
            body["model"] = "org/embedder".into();
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        ask(&self.method, harness.address, &self.path, &headers, body.as_bytes()).await
    }

    /// Sends it, and what the engine was asked.
    async fn asked(&self, harness: &Harness) -> protocol::Request {
        let (response, job) = tokio::join!(self.send(harness), async {
            let job = harness.job().await;
            job.events.send(done(FinishReason::Stop));
            job
        });
        assert_eq!(response.head.status, 200, "{}", response.body);
        job.request
    }
}

fn recorded(name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn roles(messages: &[Message]) -> String {
    let letter = |message: &Message| match message.role {
        Role::System => 's',
        Role::User => 'u',
        Role::Assistant => 'a',
        Role::Tool => 't',
    };
    messages.iter().map(letter).collect()
}

#[tokio::test]
async fn every_recorded_request_gets_a_well_formed_reply() {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let (mut answered, mut others) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let recorded = recorded(file.unwrap().file_name().to_str().unwrap());
        for sent in &recorded.requests {
            let what = format!("{} {}", recorded.client, sent.path);
            let response = sent.send(&harness).await;
            assert_eq!(response.head.status, 200, "{what}: {}", response.body);
            if [OLLAMA_CHAT, GENERATE].contains(&sent.surface()) {
                lines_are_right(sent, &response);
                answered += 1;
                continue;
            }
            if ![CHAT, RESPONSES, MESSAGES].contains(&sent.surface()) {
                others += 1;
                continue;
            }
            answered += 1;
            let streams = sent.body["stream"] == true;
            let kind = response.head.header("content-type").unwrap();
            assert_eq!(kind.starts_with("text/event-stream"), streams, "{what}");
            let whole = if streams {
                let events = response.events();
                let (first, last) = (&events[0], events.last().unwrap());
                match sent.surface() {
                    CHAT => {
                        assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
                        assert!(response.body.ends_with("data: [DONE]\n\n"));
                        let wanted = sent.body["stream_options"]["include_usage"] == true;
                        assert_eq!(last["choices"].as_array().unwrap().is_empty(), wanted);
                    }
                    RESPONSES => assert_eq!(
                        (&first["type"], &last["type"]),
                        (&json!("response.created"), &json!("response.completed"))
                    ),
                    _ => assert_eq!(
                        (&first["type"], &last["type"]),
                        (&json!("message_start"), &json!("message_stop"))
                    ),
                }
                accumulated(sent.surface(), &events)
            } else {
                response.json()
            };
            let told = told(sent.surface(), &whole);
            assert_eq!(told.usage, (20, 8, 5), "{what}");
            assert!(
                !told.text.contains("think") && (!told.text.is_empty() || !told.calls.is_empty()),
                "{what}"
            );
        }
    }
    assert_eq!((answered, others), (57, 22));
    answering.abort();
}

/// Checks an answer to a client of Ollama, as its clients put it together.
fn lines_are_right(sent: &Sent, response: &Response) {
    let kind = response.head.header("content-type").unwrap();
    let streams = sent.body["stream"] == true;
    assert_eq!(kind == "application/x-ndjson", streams, "{}", response.body);
    let whole = joined(&lines(response));
    assert_eq!(whole["done"], true);
    if whole["done_reason"] == "unload" {
        return;
    }
    let said = whole.get("message").unwrap_or(&whole);
    let text = said["content"].as_str().or(said["response"].as_str()).unwrap();
    assert!(
        !text.contains("think") && (!text.is_empty() || said["tool_calls"].is_array()),
        "{whole}"
    );
    assert_eq!(
        (&whole["prompt_eval_count"], &whole["eval_count"]),
        (&json!(20), &json!(5))
    );
}

#[tokio::test]
async fn claude_codes_tool_turn_is_understood() {
    let harness = Harness::open().await;
    let recorded = recorded("claude-code-full.json");
    let first = recorded.requests[0].asked(&harness).await;
    // The hash line is gone and the late instructions stand in the question.
    assert_eq!(roles(&first.messages), "su");
    assert!(!first.messages[0].text_with_placeholders().contains("billing"));
    assert!(first.messages[1]
        .text_with_placeholders()
        .starts_with("<system-reminder>"));
    assert_eq!((first.thinking, first.tools.len()), (Some(Thinking::High), 2));
    assert!(!first.tools[0].to_string().contains("$schema"));
    let second = recorded.requests[1].asked(&harness).await;
    assert_eq!(roles(&second.messages), "suatt");
    // The beginning is the same, so that it need not be read again.
    assert_eq!(first.messages, second.messages[..2]);
    let ids: Vec<_> = second.messages[3..]
        .iter()
        .map(|result| result.tool_call_id.clone().unwrap())
        .collect();
    let calls: Vec<_> = second.messages[2]
        .tool_calls
        .iter()
        .map(|call| call.id.clone())
        .collect();
    assert_eq!(ids, calls);
    assert_eq!(second.messages[2].reasoning.as_deref(), Some("I think."));
}

#[tokio::test]
async fn the_others_turns_are_understood() {
    let harness = Harness::open().await;
    for (file, index, expected) in [
        ("codex.json", 0, "suu"),
        ("codex.json", 1, "suuatt"),
        ("opencode.json", 0, "suu"),
        ("opencode.json", 2, "suatt"),
        ("pydantic-ai.json", 1, "suat"),
        ("pydantic-ai.json", 3, "suat"),
        ("pydantic-ai.json", 5, "suat"),
        ("pydantic-ai.json", 7, "uatu"),
        ("pydantic-ai.json", 8, "uatau"),
        ("ai-sdk-chat.json", 1, "suat"),
        // The thought that it refers to is not kept by anybody.
        ("ai-sdk-responses.json", 1, "suat"),
        ("aider.json", 0, "suauauauau"),
        ("ollama-python.json", 3, "uat"),
        ("langchain-ollama.json", 2, "uat"),
        ("ollama-js.json", 3, "uat"),
        ("ai-sdk-ollama.json", 3, "uat"),
    ] {
        let recorded = recorded(file);
        let asked = recorded.requests[index].asked(&harness).await;
        assert_eq!(roles(&asked.messages), expected, "{file} {index}");
        let results = asked.messages.iter().filter(|message| message.role == Role::Tool);
        assert!(
            results.into_iter().all(|result| result.name.is_some()),
            "{file} {index}"
        );
        assert!(asked.tools.iter().all(|tool| tool["type"] == "function"));
    }
}
