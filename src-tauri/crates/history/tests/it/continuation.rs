//! Answers that are continued in their own row.

use api::{AnswerState, Position, StoredMessage};
use history::{AnswerDelta, ControlRequests, Error, History, PartDelta};
use protocol::{Content, EndedBy, ErrorCode, FinishReason, Notice, NoticeCode, Usage};

use crate::{asked, delta, new_answer, part, texts, words, Fresh, OWNER, WRITER};

/// A question and an answer that ended in this state, with the words `half` and the tokens 1 and 2.
async fn ended(fresh: &Fresh, chat: &str, state: AnswerState, finish_reason: Option<FinishReason>) -> StoredMessage {
    let mut answer = fresh
        .history
        .begin_turn(chat, &asked("question"), &Position::End, "", &new_answer())
        .await
        .unwrap()
        .answer;
    fresh
        .history
        .append(&answer.id, WRITER, &delta("half", &[1, 2]))
        .await
        .unwrap();
    fresh.history.request_stop(&answer.id).await.unwrap();
    fresh.history.request_answer_now(&answer.id).await.unwrap();
    answer = fresh.history.message(&answer.id).await.unwrap();
    answer.state = state;
    answer.finish_reason = finish_reason;
    answer.finished_at = Some(7);
    answer.error = (state == AnswerState::Failed).then(|| protocol::Error::new(ErrorCode::Engine, "broken"));
    answer.usage = Some(Usage {
        thinking_tokens: Some(2),
        ..Usage::default()
    });
    let answer = fresh.history.finish(&answer, WRITER, &[1, 2]).await.unwrap();
    assert!(answer.continuable, "{answer:?}");
    answer
}

fn whole(parts: Vec<Content>, tokens: &[u32]) -> AnswerDelta {
    let part = |(position, content)| PartDelta {
        position,
        content,
        started_at: 30,
        ended_at: 40,
    };
    AnswerDelta {
        replaces: true,
        parts: parts.into_iter().enumerate().map(part).collect(),
        tokens: tokens.to_vec(),
        thinking_tokens: Some(3),
        ..AnswerDelta::default()
    }
}

#[tokio::test]
async fn an_answer_that_ended_early_is_continued_with_all_it_holds() {
    let early = [
        (AnswerState::Stopped, Some(FinishReason::Cancelled)),
        (AnswerState::Interrupted, None),
        (AnswerState::Failed, None),
        (AnswerState::Complete, Some(FinishReason::Length)),
    ];
    for (state, finish_reason) in early {
        let fresh = Fresh::new().await;
        let chat = fresh.chat().await;
        let before = ended(&fresh, &chat, state, finish_reason).await;
        let now = fresh.history.continue_answer(&before.id, OWNER).await.unwrap();
        let expected = StoredMessage {
            state: AnswerState::Streaming,
            finish_reason: None,
            ended_by: None,
            error: None,
            finished_at: None,
            continuable: false,
            ..before
        };
        assert_eq!(now, expected);
        let running = fresh.history.running().await.unwrap();
        assert_eq!(
            (running[0].id.as_str(), running[0].owner.as_str()),
            (now.id.as_str(), OWNER)
        );
        // Requests to the last writer do not hold for this one.
        let requests = fresh
            .history
            .append(&now.id, OWNER, &delta(" and half", &[3]))
            .await
            .unwrap();
        assert_eq!(requests, ControlRequests::default());
        assert_eq!(fresh.history.message(&now.id).await.unwrap().text(), "half and half");
        assert_eq!(fresh.history.tokens(&now.id).await.unwrap(), [1, 2, 3]);
        // A second writer is refused, as is a second answer.
        assert!(matches!(
            fresh.history.continue_answer(&now.id, OWNER).await,
            Err(Error::CannotContinue)
        ));
        let question = now.parent.unwrap();
        assert!(matches!(
            fresh.history.begin_answer(&question, &new_answer()).await,
            Err(Error::Busy)
        ));
    }
}

