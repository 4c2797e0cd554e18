//! Answers while they are written: their growth, their end, and the process that owns them.

use std::time::Duration;

use api::{AnswerState, ChatSettings, Part, Position};
use history::{AnswerDelta, ControlRequests, Error, PartDelta};
use protocol::{
    Content, EndedBy, ErrorCode, FinishReason, Notice, NoticeCode, SpeculationUsage, Thinking, Timing, ToolCall, Usage,
};

use crate::{asked, delta, new_answer, part, words, Fresh, OWNER, WRITER};

#[tokio::test]
async fn growth_adds_to_the_end_and_starts_new_parts() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    let thought = |text: &str, ended_at| PartDelta {
        position: 0,
        content: Content::thinking(text),
        started_at: 10,
        ended_at,
    };
    let call = ToolCall {
        id: "1".into(),
        name: "weather".into(),
        arguments: serde_json::json!({"city": "Oslo\u{0}"}),
    };
    let notice = Notice::new(NoticeCode::ThoughtWhileOff, "it's a notice");
    let all = [
        AnswerDelta {
            parts: vec![thought("ca", 10)],
            tokens: vec![1],
            model_revision: Some("abc".into()),
            ..AnswerDelta::default()
        },
        AnswerDelta {
            parts: vec![thought("rry 猫", 12)],
            tokens: vec![u32::MAX],
            template_hash: Some("def".into()),
            ..AnswerDelta::default()
        },
        AnswerDelta::default(),
        AnswerDelta {
            parts: vec![
                thought("", 13),
                PartDelta {
                    position: 1,
                    content: words("It is "),
                    started_at: 20,
                    ended_at: 21,
                },
                PartDelta {
                    position: 2,
                    content: Content::ToolCall { call: call.clone() },
                    started_at: 22,
                    ended_at: 22,
                },
            ],
            notices: vec![notice.clone()],
            ..AnswerDelta::default()
        },
    ];
    for delta in &all {
        assert_eq!(
            fresh.history.append(&answer, WRITER, delta).await.unwrap(),
            ControlRequests::default()
        );
    }
    let message = fresh.history.message(&answer).await.unwrap();
    let parts = [
        Part {
            content: Content::thinking("carry 猫"),
            started_at: 10,
            ended_at: 13,
        },
        Part {
            content: words("It is "),
            started_at: 20,
            ended_at: 21,
        },
        Part {
            content: Content::ToolCall { call },
            started_at: 22,
            ended_at: 22,
        },
    ];
    assert_eq!(message.parts, parts);
    assert_eq!(
        (message.model_revision.as_deref(), message.template_hash.as_deref()),
        (Some("abc"), Some("def"))
    );
    assert_eq!(message.notices, [notice]);
    assert_eq!(fresh.history.tokens(&answer).await.unwrap(), [1, u32::MAX]);
}

#[tokio::test]
async fn token_ids_of_all_bytes_survive_being_added() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    let ids: Vec<u32> = (0..=255u32)
        .map(|byte| u32::from_le_bytes([byte as u8, 0, 255 - byte as u8, byte as u8]))
        .collect();
    for chunk in ids.chunks(7) {
        fresh.history.append(&answer, WRITER, &delta("x", chunk)).await.unwrap();
    }
    assert_eq!(fresh.history.tokens(&answer).await.unwrap(), ids);
}

