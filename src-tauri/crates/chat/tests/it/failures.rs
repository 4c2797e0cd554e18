//! Turns that fail: what was said stays, and the chat goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use api::{AnswerState, ChatSettings, Position};
use chat::Chat;
use futures::future::BoxFuture;
use protocol::{
    Capabilities, Content, Engine, EngineEvent, Error, ErrorCode, FinishReason, JobHandle, LocalEngine, ModelSource,
    Request, TokenCount,
};
use sqlx::Connection;

use crate::{all, done, finished, text, Harness, Shelf};

#[tokio::test]
async fn a_failure_of_the_engine_is_the_end_of_the_answer_alone() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    job.events.send(text("half", 1));
    let error = Error::new(ErrorCode::ContextFull, "too long").with("context", 4096u32);
    job.events.send(EngineEvent::Failed(error.clone()));
    let answer = harness.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "half"));
    assert_eq!(answer.error, Some(error));
    assert_eq!(harness.stored(&chat).await[1], answer);

    let (message, job) = harness.ask(&chat, "again").await;
    job.events.send(text("half", 1));
    drop(job);
    let answer = harness.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "half"));
    assert_eq!(answer.error.unwrap().code, ErrorCode::EngineGone);

    let (message, job) = harness.ask(&chat, "and again").await;
    job.events.send(done(FinishReason::Stop));
    assert_eq!(harness.end(&message).await.state, AnswerState::Complete);
}

/// An engine whose every call panics, once the chats are open: opening them tells a local engine its settings.
#[derive(Default)]
struct Panicking {
    chats_are_open: AtomicBool,
}

impl Engine for Panicking {
    fn generate(&self, _: Request) -> JobHandle {
        panic!("generate")
    }
    fn capabilities(&self, _: &ModelSource) -> Capabilities {
        panic!("capabilities")
    }
    fn count(&self, _: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        panic!("count")
    }
    fn local(&self) -> Option<&dyn LocalEngine> {
        assert!(!self.chats_are_open.load(Ordering::Relaxed), "local");
        None
    }
}

#[tokio::test]
async fn a_panic_in_a_turn_ends_its_answer_as_failed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Panicking::default());
    let chats = Chat::open(&folder.path().join("history.sqlite"), engine.clone(), Arc::new(Shelf))
        .await
        .unwrap();
    engine.chats_are_open.store(true, Ordering::Relaxed);
    let chat = chats.chats().create(ChatSettings::default()).await.unwrap().summary.id;
    for question in ["one", "two"] {
        let message = chats
            .answers()
            .send(&chat, &[Content::text(question)], &Position::End)
            .await
            .unwrap()
            .answer
            .id;
        let events = all(chats.answers().attach(&message, 0).await.unwrap()).await;
        let answer = finished(events.last().unwrap());
        assert_eq!(
            (answer.state, answer.error.unwrap().code),
            (AnswerState::Failed, ErrorCode::Engine)
        );
    }
    assert!(chats.answers().running().is_empty());
}

#[tokio::test]
async fn a_question_after_a_failure_stands_for_both() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "My name is Yara.").await;
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "broken")));
    harness.end(&message).await;
    let (_, job) = harness.ask(&chat, "What is my name?").await;
    assert_eq!(job.request.messages.len(), 1);
    let text = job.request.messages[0].text_with_placeholders();
    assert_eq!(text, "My name is Yara.\n\nWhat is my name?");
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_shown_and_says_so_and_the_chat_goes_on() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let mut file = sqlx::SqliteConnection::connect(harness.path.to_str().unwrap())
        .await
        .unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON messages BEGIN SELECT RAISE (ABORT, 'no'); END";
    sqlx::query(refuse).execute(&mut file).await.unwrap();
    job.events.send(text("answer", 1));
    job.events.send(done(FinishReason::Stop));
    let answer = harness.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "answer"));
    let error = answer.error.unwrap();
    assert!(
        error.code == ErrorCode::Storage && error.message.contains("could not be saved"),
        "{error}"
    );

    sqlx::query("DROP TRIGGER refuse").execute(&mut file).await.unwrap();
    // As if its last heartbeat were long ago.
    sqlx::query("UPDATE messages SET heartbeat = 0 WHERE state = 'streaming'")
        .execute(&mut file)
        .await
        .unwrap();
    harness.ask(&chat, "more").await;
    assert_eq!(harness.stored(&chat).await[1].state, AnswerState::Interrupted);
}
