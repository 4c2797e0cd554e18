//! Results of tools as the model is given them: cut to a part of its context, with their images, and whole in the
//! history.

use api::{ChatSettings, ExportFormat};
use protocol::fake::{FakeJob, FakeToolbox};
use protocol::{CallEnd, CallResult, Content, FinishReason, ImageBytes, Role};

use crate::images::png;
use crate::tool_calls::{next_call, with_tools};
use crate::{done, open, text, Harness};

fn with_images(words: &str, images: Vec<Vec<u8>>) -> CallResult {
    CallResult {
        images: images.into_iter().map(ImageBytes::from).collect(),
        ..CallResult::words(CallEnd::Done, words)
    }
}

impl Harness {
    /// Has the answer to a question call a tool that gives this result; returns the request for the next answer.
    async fn after_result(&self, chat: &str, toolbox: &FakeToolbox, result: CallResult) -> FakeJob {
        self.answer_with_calls(chat, &["weather"]).await;
        let call = next_call(toolbox).await;
        (call.start)(serde_json::json!({})).await.unwrap();
        call.end.send(result).unwrap();
        self.job().await
    }

    async fn settings_of(&self, chat: &str, change: impl FnOnce(&mut ChatSettings)) {
        let mut settings = self.chat.chats().get(chat).await.unwrap().settings;
        change(&mut settings);
        self.chat.chats().set_settings(chat, &settings).await.unwrap();
    }
}

/// The result in a request.
fn result(job: &FakeJob) -> &protocol::Message {
    let mut results = job.request.messages.iter().filter(|message| message.role == Role::Tool);
    results.next().unwrap()
}

#[tokio::test]
async fn a_long_result_is_cut_for_the_model_and_whole_in_the_history() {
    let (harness, toolbox, chat) = with_tools().await;
    harness
        .settings_of(&chat, |settings| settings.context = Some(2048))
        .await;
    let long = "It rains. ".repeat(10_000);
    let job = harness
        .after_result(&chat, &toolbox, CallResult::words(CallEnd::Done, long.clone()))
        .await;
    let given = result(&job).text_with_placeholders();
    assert!(
        given.len() <= 1024 && given.starts_with("It rains. It"),
        "{}",
        given.len()
    );
    let last = given.lines().last().unwrap();
    assert!(
        last.starts_with("[cut: ") && last.contains(" of 100000 bytes"),
        "{last}"
    );
    // The same in every later prompt, so that it is read once.
    job.events.send(text("It rains.", 1));
    job.events.send(done(FinishReason::Stop));
    let stored = harness.stored(&chat).await;
    harness.end(&stored.last().unwrap().id).await;
    let (_, job) = harness.ask(&chat, "Sure?").await;
    assert_eq!(result(&job).text_with_placeholders(), given);
    let kept = stored.iter().find(|message| message.role == Role::Tool).unwrap();
    assert_eq!(kept.parts[0].content, Content::text(long));
}

#[tokio::test]
async fn a_result_without_a_known_context_is_cut_at_32_kilobytes() {
    let (harness, toolbox, chat) = with_tools().await;
    let long = CallResult::words(CallEnd::Done, "é".repeat(100_000));
    let job = harness.after_result(&chat, &toolbox, long).await;
    let given = result(&job).text_with_placeholders().len();
    assert!(given <= 32 << 10 && given > (32 << 10) - 4, "{given}");
}

#[tokio::test]
async fn images_of_a_result_are_kept_shown_to_a_model_that_sees_and_exported() {
    let (mut harness, toolbox, chat) = with_tools().await;
    let job = harness
        .after_result(
            &chat,
            &toolbox,
            with_images("A map.", vec![png(), b"no image".to_vec(), png()]),
        )
        .await;
    let given = result(&job);
    let images = given
        .content
        .iter()
        .filter(|part| matches!(part, Content::Image { .. }))
        .count();
    assert_eq!(
        (images, job.request.images.len()),
        (2, 1),
        "the same bytes twice: {given:?}"
    );
    let words = given.text_with_placeholders();
    assert!(
        words.starts_with("A map.") && words.contains("[an image that cannot be shown: "),
        "{words}"
    );
    job.events.send(text("I see.", 1));
    job.events.send(done(FinishReason::Stop));
    let last = harness.stored(&chat).await.last().unwrap().id.clone();
    harness.end(&last).await;
    let markdown = harness
        .chat
        .library()
        .export(None, ExportFormat::Markdown)
        .await
        .unwrap();
    assert!(markdown.contains("A map."), "{markdown}");
    let json = harness.chat.library().export_json(&chat).await.unwrap();
    assert_eq!(json["attachments"].as_object().unwrap().len(), 1);

    // After a restart, too; a model that does not see is told of them in words.
    let (engine, chats) = open(&harness.path).await;
    (harness.engine, harness.chat) = (engine, chats);
    harness.engine.make_blind("mole");
    harness
        .settings_of(&chat, |settings| settings.model = Some("mole".into()))
        .await;
    let (_, job) = harness.ask(&chat, "And now?").await;
    assert!(job.request.images.is_empty() && !result(&job).has_media());
    assert!(result(&job).text_with_placeholders().contains("\n[image: weather]"));
    drop(job);
}

#[tokio::test]
async fn an_endpoint_is_told_of_images_of_results_in_words() {
    let (harness, toolbox, chat) = with_tools().await;
    let remote = |settings: &mut ChatSettings| settings.model = Some("endpoint:lab/owl".into());
    harness.settings_of(&chat, remote).await;
    let job = harness
        .after_result(&chat, &toolbox, with_images("", vec![png()]))
        .await;
    assert!(!result(&job).has_media() && job.request.images.is_empty());
    assert!(result(&job).text_with_placeholders().contains("[image: weather]"));
}
