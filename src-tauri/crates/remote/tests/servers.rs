//! Pebble behind mlx-lm's own server and behind vllm-mlx, asked as any endpoint.
#![allow(clippy::unwrap_used)]

mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::{AnswerBody, AnswerState, ChatSettings, ModelShelf};
use chat::Chat;
use net::{Net, Settings};
use protocol::fake::FakeEngine;
use protocol::{
    Content, Done, EndedBy, Engine, EngineEvent, EngineRouter, Error, ErrorCode, FinishReason, JobHandle, Message,
    ModelSource, NoticeCode, Request, Role, Sampling, Thinking, ThinkingControl, ToolCall,
};
use remote::{EndpointShelf, RemoteEngine};
use serde_json::json;
use server::Server;

/// Everything that a job said.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    thinking: String,
    deltas: usize,
    calls: Vec<ToolCall>,
    notices: Vec<NoticeCode>,
    started: bool,
    end: Option<Result<Done, Error>>,
}

impl Heard {
    fn done(&self) -> &Done {
        match &self.end {
            Some(Ok(done)) => done,
            other => panic!("a good end was expected: {other:?}"),
        }
    }

    fn error(&self) -> ErrorCode {
        match &self.end {
            Some(Err(error)) => error.code,
            other => panic!("an error was expected: {other:?}"),
        }
    }
}

async fn hear(mut job: JobHandle) -> Heard {
    let mut heard = Heard::default();
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Started { .. } => heard.started = true,
            EngineEvent::Delta { content, .. } => match content {
                Content::Text { text } => {
                    heard.deltas += 1;
                    heard.text.push_str(&text);
                }
                Content::Thinking { text } => {
                    heard.deltas += 1;
                    heard.thinking.push_str(&text);
                }
                Content::ToolCall { call } => heard.calls.push(call),
                other => panic!("{other:?}"),
            },
            EngineEvent::Notice(notice) => heard.notices.push(notice.code),
            EngineEvent::Done(done) => heard.end = Some(Ok(done)),
            EngineEvent::Failed(error) => heard.end = Some(Err(error)),
            other => panic!("{other:?}"),
        }
    }
    heard
}

fn net() -> Net {
    Net::open(Settings::of_a_test("http://127.0.0.1:9"))
}

/// An engine whose endpoint `lab` is at this address.
fn engine(net: &Net, url: &str) -> RemoteEngine {
    let endpoint = remote::endpoint("lab", url).unwrap();
    RemoteEngine::new(net.clone(), tokio::runtime::Handle::current(), vec![endpoint])
}

fn pebble() -> ModelSource {
    ModelSource::Remote {
        endpoint: "lab".into(),
        name: server::pebble().display().to_string(),
    }
}

fn question(text: &str, thinking: Thinking) -> Request {
    Request {
        thinking: Some(thinking),
        sampling: Sampling::greedy(),
        ..Request::new(pebble(), vec![Message::text(Role::User, text)])
    }
}

const SUM: &str = "What is 347 + 589?";

