//! Chats as texts of the user's own.

use api::{AnswerState, ChatSettings, Part, Position, StoredMessage};
use history::ExportedImages;
use protocol::Content;

use crate::{asked, new_answer, words, Fresh, WRITER};

#[tokio::test]
async fn markdown_shows_the_branch_and_keeps_reasoning_apart() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh
        .history
        .set_chat_settings(
            &chat,
            &ChatSettings {
                thinking_budget: None,
                system_prompt: "Be brief.".into(),
                ..ChatSettings::default()
            },
        )
        .await
        .unwrap();
    let mut answer = fresh
        .history
        .begin_turn(&chat, &asked("What is 1+1?"), &Position::End, "Sums", &new_answer())
        .await
        .unwrap()
        .answer;
    let thought = Content::thinking("one\n\nand one");
    answer.parts = vec![
        Part {
            content: thought,
            started_at: 0,
            ended_at: 12_000,
        },
        Part {
            content: words("**2**"),
            started_at: 0,
            ended_at: 0,
        },
    ];
    answer.state = AnswerState::Complete;
    fresh.history.finish(&answer, WRITER, &[]).await.unwrap();
    let expected = "# Sums\n\n## Instructions\n\nBe brief.\n\n## You\n\nWhat is 1+1?\n\n## pebble\n\n> **Thought for 12 s**\n>\n> one\n> \n> and one\n\n**2**\n";
    assert_eq!(
        fresh
            .history
            .export_markdown(&chat, &ExportedImages::new())
            .await
            .unwrap(),
        expected
    );
}

#[tokio::test]
async fn json_holds_every_branch_and_reads_back() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let turn = fresh.turn(&chat, "q", "a").await;
    let sibling = fresh.sibling(&turn.question.id, "a'").await;
    let export = fresh.history.export_json(&chat, &ExportedImages::new()).await.unwrap();
    let messages: Vec<StoredMessage> = serde_json::from_value(export["messages"].clone()).unwrap();
    assert_eq!(messages, fresh.history.tree(&chat).await.unwrap());
    assert_eq!(messages.len(), 3);
    assert_eq!(export["head"], sibling.id.as_str());
    assert_eq!(export["chat"]["id"], chat.as_str());
}
