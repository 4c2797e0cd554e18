//! The tree, and answers while they are written.

use std::time::{Duration, Instant};

use api::{AnswerState, ChatSettings, Part, Position};
use history::{AnswerDelta, ControlRequests, Error, PartDelta};
use protocol::{
    Content, EndedBy, ErrorCode, FinishReason, Notice, NoticeCode, Role, SpeculationUsage, Thinking, Timing, ToolCall,
    Usage,
};
use sqlx::Connection;

use crate::{asked, delta, new_answer, part, texts, words, Fresh, OWNER, WRITER};

#[tokio::test]
async fn a_turn_stores_the_question_and_an_empty_answer_below_it() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.history.set_draft(&chat, &asked("What is")).await.unwrap();
    let turn = fresh
        .history
        .begin_turn(
            &chat,
            &asked(" What is 1+1? "),
            &Position::End,
            "What is 1+1?",
            &new_answer(),
        )
        .await
        .unwrap();
    assert_eq!(turn.question.text(), " What is 1+1? ");
    assert_eq!(
        (turn.question.role, turn.question.state, turn.question.parent),
        (Role::User, AnswerState::Complete, None)
    );
    assert_eq!(
        (turn.answer.role, turn.answer.state),
        (Role::Assistant, AnswerState::Streaming)
    );
    assert_eq!(turn.answer.parent.as_ref(), Some(&turn.question.id));
    assert!(turn.answer.parts.is_empty());
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!((view.summary.title.as_str(), view.draft), ("What is 1+1?", vec![]));
    assert_eq!(view.messages.last(), Some(&turn.answer));
}

#[tokio::test]
async fn the_title_is_that_of_the_first_question() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "first", "a").await;
    fresh.turn(&chat, "second", "b").await;
    assert_eq!(fresh.history.chat(&chat).await.unwrap().summary.title, "first");
}

#[tokio::test]
async fn a_chat_has_one_running_answer_at_most() {
    let fresh = Fresh::new().await;
    let (chat, other) = (fresh.chat().await, fresh.chat().await);
    let mut turn = fresh
        .history
        .begin_turn(&chat, &asked("question"), &Position::End, "", &new_answer())
        .await
        .unwrap();
    assert!(matches!(
        fresh
            .history
            .begin_turn(&chat, &asked("more"), &Position::End, "", &new_answer())
            .await,
        Err(Error::Busy)
    ));
    assert!(matches!(
        fresh.history.begin_answer(&turn.question.id, &new_answer()).await,
        Err(Error::Busy)
    ));
    // Nothing of the refused question is left.
    assert_eq!(texts(&fresh.history.tree(&chat).await.unwrap()), ["question", ""]);
    fresh.turn(&other, "question", "answer").await;
    fresh.end(&mut turn.answer, "answer").await;
    fresh.turn(&chat, "more", "answer").await;
}

#[tokio::test]
async fn two_answers_may_be_written_at_once_and_nothing_beside_them() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let both = [&new_answer(), &new_answer()];
    let begun = fresh
        .history
        .begin_turn_with_two_answers(&chat, &asked("question"), &Position::End, "", both)
        .await;
    let mut turn = begun.unwrap();
    let [first, second] = turn.answers.clone();
    let ids = vec![first.id.clone(), second.id.clone()];
    assert_eq!((&first.siblings, &second.siblings), (&ids, &ids));
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!(view.messages.last().unwrap().id, first.id, "the first is looked at");
    let beside = |view: &api::ChatView| view.beside.iter().map(|message| message.id.clone()).collect::<Vec<_>>();
    assert_eq!(beside(&view), std::slice::from_ref(&second.id));

    // As long as one of them is written, nothing else begins: not after the first alone has ended either.
    let busy = async || {
        let asked = fresh
            .history
            .begin_turn(&chat, &asked("more"), &Position::End, "", &new_answer())
            .await;
        let again = fresh.history.begin_answer(&turn.question.id, &new_answer()).await;
        let two = fresh
            .history
            .begin_turn_with_two_answers(&chat, &crate::asked("more"), &Position::End, "", both)
            .await;
        assert!(matches!(
            (asked, again, two),
            (Err(Error::Busy), Err(Error::Busy), Err(Error::Busy))
        ));
    };
    busy().await;
    fresh.end(&mut turn.answers[0], "a").await;
    busy().await;
    assert!(matches!(fresh.history.delete_all_chats().await, Err(Error::Busy)));
    fresh.end(&mut turn.answers[1], "b").await;
    assert!(beside(&fresh.history.chat(&chat).await.unwrap()).is_empty());
    fresh.turn(&chat, "more", "answer").await;
    assert_eq!(fresh.history.show_branch(&second.id).await.unwrap(), chat);
    assert_eq!(
        texts(&fresh.history.chat(&chat).await.unwrap().messages),
        ["question", "b"]
    );
}