#[tokio::test]
async fn the_end_replaces_the_growth_and_keeps_every_field() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let begun = new_answer();
    let begun = history::NewAnswer {
        settings: ChatSettings {
            thinking: Some(Thinking::High),
            thinking_budget: Some(20),
            ..ChatSettings::default()
        },
        ..begun
    };
    let mut answer = fresh
        .history
        .begin_turn(&chat, &asked("question"), &Position::End, "", &begun)
        .await
        .unwrap()
        .answer;
    fresh
        .history
        .append(&answer.id, WRITER, &delta("partly", &[1, 2]))
        .await
        .unwrap();
    answer.parts = vec![Part {
        content: words("partly and wholly"),
        started_at: 5,
        ended_at: 6,
    }];
    answer.state = AnswerState::Failed;
    answer.finished_at = Some(77);
    answer.model_revision = Some("abc".into());
    answer.template_hash = Some("def".into());
    answer.finish_reason = Some(FinishReason::Length);
    answer.ended_by = Some(EndedBy::StopToken {
        token: 106,
        text: "<turn|>".into(),
        sources: vec!["generation_config.eos_token_id".into()],
    });
    answer.thinking_tokens = Some(5);
    let error = protocol::Error::new(ErrorCode::ContextFull, "too 'long'");
    answer.error = Some(error.with("prompt", 5000u32).with("model", "a/b"));
    answer.notices = vec![Notice::new(NoticeCode::Repetition, "b")];
    answer.usage = Some(Usage {
        prompt_tokens: 1,
        cached_tokens: 2,
        prefilled_tokens: 3,
        completion_tokens: 4,
        thinking_tokens: Some(5),
        speculation: Some(SpeculationUsage {
            draft_tokens: 6,
            accepted_draft_tokens: 3,
            decode_steps: 1,
        }),
    });
    answer.timing = Some(Timing {
        load_ms: 0.1,
        first_token_ms: 2.5,
        prefill_tokens_per_second: 1e9,
        decode_tokens_per_second: 1.0 / 3.0,
    });
    answer.thinking_ended = true;
    assert_eq!(fresh.history.finish(&answer, WRITER, &[1, 2, 3]).await.unwrap(), answer);
    assert_eq!(fresh.history.message(&answer.id).await.unwrap(), answer);
    let settings = answer.settings.as_ref().unwrap();
    assert_eq!(
        (settings.model.as_deref(), settings.thinking_budget),
        (Some("pebble"), Some(20))
    );
    assert_eq!(fresh.history.tokens(&answer.id).await.unwrap(), [1, 2, 3]);
    assert!(matches!(
        fresh.history.append(&answer.id, WRITER, &delta("late", &[])).await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn only_an_answer_whose_owner_stayed_silent_is_interrupted() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    fresh
        .history
        .append(&answer, WRITER, &delta("half", &[1]))
        .await
        .unwrap();
    let seen = fresh.history.running().await.unwrap().pop().unwrap();
    assert_eq!((&seen.id, &seen.chat, seen.owner.as_str()), (&answer, &chat, WRITER));
    tokio::time::sleep(Duration::from_millis(2)).await;
    fresh
        .history
        .append(&answer, WRITER, &AnswerDelta::default())
        .await
        .unwrap();
    assert!(!fresh.history.interrupt(&seen).await.unwrap());
    let seen = fresh.history.running().await.unwrap().pop().unwrap();
    assert!(fresh.history.interrupt(&seen).await.unwrap());
    let message = fresh.history.message(&answer).await.unwrap();
    assert_eq!(
        (message.state, message.text().as_str()),
        (AnswerState::Interrupted, "half")
    );
    assert!(fresh.history.running().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_another_process_took_over_is_written_by_that_one_alone() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    fresh
        .history
        .append(&answer, WRITER, &delta("half", &[1]))
        .await
        .unwrap();
    let mut whole = fresh.history.message(&answer).await.unwrap();
    let seen = fresh.history.running().await.unwrap().pop().unwrap();
    assert!(fresh.history.interrupt(&seen).await.unwrap());
    fresh.history.continue_answer(&answer, OWNER).await.unwrap();
    let late = fresh.history.append(&answer, WRITER, &delta("late", &[2])).await;
    assert!(matches!(late, Err(Error::NotFound(_))), "{late:?}");
    whole.state = AnswerState::Complete;
    let late = fresh.history.finish(&whole, WRITER, &[1, 2]).await;
    assert!(matches!(late, Err(Error::NotFound(_))), "{late:?}");
    fresh
        .history
        .append(&answer, OWNER, &delta(" and half", &[3]))
        .await
        .unwrap();
    assert_eq!(fresh.history.message(&answer).await.unwrap().text(), "half and half");
    assert_eq!(fresh.history.tokens(&answer).await.unwrap(), [1, 3]);
}

#[tokio::test]
async fn an_answer_whose_owner_was_only_slow_is_stored_whole() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    let seen = fresh.history.running().await.unwrap().pop().unwrap();
    assert!(fresh.history.interrupt(&seen).await.unwrap());
    let mut whole = fresh.history.message(&answer).await.unwrap();
    (whole.parts, whole.state) = (vec![part(words("all of it"))], AnswerState::Complete);
    let stored = fresh.history.finish(&whole, WRITER, &[1, 2]).await.unwrap();
    assert_eq!(
        (stored.state, stored.text().as_str()),
        (AnswerState::Complete, "all of it")
    );
}

#[tokio::test]
async fn a_stop_that_another_process_asks_for_reaches_the_owner() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    assert_eq!(
        fresh
            .history
            .append(&answer, WRITER, &AnswerDelta::default())
            .await
            .unwrap(),
        ControlRequests::default()
    );
    let other = history::History::open(&fresh.path()).await.unwrap();
    other.request_stop(&answer).await.unwrap();
    let requests = fresh
        .history
        .append(&answer, WRITER, &AnswerDelta::default())
        .await
        .unwrap();
    assert_eq!((requests.stop, requests.answer_now), (true, false));
    other.request_answer_now(&answer).await.unwrap();
    assert!(
        fresh
            .history
            .append(&answer, WRITER, &AnswerDelta::default())
            .await
            .unwrap()
            .answer_now
    );
}