/// The requests that every server of Pebble gets, from its list of models to its death.
async fn ask_everything(net: &Net, engine: &RemoteEngine, server: &mut Server) {
    let listed = engine.models_of("lab").await.unwrap();
    assert_eq!((&listed.problem, listed.leaves_computer), (&None, false));
    let model = listed.models.iter().find(|model| model.name == server.model()).unwrap();
    assert_eq!(ModelSource::remote(&model.reference), Some(pebble()));

    let plain = hear(engine.generate(question(SUM, Thinking::Off))).await;
    assert!(plain.text.contains("936") && plain.thinking.is_empty(), "{plain:?}");
    assert!(plain.started && plain.deltas > 3, "it came piece by piece: {plain:?}");
    let usage = plain.done().usage.unwrap();
    assert!(usage.prompt_tokens > 10 && usage.completion_tokens > 3, "{usage:?}");
    assert_eq!(plain.done().finish_reason, FinishReason::Stop);
    assert!(plain.done().timing.first_token_ms > 0.0);

    let thought = hear(engine.generate(question(SUM, Thinking::On))).await;
    assert!(
        !thought.thinking.trim().is_empty() && thought.text.contains("936"),
        "{thought:?}"
    );
    assert!(
        !format!("{}{}", thought.thinking, thought.text).contains("channel"),
        "{thought:?}"
    );

    let stopped = hear(engine.generate(Request {
        stop: vec!["36".into()],
        ..question(SUM, Thinking::Off)
    }))
    .await;
    assert!(
        stopped.text.contains('9') && !stopped.text.contains("36"),
        "{stopped:?}"
    );
    assert_eq!(stopped.done().finish_reason, FinishReason::Stop);

    let mut asked = question("Count to fifty.", Thinking::Off);
    asked.max_tokens = Some(3);
    let cut = hear_when_free(engine, &asked).await;
    assert_eq!(
        (cut.done().finish_reason, &cut.done().ended_by),
        (FinishReason::Length, &EndedBy::TokenLimit)
    );

    let tool = json!({"type": "function", "function": {"name": "get_weather", "description": "Get the current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}}});
    let mut asked = question("What is the weather in Oslo?", Thinking::Off);
    asked.tools = vec![tool];
    let called = hear(engine.generate(asked.clone())).await;
    assert_eq!(called.done().finish_reason, FinishReason::ToolCalls, "{called:?}");
    assert_eq!(
        (called.calls[0].name.as_str(), &called.calls[0].arguments),
        ("get_weather", &json!({"city": "Oslo"}))
    );
    let mut result = Message::text(Role::Tool, "{\"temperature\": 7}");
    (result.name, result.tool_call_id) = (Some("get_weather".into()), Some(called.calls[0].id.clone()));
    asked.messages.push(Message {
        tool_calls: called.calls,
        ..Message::text(Role::Assistant, "")
    });
    asked.messages.push(result);
    let told = hear(engine.generate(asked)).await;
    assert!(told.text.contains('7'), "{told:?}");

    let mut asked = question(SUM, Thinking::Off);
    asked.model = ModelSource::Remote {
        endpoint: "lab".into(),
        name: "nobody/nothing".into(),
    };
    assert_eq!(hear(engine.generate(asked)).await.error(), ErrorCode::ModelNotFound);

    // Stopped in the middle, and free for the next question.
    let job = in_the_middle(engine).await;
    job.cancel.cancel();
    let stopped = hear(job).await;
    assert_eq!(stopped.done().finish_reason, FinishReason::Cancelled);
    let next = hear_when_free(engine, &question(SUM, Thinking::Off)).await;
    assert!(next.text.contains("936"), "{next:?}");

    // Offline, a server on this computer answers, and nothing goes further.
    net.set_offline(true).unwrap();
    assert!(hear(engine.generate(question(SUM, Thinking::Off)))
        .await
        .text
        .contains("936"));
    let here = engine.endpoints();
    engine.set_endpoints(vec![remote::endpoint("lab", "http://192.0.2.1/v1").unwrap()]);
    assert!(engine.capabilities(&pebble()).leaves_computer);
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::Offline
    );
    let listed = engine.models_of("lab").await.unwrap();
    assert_eq!(listed.problem.unwrap().code, ErrorCode::Offline);
    net.set_offline(false).unwrap();
    engine.set_endpoints(here);

    let job = in_the_middle(engine).await;
    server.kill();
    assert_eq!(hear(job).await.error(), ErrorCode::Network);
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::Network
    );
}

/// The same after an answer was stopped: vllm-mlx refuses whatever comes in the moment that it takes to notice.
async fn hear_when_free(engine: &RemoteEngine, request: &Request) -> Heard {
    for _ in 0..100 {
        let heard = hear(engine.generate(request.clone())).await;
        if !matches!(&heard.end, Some(Err(error)) if error.code == ErrorCode::Network) {
            return heard;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server stays busy");
}

/// A job whose answer has begun.
async fn in_the_middle(engine: &RemoteEngine) -> JobHandle {
    let mut job = engine.generate(question("Count to fifty.", Thinking::On));
    while !matches!(job.events.recv().await.unwrap(), EngineEvent::Delta { .. }) {}
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pebble_answers_behind_mlx_lms_server() {
    let Some(mut server) = Server::start(&[]) else { return };
    let net = net();
    let engine = engine(&net, &server.url);
    assert_eq!(pebble().reference(), format!("endpoint:lab/{}", server.model()));
    assert!(!engine.capabilities(&pebble()).leaves_computer && !engine.capabilities(&pebble()).continue_answer);
    let counted = engine.count(question(SUM, Thinking::Off)).await.unwrap();
    assert!(counted.estimated && (4..200).contains(&counted.tokens), "{counted:?}");

    ask_everything(&net, &engine, &mut server).await;
    engine.set_endpoints(Vec::new());
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::ModelNotFound
    );
    assert!(engine.models_of("lab").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_in_the_middle_leaves_what_came() {
    let Some(server) = Server::start(&["--die-after", "4"]) else {
        return;
    };
    let heard = hear(engine(&net(), &server.url).generate(question("Count to fifty.", Thinking::Off))).await;
    assert_eq!(heard.error(), ErrorCode::Network);
    assert!(!heard.text.is_empty(), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_asked_for_and_fields_may_be_refused() {
    let Some(server) = Server::start(&[
        "--key",
        "sk-right",
        "--refuse",
        "chat_template_kwargs",
        "--refuse",
        "reasoning_effort",
    ]) else {
        return;
    };
    let engine = engine(&net(), &server.url);
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::KeyRefused
    );
    assert_eq!(
        engine.models().await[0].problem.as_ref().unwrap().code,
        ErrorCode::KeyRefused
    );
    assert!(engine.store_key("nobody", "sk-right", false).await.is_err());
    engine.store_key("lab", "sk-wrong", false).await.unwrap();
    let refused = hear(engine.generate(question(SUM, Thinking::Off))).await;
    assert_eq!(refused.error(), ErrorCode::KeyRefused);
    assert!(!format!("{refused:?}").contains("sk-wrong"), "a key is never shown");
    engine.store_key("lab", "sk-right", false).await.unwrap();

    let heard = hear(engine.generate(question(SUM, Thinking::Low))).await;
    assert!(heard.text.contains("936"), "{heard:?}");
    assert_eq!(heard.notices, [NoticeCode::ThinkingSwitchIgnored]);
    let thinking = engine.capabilities(&pebble()).thinking;
    assert!(
        matches!(thinking, Some(ThinkingControl::ByRequest { .. })),
        "{thinking:?}"
    );
    // A refused field is not sent again, so nothing is left out a second time.
    assert_eq!(hear(engine.generate(question(SUM, Thinking::Low))).await.notices, []);

    engine.forget_key("lab").await.unwrap();
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::KeyRefused
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pebble_answers_behind_vllm_mlx() {
    let Some(mut server) = Server::start_vllm_mlx("sk-right") else {
        return;
    };
    let net = net();
    let engine = engine(&net, &server.url);
    assert_eq!(
        hear(engine.generate(question(SUM, Thinking::Off))).await.error(),
        ErrorCode::KeyRefused
    );
    engine.store_key("lab", "sk-right", false).await.unwrap();
    // Without its parsers for thoughts and calls, the server passes Pebble's markers on as text.
    ask_everything(&net, &engine, &mut server).await;
}

struct NoFolders;

impl ModelShelf for NoFolders {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        Err(Error::new(ErrorCode::ModelNotFound, format!("there is no {reference}")))
    }
}

async fn open(folder: &Path, net: &Net, remote: &RemoteEngine) -> (FakeEngine, Chat) {
    let local = FakeEngine::new();
    let router = EngineRouter::new(Arc::new(local.clone()), Arc::new(remote.clone()));
    let shelf = EndpointShelf::new(Arc::new(NoFolders), remote.clone());
    assert!(net.requests().is_empty());
    let chat = Chat::open(&folder.join("history.sqlite"), Arc::new(router), Arc::new(shelf))
        .await
        .unwrap();
    (local, chat)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_with_a_remote_model_is_stored_and_asks_nothing_in_the_background() {
    let Some(server) = Server::start(&[]) else { return };
    let (folder, net) = (tempfile::tempdir().unwrap(), net());
    let remote = engine(&net, &server.url);
    let (local, chat) = open(folder.path(), &net, &remote).await;
    let settings = ChatSettings {
        model: Some(pebble().reference()),
        thinking: Some(Thinking::On),
        sampling: Sampling::greedy(),
        ..ChatSettings::default()
    };
    let id = chat.chats().create(settings).await.unwrap().summary.id;
    let turn = chat
        .answers()
        .send(&id, &[Content::text(SUM)], &api::Position::End)
        .await
        .unwrap();
    let mut events = chat.answers().attach(&turn.answer.id, 0).await.unwrap();
    let answer = loop {
        let event = tokio::time::timeout(Duration::from_secs(120), events.recv())
            .await
            .unwrap()
            .unwrap();
        if let AnswerBody::Finished { message } = event.body {
            break message;
        }
    };
    assert_eq!(answer.state, AnswerState::Complete, "{answer:?}");
    assert!(answer.text().contains("936"), "{answer:?}");
    assert_eq!(
        (answer.model.as_ref(), &answer.model_revision),
        (Some(&pebble().reference()), &None)
    );
    let stored = chat.chats().open(&id).await.unwrap();
    assert_eq!(stored.messages.last(), Some(&*answer));
    assert!(!stored.summary.title.is_empty());
    // The answer itself, and nothing for titles, summaries or the next prompt.
    chat.shut_down().await;
    assert_eq!(net.requests().len(), 1, "{:?}", net.requests());
    assert!(local.take_job().is_none() && local.take_prefetched().is_empty());

    let lost = EndpointShelf::new(Arc::new(NoFolders), remote)
        .resolve("endpoint:other/model")
        .unwrap_err();
    assert_eq!(lost.code, ErrorCode::ModelNotFound);
}
