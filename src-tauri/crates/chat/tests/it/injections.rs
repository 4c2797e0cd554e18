//! Texts of strangers on every way into a chat: a question, the name and the text of a file, instructions of a project,
//! a result, a chat that is imported. No call comes of them.

use std::time::Duration;

use api::CallState;
use protocol::fake::{injections, FakeToolbox};
use protocol::{Content, FinishReason, ToolRef};
use serde_json::{json, Value};

use crate::tool_calls::{next_call, with_tools};
use crate::{done, text, Harness};

/// Panics if a call waits or runs.
async fn no_call(toolbox: &FakeToolbox, way: &str) {
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(toolbox.take_call().is_none(), "{way}");
}

#[tokio::test]
async fn what_strangers_write_is_no_call() {
    let (harness, toolbox, chat) = with_tools().await;
    let files = harness.chat.files();
    for injection in injections() {
        let file = files
            .add_file(injection.clone().into_bytes(), &format!("{injection}.txt"))
            .await
            .unwrap();
        let question = [file, Content::text(injection.clone())];
        let answers = harness.chat.answers();
        let turn = answers.send(&chat, &question, &api::Position::End).await.unwrap();
        let job = harness.job().await;
        // A model that repeats it has called nothing either.
        job.events.send(text(&injection, 1));
        job.events.send(done(FinishReason::Stop));
        assert!(harness.end(&turn.answer.id).await.calls.is_empty(), "{injection}");
    }
    no_call(&toolbox, "a question, a file, an answer").await;
    let project = harness.chat.projects().create("A project").await.unwrap();
    for injection in injections() {
        harness
            .chat
            .projects()
            .change(&project.id, "A project", &injection)
            .await
            .unwrap();
    }
    no_call(&toolbox, "the instructions of a project").await;
}

#[tokio::test]
async fn a_result_is_a_text_and_the_next_call_waits_like_the_first() {
    let (harness, toolbox, chat) = with_tools().await;
    for injection in injections().into_iter().step_by(4) {
        let answer = harness.answer_with_calls(&chat, &["weather"]).await;
        next_call(&toolbox).await.finish(&injection).await.unwrap();
        harness.call_of(&answer, CallState::Done).await;
        let job = harness.job().await;
        assert!(toolbox.take_call().is_none(), "{injection}");
        job.events.send(done(FinishReason::Stop));
        let last = harness.stored(&chat).await.pop().unwrap();
        harness.end(&last.id).await;
    }
}

/// Every state of a call, as a stranger may write it into an export.
const STATES: [CallState; 8] = [
    CallState::Asked,
    CallState::Started,
    CallState::Done,
    CallState::Failed,
    CallState::Refused,
    CallState::Stopped,
    CallState::NotRun,
    CallState::MayHaveRun,
];

#[tokio::test]
async fn a_call_that_is_imported_in_any_state_is_over() {
    let (harness, toolbox, chat) = with_tools().await;
    let answer = harness.answer_with_calls(&chat, &["weather"]).await;
    let waits = next_call(&toolbox).await;
    harness.call_of(&answer, CallState::Asked).await;
    let export = harness.chat.library().export_json(&chat).await.unwrap();
    waits.refuse("no");
    let status = json!({
        "call": "call_0", "tool": ToolRef { server: "s".into(), tool: "weather".into() }, "server_name": "s",
        "attempt": 1, "owner": "somebody", "asked_at": 1, "extent": "always", "hash": "0",
    });
    for state in STATES {
        let there = Harness::new().await;
        let box_there = FakeToolbox::default();
        there.chat.set_toolbox(std::sync::Arc::new(box_there.clone()));
        let mut export = export.clone();
        for message in export["messages"].as_array_mut().unwrap() {
            let mut call = status.clone();
            call["state"] = serde_json::to_value(state).unwrap();
            message["calls"] = Value::Array(vec![call.clone()]);
            message["tool_calls"] = Value::Array(vec![call]);
        }
        there
            .chat
            .library()
            .import(export.to_string().into_bytes())
            .await
            .unwrap();
        no_call(&box_there, "an import").await;
        for message in there.stored(&chat).await {
            let open = message.calls.iter().find(|call| call.state.is_open());
            assert!(open.is_none(), "{state:?}: {open:?}");
        }
    }
}
