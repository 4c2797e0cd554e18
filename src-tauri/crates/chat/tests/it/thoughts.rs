//! Thoughts that are ended early or limited by a budget.

use std::time::Duration;

use api::{AnswerState, ChatSettings, Position};
use protocol::{AnswerPrefix, Content, EngineEvent, ErrorCode, FinishReason, Thinking};
use tokio::time::sleep;

use crate::{done, text, thought, Harness};

#[tokio::test]
async fn answer_now_reaches_the_engine_and_nobody_else() {
    let harness = Harness::new().await;
    let (one, two) = (harness.new_chat().await, harness.new_chat().await);
    let (message, job) = harness.ask(&one, "question").await;
    let (_, other) = harness.ask(&two, "question").await;
    job.events.send(thought("hm", 1));
    assert!(!job.end_thinking.is_asked());
    harness.chat.answers().answer_now(&message).await.unwrap();
    while !job.end_thinking.is_asked() {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(!other.end_thinking.is_asked() && !job.cancel.is_cancelled());
    // The answer continues, and twice is as good as once.
    harness.chat.answers().answer_now(&message).await.unwrap();
    job.events.send(text("Yes.", 2));
    job.events.send(done(FinishReason::Stop));
    let answer = harness.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Complete, "Yes."));
    harness.chat.answers().answer_now(&message).await.unwrap();
    assert_eq!(
        harness.chat.answers().answer_now("nothing").await.unwrap_err().code,
        ErrorCode::NotFound
    );
}

#[tokio::test]
async fn a_wish_that_comes_before_the_engine_was_asked_reaches_it() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let turn = harness
        .chat
        .answers()
        .send(&chat, &[Content::text("question")], &Position::End)
        .await
        .unwrap();
    harness.chat.answers().answer_now(&turn.answer.id).await.unwrap();
    let job = harness.job().await;
    while !job.end_thinking.is_asked() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn the_budget_of_a_chat_is_asked_for_and_kept_with_the_answer() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        thinking: Some(Thinking::On),
        thinking_budget: Some(20),
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    let message = harness.stopped(&chat).await;
    harness
        .chat
        .chats()
        .set_settings(&chat, &ChatSettings::default())
        .await
        .unwrap();
    assert_eq!(
        harness.stored(&chat).await[1]
            .settings
            .as_ref()
            .unwrap()
            .thinking_budget,
        Some(20)
    );
    // Going on, the answer keeps what it was asked with; the next one follows the chat.
    let job = harness.continues(&message).await;
    assert_eq!(
        (job.request.thinking, job.request.thinking_budget),
        (Some(Thinking::On), Some(20))
    );
    harness.engine.take_prefetched();
    job.events.send(done(FinishReason::Stop));
    harness.end(&message).await;
    let ahead = loop {
        match harness.engine.take_prefetched().pop() {
            Some(ahead) => break ahead,
            None => sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(
        (ahead.thinking, ahead.thinking_budget, ahead.answer_prefix),
        (None, None, None)
    );
    let (_, job) = harness.ask(&chat, "more").await;
    assert_eq!((job.request.thinking, job.request.thinking_budget), (None, None));
}

#[tokio::test]
async fn a_thought_that_was_ended_for_the_model_stays_ended() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    job.events.send(thought("hm", 1));
    job.events.send(EngineEvent::ThinkingEnded);
    job.events.send(text("Be", 2));
    job.events.send(done(FinishReason::Length));
    harness.end(&message).await;
    let job = harness.continues(&message).await;
    assert!(matches!(
        job.request.answer_prefix,
        Some(AnswerPrefix::Tokens {
            thinking_ended: true,
            ..
        })
    ));
}
