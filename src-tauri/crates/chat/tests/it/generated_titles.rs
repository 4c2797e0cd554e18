//! Titles that a model writes after the first answer.

use std::time::Duration;

use protocol::{fake::FakeJob, FinishReason, Priority};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{done, text, Harness};

impl Harness {
    async fn first_answer(&self, chat: &str) -> String {
        let (answer, job) = self.ask(chat, "How do I grow tomatoes on a balcony?").await;
        job.events.send(text("Choose a sunny place and water them daily.", 1));
        job.events.send(done(FinishReason::Stop));
        self.end(&answer).await;
        answer
    }

    async fn title(&self) -> String {
        self.chat.chats().list().await.unwrap()[0].title.clone()
    }

    /// Waits until nothing is asked of the engine for a while.
    async fn nothing_is_asked(&self) {
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert!(self.engine.take_job().is_none());
    }
}

/// The answer to a title job.
fn answer(job: &FakeJob, words: &str) {
    job.events.send(text(words, 1));
    job.events.send(done(FinishReason::Stop));
}

#[tokio::test]
async fn a_loaded_model_writes_the_title_in_the_background() {
    let harness = Harness::new().await;
    harness.load().await;
    let chat = harness.new_chat().await;
    harness.first_answer(&chat).await;
    let job = harness.job().await;
    assert_eq!(job.request.priority, Priority::Background);
    assert_eq!(job.request.thinking, Some(protocol::Thinking::Off));
    assert!(job.request.max_tokens.is_some_and(|most| most <= 32));
    let mut changes = harness.chat.changes();
    changes.mark_unchanged();
    answer(&job, "\"Balcony tomatoes\"\n");
    while harness.title().await != "Balcony tomatoes" {
        changes.changed().await.unwrap();
    }
    // Only the first answer brings one.
    let (second, job) = harness.ask(&chat, "And in winter?").await;
    answer(&job, "Keep the tomatoes inside.");
    harness.end(&second).await;
    harness.nothing_is_asked().await;
}

#[tokio::test]
async fn a_bad_title_or_one_that_comes_too_late_changes_nothing() {
    let harness = Harness::new().await;
    harness.load().await;
    for words in ["", "Choose a sunny place and water them daily.", "Something about cars"] {
        let chat = harness.new_chat().await;
        harness.first_answer(&chat).await;
        answer(&harness.job().await, words);
        harness.nothing_is_asked().await;
        assert_eq!(harness.title().await, "How do I grow tomatoes on a balcony?", "{words}");
    }
    let chat = harness.new_chat().await;
    harness.first_answer(&chat).await;
    let job = harness.job().await;
    harness.chat.chats().rename(&chat, "Mine").await.unwrap();
    answer(&job, "Balcony tomatoes");
    harness.nothing_is_asked().await;
    assert_eq!(harness.title().await, "Mine");
}

#[tokio::test]
async fn a_title_is_taken_from_what_small_models_write_around_it() {
    let harness = Harness::new().await;
    harness.load().await;
    for (words, end) in [
        (
            "Title: \"Balcony Tomatoes\"\n\nIt says what was asked",
            FinishReason::Length,
        ),
        ("Here is a title:\n1. Balcony Tomatoes", FinishReason::Stop),
        // The words of the answer, but not one of its sentences.
        ("A sunny place", FinishReason::Stop),
    ] {
        let chat = harness.new_chat().await;
        let mut changes = harness.chat.changes();
        harness.first_answer(&chat).await;
        let job = harness.job().await;
        job.events.send(text(words, 1));
        job.events.send(done(end));
        while harness
            .chat
            .chats()
            .get(&chat)
            .await
            .unwrap()
            .summary
            .title
            .contains('?')
        {
            timeout(Duration::from_secs(120), changes.changed())
                .await
                .unwrap()
                .unwrap();
        }
    }
}

#[tokio::test]
async fn a_title_that_was_cut_off_leaves_the_words_of_the_question() {
    let harness = Harness::new().await;
    harness.load().await;
    let chat = harness.new_chat().await;
    harness.first_answer(&chat).await;
    let job = harness.job().await;
    job.events.send(text("Growing tomatoes on a balcony that is", 1));
    job.events.send(done(FinishReason::Length));
    harness.nothing_is_asked().await;
    assert_eq!(harness.title().await, "How do I grow tomatoes on a balcony?");
}

#[tokio::test]
async fn no_title_is_asked_for_of_a_model_that_is_not_loaded_is_elsewhere_or_if_it_is_switched_off() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness.first_answer(&chat).await;
    harness.nothing_is_asked().await;

    harness.load().await;
    let change = Map::from_iter([("write_titles".to_owned(), Value::from(false))]);
    harness.chat.settings().change(&change).await.unwrap();
    let chat = harness.new_chat().await;
    harness.first_answer(&chat).await;
    harness.nothing_is_asked().await;
}
