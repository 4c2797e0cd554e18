//! Temporary chats: everything works in memory, and nothing is written until one is kept.

use std::path::Path;
use std::sync::Arc;

use api::{ChatSettings, Position};
use protocol::fake::FakeJob;
use protocol::{Content, ErrorCode, FinishReason, LocalEngine, MemoryFigures, Reason};
use serde_json::json;

use crate::images::png;
use crate::{done, text, Harness, Shelf};

/// A word that is searched for in all files.
const MARK: &str = "rhododendron";

/// True if a file below this folder has the word in it, or the image.
fn is_written(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_written(&path);
        }
        let bytes = std::fs::read(&path).unwrap();
        let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|window| window == wanted);
        has(MARK.as_bytes()) || has(&png())
    })
}

impl Harness {
    /// A temporary list and the id of its chat.
    async fn temporary(&self) -> (chat::Chat, String) {
        let list = self.chat.temporary().await.unwrap();
        let view = list.chats().create(ChatSettings::default()).await.unwrap();
        (list, view.summary.id)
    }

    async fn ask_in(&self, list: &chat::Chat, chat: &str, content: &[Content]) -> (String, FakeJob) {
        let turn = list.answers().send(chat, content, &Position::End).await.unwrap();
        (turn.answer.id, self.job().await)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }
}

/// Answers a job, and waits until that is stored.
async fn answer(list: &chat::Chat, message: &str, job: &FakeJob, words: &str) {
    job.events.send(text(words, 1));
    job.events.send(done(FinishReason::Stop));
    let mut events = list.answers().attach(message, 0).await.unwrap();
    while events.recv().await.is_some() {}
}

#[tokio::test]
async fn nothing_of_a_temporary_chat_is_written_and_nothing_is_left() {
    let harness = Harness::new().await;
    let stored = harness.new_chat().await;
    let (list, chat) = harness.temporary().await;
    let image = list.files().add_image_part(png(), "a cat").await.unwrap();
    let file = list.files().add_file(MARK.into(), "notes.txt").await.unwrap();
    list.chats().set_draft(&chat, &[Content::text(MARK)]).await.unwrap();
    let question = [image.clone(), file, Content::text(MARK)];
    let (first, job) = harness.ask_in(&list, &chat, &question).await;
    assert_eq!(job.request.images.len(), 1, "the model sees it");
    answer(&list, &first, &job, MARK).await;
    // A second turn, as in any other chat.
    let (second, job) = harness.ask_in(&list, &chat, &[Content::text("And?")]).await;
    assert_eq!(job.request.messages.len(), 3);
    answer(&list, &second, &job, MARK).await;
    assert_eq!(list.chats().open(&chat).await.unwrap().messages.len(), 4);

    let listed = harness.chat.chats().list().await.unwrap();
    assert_eq!(listed.iter().map(|chat| &chat.id).collect::<Vec<_>>(), [&stored]);
    assert!(list.holds(&chat).await.unwrap() && list.holds(&first).await.unwrap());
    assert!(!harness.chat.holds(&chat).await.unwrap() && harness.chat.holds(&stored).await.unwrap());
    harness.engine.set_memory(MemoryFigures {
        cache: 7,
        ..MemoryFigures::default()
    });
    list.discard().await;
    assert!(!is_written(harness.folder()));
    assert_eq!(
        harness.engine.memory().await.unwrap().cache,
        0,
        "the engine forgot it, too"
    );
}

#[tokio::test]
async fn a_temporary_chat_has_the_settings_of_the_app_as_they_are_now() {
    let harness = Harness::new().await;
    let (list, chat) = harness.temporary().await;
    let change = json!({"default_model": "hawk", "model_defaults": {"hawk": {"system_prompt": "Be brief."}}});
    let change = change.as_object().unwrap();
    harness.chat.settings().change(change).await.unwrap();
    assert_eq!(list.settings().get().await.unwrap().default_model, "hawk");
    let (first, job) = harness.ask_in(&list, &chat, &[Content::text("Why?")]).await;
    assert_eq!(job.request.model.reference(), "hawk");
    assert_eq!(job.request.messages[0].text_with_placeholders(), "Be brief.");
    answer(&list, &first, &job, "So.").await;
}

#[tokio::test]
async fn a_temporary_chat_that_is_kept_is_a_normal_one_with_its_images() {
    let harness = Harness::new().await;
    let (list, chat) = harness.temporary().await;
    let image = list.files().add_image_part(png(), "a cat").await.unwrap();
    let (first, job) = harness.ask_in(&list, &chat, &[image, Content::text(MARK)]).await;
    let refused = harness.chat.keep(&list).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Busy, "while it is being answered");
    answer(&list, &first, &job, "Yes.").await;
    let before = list.chats().open(&chat).await.unwrap();
    harness.chat.keep(&list).await.unwrap();
    let late = list
        .answers()
        .send(&chat, &[Content::text("Late")], &Position::End)
        .await;
    assert!(late.is_err(), "nothing is written past the chat that is kept");
    assert!(!list.holds(&chat).await.unwrap_or_default());
    list.discard().await;

    let kept = harness.chat.chats().open(&chat).await.unwrap();
    assert_eq!(kept.messages, before.messages);
    assert_eq!(kept.summary.title, MARK);
    let Content::Image { attachment, .. } = &kept.messages[0].parts[0].content else {
        panic!("an image comes first");
    };
    assert_eq!(harness.chat.files().image(attachment).await.unwrap().to_vec(), png());
    assert_eq!(harness.chat.chats().list().await.unwrap().len(), 1);
    // It goes on as any other.
    let (second, job) = harness.ask(&chat, "And?").await;
    assert_eq!(job.request.messages.len(), 3);
    job.events.send(done(FinishReason::Stop));
    harness.end(&second).await;
}

#[tokio::test]
async fn a_temporary_chat_that_is_ended_while_it_answers_stops_at_once() {
    let harness = Harness::new().await;
    let (list, chat) = harness.temporary().await;
    let (_, job) = harness.ask_in(&list, &chat, &[Content::text(MARK)]).await;
    job.events.send(text("So", 1));
    let discarded = tokio::spawn(list.discard());
    while !job.cancel.is_cancelled() {
        tokio::task::yield_now().await;
    }
    job.events.send(done(FinishReason::Cancelled));
    discarded.await.unwrap();
    assert!(!is_written(harness.folder()));
}

#[tokio::test]
async fn a_temporary_chat_that_cannot_be_kept_stays_as_it_was() {
    let harness = Harness::new().await;
    let read_only = chat::Chat::open_read_only(&harness.path, Arc::new(harness.engine.clone()), Arc::new(Shelf))
        .await
        .unwrap();
    let list = read_only.temporary().await.unwrap();
    let chat = list.chats().create(ChatSettings::default()).await.unwrap().summary.id;
    let (first, job) = harness.ask_in(&list, &chat, &[Content::text(MARK)]).await;
    answer(&list, &first, &job, "Yes.").await;
    let refused = read_only.keep(&list).await.unwrap_err();
    assert_eq!(refused.reason, Some(Reason::HistoryReadOnly));
    assert!(!is_written(harness.folder()));
    // It goes on as before.
    let (second, job) = harness.ask_in(&list, &chat, &[Content::text("And?")]).await;
    answer(&list, &second, &job, "So.").await;
    assert_eq!(list.chats().open(&chat).await.unwrap().messages.len(), 4);
}