#[tokio::test]
async fn only_the_last_early_ended_answer_of_the_branch_in_view_is_continued() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let refused =
        |result: Result<StoredMessage, Error>| assert!(matches!(result, Err(Error::CannotContinue)), "{result:?}");
    let stopped = ended(&fresh, &chat, AnswerState::Stopped, Some(FinishReason::Cancelled)).await;
    let question = stopped.parent.clone().unwrap();
    refused(fresh.history.continue_answer(&question, OWNER).await);
    refused(fresh.history.continue_answer("nothing", OWNER).await);
    let sibling = fresh.sibling(&question, "whole").await;
    refused(fresh.history.continue_answer(&sibling.id, OWNER).await);
    refused(fresh.history.continue_answer(&stopped.id, OWNER).await);
    fresh.history.show_branch(&stopped.id).await.unwrap();
    fresh.history.trash_chat(&chat).await.unwrap();
    refused(fresh.history.continue_answer(&stopped.id, OWNER).await);
    fresh.history.restore_chat(&chat).await.unwrap();
    // Another answer of the chat is being written, out of sight.
    let running = fresh.history.begin_answer(&question, &new_answer()).await.unwrap();
    fresh.history.show_branch(&stopped.id).await.unwrap();
    assert!(matches!(
        fresh.history.continue_answer(&stopped.id, OWNER).await,
        Err(Error::Busy)
    ));
    assert_eq!(
        fresh.history.message(&stopped.id).await.unwrap().state,
        AnswerState::Stopped
    );
    fresh.history.finish(&running, WRITER, &[]).await.unwrap();
}

