//! The tree of messages: turns, siblings, any text, and many of them.

use std::time::Instant;

use api::{AnswerState, Position};
use history::{AnswerDelta, Error};
use protocol::{ErrorCode, Role};
use sqlx::Connection;

use crate::{asked, delta, new_answer, texts, Fresh, WRITER};

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
