//! One row for each generation and for each result of a tool.

use api::{AnswerState, DeleteScope, Position, StoredMessage};
use history::{Error, ExportedImages, NOT_RUN};
use protocol::{Content, FinishReason, Role, ToolCall};

use crate::{asked, new_answer, part, texts, words, Fresh, WRITER};

fn call(id: &str) -> Content {
    Content::ToolCall {
        call: ToolCall {
            id: id.into(),
            name: "weather".into(),
            arguments: serde_json::json!({"city": "Oslo"}),
        },
    }
}

impl Fresh {
    /// A question and an ended answer that calls tools with these ids.
    async fn calling(&self, chat: &str, ids: &[&str]) -> StoredMessage {
        let turn = self
            .history
            .begin_turn(chat, &asked("Weather?"), &Position::End, "", &new_answer())
            .await
            .unwrap();
        let mut answer = turn.answer;
        answer.parts = ids.iter().map(|id| part(call(id))).collect();
        answer.state = AnswerState::Complete;
        answer.finish_reason = Some(FinishReason::ToolCalls);
        self.history.finish(&answer, WRITER, &[]).await.unwrap()
    }
}

#[tokio::test]
async fn results_stand_in_a_line_below_their_answer_and_each_call_has_one() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let answer = fresh.calling(&chat, &["aaaaaaaaa", "bbbbbbbbb"]).await;
    let second = history
        .add_tool_result(&answer.id, "bbbbbbbbb", &asked("4 degrees"))
        .await
        .unwrap();
    let first = history
        .add_tool_result(&answer.id, "aaaaaaaaa", &asked("19 degrees"))
        .await
        .unwrap();
    assert_eq!((second.role, second.parent.as_ref()), (Role::Tool, Some(&answer.id)));
    assert_eq!(
        (first.tool_call_id.as_deref(), first.parent.as_ref()),
        (Some("aaaaaaaaa"), Some(&second.id))
    );
    let view = history.chat(&chat).await.unwrap();
    assert_eq!(texts(&view.messages), ["Weather?", "", "4 degrees", "19 degrees"]);

    assert!(matches!(
        history.add_tool_result(&answer.id, "aaaaaaaaa", &[]).await,
        Err(Error::HasResult)
    ));
    assert!(matches!(
        history.add_tool_result(&answer.id, "ccccccccc", &[]).await,
        Err(Error::NotFound(_))
    ));
    assert!(matches!(
        history.add_tool_result("nothing", "aaaaaaaaa", &[]).await,
        Err(Error::NotFound(_))
    ));
    let mut next = history.begin_answer(&first.id, &new_answer()).await.unwrap();
    fresh.end(&mut next, "Warm.").await;
    assert_eq!(
        texts(&history.branch(&next.id).await.unwrap())[2..],
        ["4 degrees", "19 degrees", "Warm."]
    );
    assert_eq!(history.call_ids(&chat).await.unwrap(), ["aaaaaaaaa", "bbbbbbbbb"]);
}

#[tokio::test]
async fn a_result_waits_for_the_end_of_its_answer() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh
        .history
        .begin_turn(&chat, &asked("Weather?"), &Position::End, "", &new_answer())
        .await
        .unwrap()
        .answer;
    let delta = history::AnswerDelta {
        parts: vec![history::PartDelta {
            position: 0,
            content: call("aaaaaaaaa"),
            started_at: 1,
            ended_at: 1,
        }],
        ..history::AnswerDelta::default()
    };
    fresh.history.append(&answer.id, WRITER, &delta).await.unwrap();
    assert!(matches!(
        fresh
            .history
            .add_tool_result(&answer.id, "aaaaaaaaa", &asked("4"))
            .await,
        Err(Error::Busy)
    ));
}

#[tokio::test]
async fn a_call_that_the_person_does_not_wait_for_is_stored_as_not_run() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let answer = fresh.calling(&chat, &["aaaaaaaaa", "bbbbbbbbb"]).await;
    history
        .add_tool_result(&answer.id, "aaaaaaaaa", &asked("19 degrees"))
        .await
        .unwrap();
    let mut turn = history
        .begin_turn(&chat, &asked("Never mind."), &Position::End, "", &new_answer())
        .await
        .unwrap();
    fresh.end(&mut turn.answer, "Fine.").await;
    let view = history.chat(&chat).await.unwrap();
    assert_eq!(
        texts(&view.messages),
        ["Weather?", "", "19 degrees", NOT_RUN, "Never mind.", "Fine."]
    );
    let closed = &view.messages[3];
    assert_eq!(
        (closed.role, closed.state, closed.tool_call_id.as_deref()),
        (Role::Tool, AnswerState::Stopped, Some("bbbbbbbbb"))
    );
    assert!(matches!(
        history.add_tool_result(&answer.id, "bbbbbbbbb", &asked("late")).await,
        Err(Error::HasResult)
    ));

    // An edit of the second question goes below the same results, wherever among them it is put.
    for place in [&answer.id, &view.messages[2].id, &closed.id] {
        let position = Position::After(place.clone());
        let mut turn = history
            .begin_turn(&chat, &asked("And in Rome?"), &position, "", &new_answer())
            .await
            .unwrap();
        fresh.end(&mut turn.answer, "Hot.").await;
        assert_eq!(turn.question.parent.as_ref(), Some(&closed.id));
    }
    assert_eq!(history.chat(&chat).await.unwrap().messages.len(), 6);
}