#[tokio::test]
async fn another_answer_is_a_sibling_and_nothing_is_overwritten() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let first = fresh.turn(&chat, "q1", "a1").await;
    fresh.turn(&chat, "q2", "a2").await;
    let sibling = fresh.sibling(&first.question.id, "a1'").await;
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!(texts(&view.messages), ["q1", "a1'"]);
    let siblings = vec![first.answer.id.clone(), sibling.id.clone()];
    assert_eq!(view.messages[1].siblings, siblings);
    assert_eq!(
        fresh.history.message(&first.answer.id).await.unwrap().siblings,
        siblings
    );
    assert_eq!(
        fresh.history.message(&first.question.id).await.unwrap().siblings,
        std::slice::from_ref(&first.question.id)
    );

    assert_eq!(fresh.history.show_branch(&first.answer.id).await.unwrap(), chat);
    assert_eq!(
        texts(&fresh.history.chat(&chat).await.unwrap().messages),
        ["q1", "a1", "q2", "a2"]
    );
    fresh.history.show_branch(&sibling.id).await.unwrap();
    assert_eq!(texts(&fresh.history.chat(&chat).await.unwrap().messages), ["q1", "a1'"]);
    // Of the whole tree the newest end is shown.
    fresh.turn(&chat, "q3", "a3").await;
    fresh.history.show_branch(&first.question.id).await.unwrap();
    assert_eq!(
        texts(&fresh.history.chat(&chat).await.unwrap().messages),
        ["q1", "a1'", "q3", "a3"]
    );
}

#[tokio::test]
async fn first_questions_of_different_chats_are_no_siblings() {
    let fresh = Fresh::new().await;
    let (one, two) = (fresh.chat().await, fresh.chat().await);
    let turn = fresh.turn(&one, "q", "a").await;
    fresh.turn(&two, "q", "a").await;
    assert_eq!(turn.question.siblings, std::slice::from_ref(&turn.question.id));
}

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
async fn an_error_that_only_a_later_version_knows_still_says_what_happened() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.turn(&chat, "question", "half").await.answer;
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    let later = r#"{"code": "too_warm", "arguments": {"degrees": 99}, "message": "too warm to think", "cause": "sun"}"#;
    sqlx::query("UPDATE messages SET state = 'failed', error = ?1 WHERE id = ?2")
        .bind(later)
        .bind(&answer.id)
        .execute(&mut file)
        .await
        .unwrap();
    let expected = protocol::Error::new(ErrorCode::Engine, "too warm to think").with("degrees", 99u32);
    assert_eq!(fresh.history.message(&answer.id).await.unwrap().error, Some(expected));
}

#[tokio::test]
async fn any_text_is_stored_as_it_is() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let long = "Ünïcödé 猫🐈‍⬛ ".repeat(60_000);
    assert!(long.len() > 1_000_000);
    let hostile = [
        "'; DROP TABLE messages; --",
        "\"\\%_?1:a$b",
        "NUL\u{0}in\u{0}side",
        "\u{202e}\u{feff}\u{fffd}e\u{301}",
        "\r\n\t ",
        &long,
    ];
    for text in hostile {
        let mut turn = fresh
            .history
            .begin_turn(&chat, &asked(text), &Position::End, text, &new_answer())
            .await
            .unwrap();
        assert_eq!(turn.question.text(), text);
        fresh
            .history
            .append(&turn.answer.id, WRITER, &delta(text, &[]))
            .await
            .unwrap();
        fresh
            .history
            .append(&turn.answer.id, WRITER, &delta(text, &[]))
            .await
            .unwrap();
        assert_eq!(
            fresh.history.message(&turn.answer.id).await.unwrap().text(),
            text.repeat(2)
        );
        fresh.end(&mut turn.answer, text).await;
    }
    let messages = fresh.history.chat(&chat).await.unwrap().messages;
    assert!(texts(&messages).iter().eq(hostile.iter().flat_map(|text| [text, text])));
}

#[tokio::test]
async fn a_chat_of_two_thousand_messages_is_read_by_few_queries_and_purged() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    for i in 0..1000 {
        fresh.turn(&chat, &format!("question {i}"), "answer ").await;
    }
    let messages = fresh.history.chat(&chat).await.unwrap().messages;
    assert_eq!(messages.len(), 2000);
    assert_eq!(messages[1998].text(), "question 999");
    assert!(messages
        .windows(2)
        .all(|pair| pair[1].parent.as_ref() == Some(&pair[0].id)));
    // Compared with a query per message, several times because the computer does other things meanwhile.
    let mut shares = Vec::new();
    while shares.last().is_none_or(|share| *share > 0.5) {
        assert!(shares.len() < 20, "of the time of a query per message: {shares:?}");
        let begun = Instant::now();
        fresh.history.chat(&chat).await.unwrap();
        let read = begun.elapsed();
        let begun = Instant::now();
        for message in &messages {
            fresh.history.message(&message.id).await.unwrap();
        }
        shares.push(read.div_duration_f64(begun.elapsed()));
    }
    fresh.history.trash_chat(&chat).await.unwrap();
    let begun = Instant::now();
    assert_eq!(fresh.history.purge_trash(i64::MAX).await.unwrap(), 1);
    println!(
        "report: 2 000 messages are read in {shares:.2?} of the time of a query per message, and purged in {:?}",
        begun.elapsed()
    );
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

#[tokio::test]
async fn an_unknown_message_is_not_found() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let chat = fresh.chat().await;
    let mut unknown = fresh.turn(&chat, "q", "a").await.answer;
    unknown.id = "nothing".into();
    let results = [
        history.message("nothing").await.map(drop),
        history.branch("nothing").await.map(drop),
        history.begin_answer("nothing", &new_answer()).await.map(drop),
        history
            .append("nothing", WRITER, &AnswerDelta::default())
            .await
            .map(drop),
        history.finish(&unknown, WRITER, &[]).await.map(drop),
        history.request_stop("nothing").await,
        history.request_answer_now("nothing").await,
        history.show_branch("nothing").await.map(drop),
        history.tokens("nothing").await.map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::NotFound(_))), "{result:?}");
    }
}
