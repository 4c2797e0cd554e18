//! While nobody waits, the engine is given the chat that the next question will come after.

use std::time::Duration;

use api::ChatSettings;
use protocol::{FinishReason, Request, Role, Thinking};
use tokio::time::sleep;

use crate::{done, text, thought, Harness};

pub(crate) fn said(request: &Request) -> Vec<(Role, String)> {
    request
        .messages
        .iter()
        .map(|message| (message.role, message.text_with_placeholders()))
        .collect()
}

impl Harness {
    /// The messages that the model is asked with for this question, with their roles.
    pub(crate) async fn said(&self, chat: &str, question: &str) -> Vec<(Role, String)> {
        let (answer, job) = self.ask(chat, question).await;
        job.events.send(text("Fine.", 1));
        job.events.send(done(FinishReason::Stop));
        self.end(&answer).await;
        said(&job.request)
    }

    /// The next request that the engine was given to prefetch.
    pub(crate) async fn prefetch(&self) -> Vec<Request> {
        for _ in 0..6000 {
            let asked = self.engine.take_prefetched();
            if !asked.is_empty() {
                return asked;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing was read ahead");
    }

    async fn answered(&self, chat: &str, question: &str) -> (String, Request) {
        let (message, job) = self.ask(chat, question).await;
        job.events.send(thought("hm", 1));
        job.events.send(text("Yes.", 2));
        job.events.send(done(FinishReason::Stop));
        self.end(&message).await;
        (message, job.request)
    }
}

#[tokio::test]
async fn an_answer_is_read_ahead_as_the_next_question_will_send_it() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let settings = ChatSettings {
        thinking: Some(Thinking::On),
        thinking_budget: None,
        system_prompt: "Be brief.".into(),
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    harness.answered(&chat, "Is it?").await;
    let ahead = harness.prefetch().await;
    let [request] = &ahead[..] else {
        panic!("once: {ahead:?}")
    };
    let history = [
        (Role::System, "Be brief.".to_owned()),
        (Role::User, "Is it?".into()),
        (Role::Assistant, "Yes.".into()),
    ];
    assert_eq!(said(request), history);

    let (_, job) = harness.ask(&chat, "Why?").await;
    let next = job.request;
    assert_eq!(next.messages[..3], request.messages[..], "reasoning included");
    assert_eq!(
        (&next.model, next.thinking, next.kv_bits),
        (&request.model, request.thinking, request.kv_bits)
    );
}

#[tokio::test]
async fn a_chat_is_read_ahead_when_it_is_opened_and_when_what_stands_before_it_changes() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness.chat.chats().open(&chat).await.unwrap();
    let (message, _) = harness.answered(&chat, "Is it?").await;
    assert_eq!(harness.prefetch().await.len(), 1, "an empty chat has nothing to read");

    harness.chat.chats().open(&chat).await.unwrap();
    assert_eq!(said(&harness.prefetch().await[0]).len(), 2);
    let settings = ChatSettings {
        thinking_budget: None,
        system_prompt: "Be brief.".into(),
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    assert_eq!(
        said(&harness.prefetch().await[0])[0],
        (Role::System, "Be brief.".into())
    );
    harness.chat.chats().show_branch(&message).await.unwrap();
    assert_eq!(said(&harness.prefetch().await[0]).len(), 3);

    let (_, _job) = harness.ask(&chat, "Why?").await;
    harness.chat.chats().open(&chat).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert!(
        harness.engine.take_prefetched().is_empty(),
        "an answer is being written"
    );
}