#[tokio::test]
async fn an_edited_question_is_a_sibling_of_the_one_it_was() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let first = fresh.turn(&chat, "q1", "a1").await;
    fresh.turn(&chat, "q2", "a2").await;
    let edits = [
        ("q2\'", Position::After(first.answer.id.clone())),
        ("q1\'", Position::Beginning),
    ];
    for (text, position) in edits {
        let mut turn = history
            .begin_turn(&chat, &asked(text), &position, "", &new_answer())
            .await
            .unwrap();
        assert_eq!(turn.question.siblings.len(), 2);
        fresh.end(&mut turn.answer, "a").await;
    }
    assert_eq!(texts(&history.chat(&chat).await.unwrap().messages), ["q1\'", "a"]);
    let elsewhere = fresh.chat().await;
    let other = Position::After(first.answer.id);
    let refused = history
        .begin_turn(&elsewhere, &asked("q"), &other, "", &new_answer())
        .await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "a message of another chat");
}

#[tokio::test]
async fn parts_of_every_kind_are_kept_in_messages_drafts_and_exports() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let kept = history
        .add_attachment(&b"a cat".to_vec().into(), "image/png", (640, 480))
        .await
        .unwrap();
    let image = Content::Image {
        attachment: kept.sha256,
        media_type: "image/png".into(),
        width: 640,
        height: 480,
        alt: "a cat".into(),
    };
    let file = Content::File {
        excerpt: None,
        attachment: history.add_text("tea,3".into()).await.unwrap(),
        media_type: "text/csv".into(),
        name: "prices.csv".into(),
        bytes: u64::MAX >> 12,
    };
    let question = [words("What is this?"), image, file];
    history.set_draft(&chat, &question).await.unwrap();
    assert_eq!(history.chat(&chat).await.unwrap().draft, question);
    let mut turn = history
        .begin_turn(&chat, &question, &Position::End, "", &new_answer())
        .await
        .unwrap();
    let kept: Vec<Content> = turn.question.parts.iter().map(|part| part.content.clone()).collect();
    assert_eq!(kept, question);
    fresh.end(&mut turn.answer, "A cat.").await;
    let data = Content::Data {
        data: serde_json::json!({"degrees": 4, "list": [1.5, null]}),
    };
    let answer = fresh.calling(&chat, &["aaaaaaaaa"]).await;
    let result = history
        .add_tool_result(&answer.id, "aaaaaaaaa", std::slice::from_ref(&data))
        .await
        .unwrap();
    assert_eq!(result.parts[0].content, data);
    let markdown = history.export_markdown(&chat, &ExportedImages::new()).await.unwrap();
    for line in [
        "*[image: a cat]*",
        "*[file: prices.csv]*",
        "\"degrees\": 4",
        "Called `weather`:",
    ] {
        assert!(markdown.contains(line), "{line}: {markdown}");
    }
    let export = history.export_json(&chat, &ExportedImages::new()).await.unwrap();
    let messages: Vec<StoredMessage> = serde_json::from_value(export["messages"].clone()).unwrap();
    assert_eq!(messages, history.tree(&chat).await.unwrap());
}

#[tokio::test]
async fn a_deleted_turn_comes_back_although_its_calls_were_made_again() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let deleted = fresh.calling(&chat, &["call_0"]).await;
    history
        .add_tool_result(&deleted.id, "call_0", &asked("19 degrees"))
        .await
        .unwrap();
    let trashed = history.delete_message(&deleted.id, DeleteScope::Turn).await.unwrap();
    // New calls must differ from these ids, so those that may come back are among them.
    assert_eq!(history.call_ids(&chat).await.unwrap(), ["call_0"]);

    let again = fresh.calling(&chat, &["call_0"]).await;
    history
        .add_tool_result(&again.id, "call_0", &asked("4 degrees"))
        .await
        .unwrap();
    let restored = history.restore_chat(&trashed).await.unwrap();
    assert_eq!(restored.id, trashed, "it is a chat of its own");
    for (chat, result) in [(&chat, "4 degrees"), (&trashed, "19 degrees")] {
        let messages = history.chat(chat).await.unwrap().messages;
        assert_eq!(texts(&messages).last().map(String::as_str), Some(result));
    }
}
