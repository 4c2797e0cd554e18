//! The tree of a chat beside other windows and processes, and answers that are asked for otherwise.

use std::time::Duration;

use api::{ChatSettings, DeleteScope, Position};
use protocol::{Content, ErrorCode, FinishReason, Thinking};
use tokio::time::timeout;

use crate::{done, open, text, Harness};

impl Harness {
    async fn told(&self, chat: &str, question: &str) -> String {
        let (answer, job) = self.ask(chat, question).await;
        job.events.send(text(&format!("to {question}"), 1));
        job.events.send(done(FinishReason::Stop));
        self.end(&answer).await;
        answer
    }

    async fn texts(&self, chat: &str) -> Vec<String> {
        self.stored(chat).await.iter().map(|message| message.text()).collect()
    }
}

#[tokio::test]
async fn a_question_to_what_a_window_shows_never_goes_behind_a_turn_that_it_does_not_show() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let shown = harness.told(&chat, "first").await;
    // Another process asks in the same chat.
    let (engine, other) = open(&harness.path).await;
    let turn = other
        .answers()
        .send(&chat, &[Content::text("unseen")], &Position::After(shown.clone()))
        .await
        .unwrap();
    let job = loop {
        if let Some(job) = engine.take_job() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    job.events.send(text("to unseen", 1));
    job.events.send(done(FinishReason::Stop));
    crate::all(other.answers().attach(&turn.answer.id, 0).await.unwrap()).await;

    let asked = harness
        .chat
        .answers()
        .send(&chat, &[Content::text("second")], &Position::After(shown.clone()))
        .await
        .unwrap();
    let job = harness.job().await;
    let said: Vec<String> = job
        .request
        .messages
        .iter()
        .map(|message| message.text_with_placeholders())
        .collect();
    assert_eq!(
        said,
        ["first", "to first", "second"],
        "the model reads what the person saw"
    );
    assert_eq!(
        asked.question.siblings.len(),
        2,
        "the unseen turn is a branch beside it"
    );
    job.events.send(done(FinishReason::Stop));
    harness.end(&asked.answer.id).await;

    // A question after something that was deleted elsewhere is refused, and stores nothing.
    let gone = asked.answer.id;
    other
        .chats()
        .delete_message(&asked.question.id, DeleteScope::Branch)
        .await
        .unwrap();
    let refused = harness
        .chat
        .answers()
        .send(&chat, &[Content::text("third")], &Position::After(gone))
        .await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(harness.texts(&chat).await, ["first", "to first", "unseen", "to unseen"]);
}

#[tokio::test]
async fn what_another_process_does_to_a_chat_is_told_with_a_new_revision() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let answer = harness.told(&chat, "first").await;
    let (_, other) = open(&harness.path).await;
    let revision = |chats: Vec<api::ChatSummary>| chats[0].revision;
    let mut before = revision(other.chats().list().await.unwrap());
    let mut changes = other.changes();
    let edited = harness.chat.chats().edit_answer(&answer, "better").await.unwrap();
    for step in 0..3 {
        changes.mark_unchanged();
        match step {
            0 => drop(harness.chat.chats().show_branch(&answer).await.unwrap()),
            1 => drop(
                harness
                    .chat
                    .chats()
                    .delete_message(&edited.messages[1].id, DeleteScope::Branch)
                    .await
                    .unwrap(),
            ),
            _ => {
                let settings = ChatSettings {
                    thinking_budget: Some(7),
                    ..ChatSettings::default()
                };
                harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
            }
        }
        // Within two looks at the file.
        let mut now = before;
        while now == before {
            timeout(Duration::from_secs(120), changes.changed())
                .await
                .expect("it is told")
                .unwrap();
            now = revision(other.chats().list().await.unwrap());
        }
        assert!(now > before, "step {step}");
        before = now;
    }
}

#[tokio::test]
async fn another_answer_can_be_asked_for_otherwise_and_the_chat_stays_as_it_is_set() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let answer = harness.told(&chat, "first").await;
    let otherwise = ChatSettings {
        model: Some("owl".into()),
        thinking: Some(Thinking::High),
        ..ChatSettings::default()
    };
    let view = harness
        .chat
        .answers()
        .regenerate(&answer, Some(otherwise))
        .await
        .unwrap();
    let job = harness.job().await;
    assert_eq!(
        (job.request.model.reference(), job.request.thinking),
        ("owl".into(), Some(Thinking::High))
    );
    job.events.send(done(FinishReason::Stop));
    let again = harness.end(&view.messages[1].id).await;
    assert_eq!(again.model.as_deref(), Some("owl"));
    assert_eq!(again.siblings.len(), 2);
    let kept = ChatSettings {
        model: Some("pebble".into()),
        ..ChatSettings::default()
    };
    assert_eq!(harness.chat.chats().get(&chat).await.unwrap().settings, kept);
}

#[tokio::test]
async fn an_answer_that_ended_is_unread_until_a_window_shows_it() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness.told(&chat, "first").await;
    assert!(harness.chat.chats().list().await.unwrap()[0].unread);
    harness.chat.chats().mark_read(&chat).await.unwrap();
    assert!(!harness.chat.chats().list().await.unwrap()[0].unread);
}

#[tokio::test]
async fn words_that_say_nothing_are_no_answer() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let answer = harness.told(&chat, "first").await;
    assert_eq!(
        harness.chat.chats().edit_answer(&answer, " \n").await.unwrap_err().code,
        ErrorCode::BadRequest
    );
    let view = harness.chat.chats().edit_answer(&answer, " better \n").await.unwrap();
    assert_eq!(view.messages[1].text(), "better");
    let trash = harness.chat.chats().delete_message(&answer, DeleteScope::Turn).await;
    assert_eq!(
        trash.unwrap_err().code,
        ErrorCode::NotFound,
        "it is not on the branch that is looked at"
    );
    let trash = harness
        .chat
        .chats()
        .delete_message(&view.messages[1].id, DeleteScope::Turn)
        .await
        .unwrap();
    assert!(harness.texts(&chat).await.is_empty());
    harness.chat.library().restore(&trash).await.unwrap();
    assert_eq!(harness.texts(&chat).await, ["first", "better"]);
}
