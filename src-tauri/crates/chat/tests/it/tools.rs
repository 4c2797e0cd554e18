//! Turns with tools: an answer that calls, results, the next answer of the same turn.

use api::{AnswerState, Position};
use protocol::{Content, EngineEvent, ErrorCode, FinishReason, Role, ToolCall};

use crate::{done, text, Harness};

/// A call as an engine tells it that counts from 0 in every answer.
fn call(id: &str) -> EngineEvent {
    let call = ToolCall {
        id: id.into(),
        name: "weather".into(),
        arguments: serde_json::json!({}),
    };
    EngineEvent::Delta {
        content: Content::ToolCall { call },
        tokens: vec![5],
        thinking_tokens: Some(0),
    }
}

impl Harness {
    /// A question whose answer calls these; returns the answer and the ids that its calls got.
    async fn calling(&self, chat: &str, ids: &[&str]) -> (String, Vec<String>) {
        let (message, job) = self.ask(chat, "Weather?").await;
        ids.iter().for_each(|id| job.events.send(call(id)));
        job.events.send(done(FinishReason::ToolCalls));
        let answer = self.end(&message).await;
        let ids = answer.parts.iter().map(|part| match &part.content {
            Content::ToolCall { call } => call.id.clone(),
            other => panic!("{other:?}"),
        });
        (message, ids.collect())
    }
}

#[tokio::test]
async fn a_turn_goes_from_the_calls_through_their_results_to_the_next_answer() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (answer, ids) = harness.calling(&chat, &["call_0", "call_1"]).await;
    let add = |call: usize, words: &str| {
        let (chats, answer, call, content) = (
            harness.chat.clone(),
            answer.clone(),
            ids[call].clone(),
            [Content::text(words)],
        );
        async move { chats.answers().add_tool_result(&answer, &call, &content).await }
    };
    let second = add(1, "4 degrees").await.unwrap();
    let error = harness
        .chat
        .answers()
        .answer_tool_results(&second.id)
        .await
        .unwrap_err();
    assert!(
        error.code == ErrorCode::BadRequest && error.message.contains("no result"),
        "{error}"
    );
    let first = add(0, "19 degrees").await.unwrap();
    assert_eq!(add(0, "again").await.unwrap_err().code, ErrorCode::BadRequest);

    let view = harness.chat.answers().answer_tool_results(&first.id).await.unwrap();
    let next = view.messages.last().unwrap().id.clone();
    let job = harness.job().await;
    let roles: Vec<Role> = job.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    let results = &job.request.messages[2..];
    assert_eq!(results[1].tool_call_id.as_ref(), Some(&ids[0]));
    assert_eq!(results[1].name.as_deref(), Some("weather"));
    job.events.send(text("Warm.", 1));
    job.events.send(done(FinishReason::Stop));
    assert_eq!(harness.end(&next).await.state, AnswerState::Complete);

    // Another answer begins at the question again, whichever row of the turn it is asked of.
    let question = view.messages[0].id.clone();
    for row in [&next, &first.id, &answer, &question] {
        let view = harness.chat.answers().regenerate(row, None).await.unwrap();
        assert_eq!(
            (view.messages.len(), view.messages[1].parent.as_ref()),
            (2, Some(&question))
        );
        harness.job().await.events.send(done(FinishReason::Stop));
        harness.end(&view.messages[1].id).await;
    }
    assert_eq!(
        harness
            .chat
            .answers()
            .answer_tool_results(&answer)
            .await
            .unwrap_err()
            .code,
        ErrorCode::BadRequest
    );
}

#[tokio::test]
async fn call_ids_are_unique_in_a_chat_whatever_the_engine_says() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (_, mut all) = harness.calling(&chat, &["call_0", "call_0"]).await;
    let (_, more) = harness.calling(&chat, &["call_0", "abcdefghi"]).await;
    assert_eq!(
        (all[0].as_str(), more[1].as_str()),
        ("call_0", "abcdefghi"),
        "an id that is new is kept"
    );
    all.extend(more);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
    assert!(all
        .iter()
        .filter(|id| *id != "call_0")
        .all(|id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())));
}

#[tokio::test]
async fn a_question_that_does_not_wait_for_a_result_tells_the_model_so() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (answer, ids) = harness.calling(&chat, &["call_0"]).await;
    let (_, job) = harness.ask(&chat, "Never mind.").await;
    let [_, _, result, question] = &job.request.messages[..] else {
        panic!("{:?}", job.request.messages)
    };
    assert_eq!(
        (result.role, result.text_with_placeholders().as_str()),
        (Role::Tool, history::NOT_RUN)
    );
    assert_eq!(question.text_with_placeholders(), "Never mind.");
    let late = harness
        .chat
        .answers()
        .add_tool_result(&answer, &ids[0], &[Content::text("late")])
        .await;
    assert_eq!(late.unwrap_err().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_question_holds_what_a_person_can_send() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let image = harness
        .chat
        .files()
        .add_image_part(crate::images::png(), "a cat")
        .await
        .unwrap();
    for content in [
        vec![],
        vec![Content::text(" ")],
        vec![Content::text("a"), Content::thinking("b")],
    ] {
        let error = harness
            .chat
            .answers()
            .send(&chat, &content, &Position::End)
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest);
    }
    harness
        .chat
        .answers()
        .send(&chat, std::slice::from_ref(&image), &Position::End)
        .await
        .unwrap();
    let job = harness.job().await;
    assert_eq!(job.request.messages[0].content, [image]);
    assert_eq!(
        harness.chat.chats().get(&chat).await.unwrap().summary.title,
        "[image: a cat]"
    );
}
