//! Turns whose calls a box of tools runs: each step stored before the next, stop, crash, and going on without.

use std::sync::Arc;
use std::time::Duration;

use api::{AnswerState, CallState, CallStatus, ChatSettings, StoredMessage};
use protocol::fake::{FakeCall, FakeToolbox};
use protocol::{
    CallEnd, CallOrigin, CallProgress, CallResult, Content, EngineEvent, ErrorCode, FinishReason, Role, ToolCall,
    ToolRef,
};
use tokio::time::sleep;

use crate::{done, open, text, Harness};

pub fn calls(names: &[&str]) -> Vec<EngineEvent> {
    let call = |(index, name): (usize, &&str)| EngineEvent::Delta {
        content: Content::ToolCall {
            call: ToolCall {
                id: format!("call_{index}"),
                name: (*name).to_owned(),
                arguments: serde_json::json!({ "city": "Bonn" }),
            },
        },
        tokens: vec![5],
        thinking_tokens: Some(0),
    };
    names.iter().enumerate().map(call).collect()
}

pub fn tool(name: &str) -> ToolRef {
    ToolRef {
        server: "s".into(),
        tool: name.into(),
    }
}

/// A harness with tools, and a chat in which two are on.
pub async fn with_tools() -> (Harness, FakeToolbox, String) {
    let harness = Harness::new().await;
    let toolbox = FakeToolbox::default();
    harness.chat.set_toolbox(Arc::new(toolbox.clone()));
    let settings = ChatSettings {
        tools: vec![tool("weather"), tool("news")],
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    (harness, toolbox, chat)
}

/// The next call that the box of tools is given.
pub async fn next_call(toolbox: &FakeToolbox) -> FakeCall {
    for _ in 0..6000 {
        if let Some(call) = toolbox.take_call() {
            return call;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("no call came");
}

impl Harness {
    /// A question whose answer makes these calls.
    pub async fn answer_with_calls(&self, chat: &str, names: &[&str]) -> String {
        let (answer, job) = self.ask(chat, "Weather?").await;
        calls(names).into_iter().for_each(|call| job.events.send(call));
        job.events.send(done(FinishReason::ToolCalls));
        self.end(&answer).await;
        answer
    }

    /// The call of an answer, once one is in this state.
    pub async fn call_of(&self, answer: &str, until: CallState) -> CallStatus {
        for _ in 0..6000 {
            let message = self.message(answer).await;
            if let Some(call) = message.calls.iter().find(|call| call.state == until) {
                return call.clone();
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.message(answer).await.calls);
    }

    async fn message(&self, id: &str) -> StoredMessage {
        let history = history::History::open(&self.path).await.unwrap();
        let message = history.message(id).await.unwrap();
        history.close().await;
        message
    }
}

#[tokio::test]
async fn a_turn_of_two_calls_stores_each_step_before_the_next_and_goes_on_by_itself() {
    let (harness, toolbox, chat) = with_tools().await;
    let answer = harness.answer_with_calls(&chat, &["weather", "news"]).await;
    let first = next_call(&toolbox).await;
    assert_eq!((first.request.origin, first.request.attempt), (CallOrigin::Answer, 1));
    assert_eq!(first.request.tool, tool("weather"));
    assert_eq!(harness.call_of(&answer, CallState::Asked).await.tool, tool("weather"));
    assert!(toolbox.take_call().is_none(), "one after the other");
    // The person wrote other arguments.
    let other = serde_json::json!({ "city": "Ulm" });
    (first.start)(other.clone()).await.unwrap();
    let started = harness.call_of(&answer, CallState::Started).await;
    assert_eq!(started.arguments, Some(other));
    assert!(started.started_at.is_some() && started.ended_at.is_none());
    first.end.send(CallResult::words(CallEnd::Done, "4 degrees")).unwrap();
    let second = next_call(&toolbox).await;
    assert_eq!(harness.call_of(&answer, CallState::Done).await.tool, tool("weather"));
    second.refuse("The person refused.");
    harness.call_of(&answer, CallState::Refused).await;

    let job = harness.job().await;
    let roles: Vec<Role> = job.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    assert_eq!(job.request.messages[2].text_with_placeholders(), "4 degrees");
    assert_eq!(job.request.messages[3].text_with_placeholders(), "The person refused.");
    job.events.send(text("Cold.", 1));
    job.events.send(done(FinishReason::Stop));
    let stored = harness.stored(&chat).await;
    let last = stored.last().unwrap();
    assert_eq!(harness.end(&last.id).await.state, AnswerState::Complete);
    for _ in 0..600 {
        if toolbox.take_ended_turns() == [stored[0].id.clone()] {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the turn did not end");
}

#[tokio::test]
async fn a_chat_keeps_the_tools_that_it_began_with() {
    let (harness, toolbox, chat) = with_tools().await;
    let mut told = Vec::new();
    for _ in 0..3 {
        let (answer, job) = harness.ask(&chat, "Hello").await;
        told.push(job.request.tools.clone());
        job.events.send(done(FinishReason::Stop));
        harness.end(&answer).await;
    }
    assert_eq!(told[0].len(), 2);
    assert!(told.iter().all(|tools| *tools == told[0]), "{told:?}");
    assert_eq!(toolbox.offers(), 1);
}

#[tokio::test]
async fn a_stop_ends_the_calls_and_no_answer_follows() {
    let (harness, toolbox, chat) = with_tools().await;
    let answer = harness.answer_with_calls(&chat, &["weather", "news"]).await;
    let call = next_call(&toolbox).await;
    harness.chat.answers().stop(&answer).await.unwrap();
    harness.call_of(&answer, CallState::Stopped).await;
    sleep(Duration::from_millis(100)).await;
    assert!(toolbox.take_call().is_none() && harness.engine.take_job().is_none());
    // A consent that comes now does not count any more.
    let error = (call.start)(serde_json::json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    // The next question tells the model what became of them.
    let (_, job) = harness.ask(&chat, "And now?").await;
    let roles: Vec<Role> = job.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
}

#[tokio::test]
async fn a_question_withdraws_a_call_that_waits() {
    let (harness, toolbox, chat) = with_tools().await;
    let answer = harness.answer_with_calls(&chat, &["weather"]).await;
    let call = next_call(&toolbox).await;
    let (_, job) = harness.ask(&chat, "Never mind.").await;
    assert_eq!(job.request.messages[2].text_with_placeholders(), history::NOT_RUN);
    harness.call_of(&answer, CallState::NotRun).await;
    assert!((call.start)(serde_json::json!({})).await.is_err(), "it leaves no more");
    assert!(call.end.is_closed() || call.end.send(CallResult::words(CallEnd::Done, "late")).is_err());
    let results = harness.stored(&chat).await;
    let results = results.iter().filter(|message| message.role == Role::Tool);
    assert_eq!(results.count(), 1);
}

/// The state of a call that is found after its process died in this state.
async fn after_a_crash(starts: bool) -> (Harness, FakeToolbox, String, String) {
    let (mut harness, toolbox, chat) = with_tools().await;
    let answer = harness.answer_with_calls(&chat, &["weather"]).await;
    let FakeCall {
        request, start, end, ..
    } = next_call(&toolbox).await;
    if starts {
        start(request.call.arguments).await.unwrap();
    }
    // As the next process finds it.
    std::mem::forget(end);
    let history = history::History::open(&harness.path).await.unwrap();
    for open in history.open_calls().await.unwrap() {
        assert!(history.interrupt_call(&open).await.unwrap());
    }
    history.close().await;
    let (engine, chats) = open(&harness.path).await;
    (harness.engine, harness.chat) = (engine, chats);
    let toolbox = FakeToolbox::default();
    harness.chat.set_toolbox(Arc::new(toolbox.clone()));
    (harness, toolbox, chat, answer)
}

#[tokio::test]
async fn a_call_that_was_asked_or_ran_when_its_process_died_is_inert_until_a_person_asks() {
    for (starts, state) in [(false, CallState::NotRun), (true, CallState::MayHaveRun)] {
        let (harness, toolbox, chat, answer) = after_a_crash(starts).await;
        assert_eq!(harness.message(&answer).await.calls[0].state, state);
        sleep(Duration::from_millis(100)).await;
        assert!(toolbox.take_call().is_none() && harness.engine.take_job().is_none());
        // Again: shown whole, by no earlier consent.
        harness.chat.answers().run_calls_again(&answer).await.unwrap();
        let call = next_call(&toolbox).await;
        assert_eq!((call.request.origin, call.request.attempt), (CallOrigin::Again, 2));
        assert_eq!(call.request.call.arguments, serde_json::json!({ "city": "Bonn" }));
        let busy = harness.chat.answers().run_calls_again(&answer).await.unwrap_err();
        assert_eq!(busy.code, ErrorCode::Busy);
        call.finish("4 degrees").await.unwrap();
        let job = harness.job().await;
        assert_eq!(job.request.messages[2].text_with_placeholders(), "4 degrees");
        drop(job);
        let _ = chat;
    }
}

#[tokio::test]
async fn one_can_go_on_without_a_call_of_a_process_that_died() {
    let (harness, toolbox, _, answer) = after_a_crash(true).await;
    let view = harness.chat.answers().go_on_without_calls(&answer).await.unwrap();
    assert_eq!(view.messages.len(), 4);
    let job = harness.job().await;
    assert_eq!(job.request.messages[2].text_with_placeholders(), history::NOT_RUN);
    assert!(toolbox.take_call().is_none());
    let error = harness.chat.answers().run_calls_again(&answer).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_temporary_chat_calls_as_well() {
    let (harness, toolbox, _) = with_tools().await;
    let temporary = harness.chat.temporary().await.unwrap();
    let settings = ChatSettings {
        tools: vec![tool("weather")],
        ..ChatSettings::default()
    };
    let chat = temporary.chats().create(settings).await.unwrap().summary.id;
    let turn = temporary
        .answers()
        .send(&chat, &[Content::text("Weather?")], &api::Position::End)
        .await
        .unwrap();
    let job = harness.job().await;
    assert_eq!(job.request.tools.len(), 1);
    calls(&["weather"]).into_iter().for_each(|call| job.events.send(call));
    job.events.send(done(FinishReason::ToolCalls));
    let call = next_call(&toolbox).await;
    assert_eq!(call.request.answer, turn.answer.id);
    // It cannot be kept meanwhile.
    assert_eq!(harness.chat.keep(&temporary).await.unwrap_err().code, ErrorCode::Busy);
    temporary.discard().await;
    for _ in 0..600 {
        if call.end.is_closed() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the call goes on");
}

#[tokio::test]
async fn the_progress_of_a_call_is_known_while_it_runs_and_stored_nowhere() {
    let (harness, toolbox, chat) = with_tools().await;
    let mut running = harness.chat.running_calls();
    assert!(running.borrow_and_update().is_empty());
    let answer = harness.answer_with_calls(&chat, &["weather", "news"]).await;
    let first = next_call(&toolbox).await;
    let progress = |done: f64| CallProgress {
        done: Some(done),
        total: Some(10.0),
        message: Some("fetching".into()),
        asks: false,
    };
    (first.tell)(progress(1.0));
    (first.tell)(progress(3.0));
    let known = running.borrow_and_update().clone();
    assert_eq!(known.len(), 1);
    assert_eq!((&known[0].answer, known[0].call.as_str()), (&answer, "call_0"));
    assert_eq!(known[0].progress, progress(3.0));
    // In chats in memory, too: whoever follows these hears of those.
    let temporary = harness.chat.temporary().await.unwrap();
    assert_eq!(*temporary.running_calls().borrow(), known);
    first.finish("4 degrees").await.unwrap();
    next_call(&toolbox).await.refuse("no");
    for _ in 0..600 {
        if harness.chat.running_calls().borrow().is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", harness.chat.running_calls().borrow());
}