#[tokio::test]
async fn an_answer_is_continuable_if_it_ended_early_with_words_and_more_could_come() {
    let fresh = Fresh::new().await;
    let error = |code| Some(protocol::Error::new(code, "failed"));
    let length = |rule| (AnswerState::Complete, Some(FinishReason::Length), Some(rule), None);
    let cases = [
        (
            true,
            "half",
            (AnswerState::Stopped, Some(FinishReason::Cancelled), None, None),
        ),
        (true, "half", (AnswerState::Interrupted, None, None, None)),
        (
            true,
            "half",
            (AnswerState::Failed, None, None, error(ErrorCode::Engine)),
        ),
        (true, "half", length(EndedBy::TokenLimit)),
        (
            false,
            "",
            (AnswerState::Stopped, Some(FinishReason::Cancelled), None, None),
        ),
        (
            false,
            "half",
            (AnswerState::Failed, None, None, error(ErrorCode::ContextFull)),
        ),
        (
            false,
            "half",
            (AnswerState::Failed, None, None, error(ErrorCode::BadRequest)),
        ),
        (false, "half", length(EndedBy::Context)),
        (true, "half", length(EndedBy::Repetition)),
        (
            false,
            "half",
            (AnswerState::Complete, Some(FinishReason::Stop), None, None),
        ),
    ];
    for (continuable, text, (state, finish_reason, ended_by, error)) in cases {
        let chat = fresh.chat().await;
        let mut answer = fresh
            .history
            .begin_turn(&chat, &asked("question"), &Position::End, "", &new_answer())
            .await
            .unwrap()
            .answer;
        assert!(!answer.continuable, "it is being written");
        if !text.is_empty() {
            answer.parts = vec![part(words(text))];
        }
        (answer.state, answer.finish_reason, answer.ended_by, answer.error) = (state, finish_reason, ended_by, error);
        let answer = fresh.history.finish(&answer, WRITER, &[]).await.unwrap();
        assert_eq!(answer.continuable, continuable, "{answer:?}");
        assert_eq!(
            fresh.history.chat(&chat).await.unwrap().messages[1].continuable,
            continuable
        );
        assert_eq!(
            fresh.history.continue_answer(&answer.id, OWNER).await.is_ok(),
            continuable,
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn what_the_tokens_say_replaces_what_was_stored() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = ended(&fresh, &chat, AnswerState::Interrupted, None).await.id;
    fresh.history.continue_answer(&answer, OWNER).await.unwrap();
    let thought = Content::thinking("ha");
    let mut replacing = whole(vec![thought.clone(), words("l")], &[1, 2, 3]);
    replacing.notices = vec![Notice::new(NoticeCode::Repetition, "b")];
    fresh.history.append(&answer, OWNER, &replacing).await.unwrap();
    let more = PartDelta {
        position: 1,
        content: words("f"),
        started_at: 30,
        ended_at: 50,
    };
    let more = AnswerDelta {
        parts: vec![more],
        tokens: vec![4],
        ..AnswerDelta::default()
    };
    fresh.history.append(&answer, OWNER, &more).await.unwrap();
    let stored = fresh.history.message(&answer).await.unwrap();
    let kinds: Vec<Content> = stored.parts.iter().map(|part| part.content.clone()).collect();
    assert_eq!(kinds, [thought, words("lf")]);
    assert_eq!((stored.parts[1].started_at, stored.parts[1].ended_at), (30, 50));
    assert_eq!(
        stored.thinking_tokens,
        Some(3),
        "a delta that counted none keeps the count"
    );
    assert_eq!(fresh.history.tokens(&answer).await.unwrap(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_kill_while_an_answer_is_continued_leaves_it_as_it_was_or_as_it_is() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = ended(&fresh, &chat, AnswerState::Stopped, Some(FinishReason::Cancelled))
        .await
        .id;
    let log_path = fresh.path().with_extension("sqlite-wal");
    let begun = std::fs::metadata(&log_path).unwrap().len() as usize;
    fresh.history.continue_answer(&answer, OWNER).await.unwrap();
    // Long enough for several pages, so that a cut can fall between deleting the old parts and storing the new ones.
    let long = "half and ".repeat(4000);
    fresh
        .history
        .append(&answer, OWNER, &whole(vec![words(&long)], &[1, 2, 3]))
        .await
        .unwrap();
    let length = std::fs::metadata(&log_path).unwrap().len() as usize;
    let log = std::fs::read(&log_path).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for cut in (begun..=length).step_by(1001).chain([length]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        std::fs::copy(fresh.path(), &path).unwrap();
        std::fs::write(path.with_extension("sqlite-wal"), &log[..cut]).unwrap();
        let history = History::open(&path).await.unwrap();
        let message = history.message(&answer).await.unwrap();
        let tokens = history.tokens(&answer).await.unwrap();
        match message.text() {
            text if text == "half" => assert_eq!(tokens, [1, 2]),
            text => assert!(text == long && tokens == [1, 2, 3], "{text} {tokens:?}"),
        }
        seen.insert((format!("{:?}", message.state), tokens.len()));
    }
    let expected = [
        ("Stopped".to_owned(), 2),
        ("Streaming".into(), 2),
        ("Streaming".into(), 3),
    ];
    assert!(seen.iter().eq(&expected), "{seen:?}");
}

/// A file that version 1 wrote, with a finished answer and one whose process was killed.
const VERSION_1: &[u8] = include_bytes!("version_1.sqlite");

#[tokio::test]
async fn a_file_of_version_1_opens_with_all_it_holds_and_its_answers_are_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::write(&path, VERSION_1).unwrap();
    let history = History::open(&path).await.unwrap();
    let chats = history.chats().await.unwrap();
    assert_eq!(chats.len(), 2);
    let view = history.chat(&chats[1].id).await.unwrap();
    assert_eq!(texts(&view.messages), ["What is 347 + 589?", "347 + 589 = **936**"]);
    assert_eq!(view.settings.thinking_budget, None);
    let whole = &view.messages[1];
    assert_eq!(
        (
            &whole.ended_by,
            whole.settings.as_ref().unwrap().thinking_budget,
            whole.thinking_tokens
        ),
        (&None, None, None)
    );
    assert_eq!(whole.usage.unwrap().thinking_tokens, Some(71));

    let running = history.running().await.unwrap().pop().unwrap();
    assert!(history.interrupt(&running).await.unwrap());
    let tokens = history.tokens(&running.id).await.unwrap();
    let before = history.continue_answer(&running.id, OWNER).await.unwrap();
    let said = before.text();
    assert!(
        said.starts_with("1, 2, 3, ") && tokens.len() == 117,
        "{said} {}",
        tokens.len()
    );
    let mut more = delta("and so on", &[9]);
    more.thinking_tokens = Some(0);
    history.append(&running.id, OWNER, &more).await.unwrap();
    let now = history.message(&running.id).await.unwrap();
    assert_eq!((now.text(), now.thinking_tokens), (format!("{said}and so on"), Some(0)));
    assert_eq!(history.tokens(&running.id).await.unwrap().len(), 118);
    // Opened again it is not changed twice.
    history.close().await;
    assert_eq!(History::open(&path).await.unwrap().chats().await.unwrap().len(), 2);
}
