//! Answers that are continued.

use std::time::Duration;

use api::{AnswerBody, AnswerEvent, AnswerState, ChatSettings, StoredMessage};
use history::History;
use protocol::{
    fake::FakeJob, AnswerPrefix, Content, EngineEvent, Error, ErrorCode, FinishReason, Notice, NoticeCode, Role,
};
use sqlx::Connection;
use tokio::time::sleep;

use crate::{all, done, finished, next, open, text, thought, Harness};

fn started(revision: &str) -> EngineEvent {
    EngineEvent::Started {
        prompt_tokens: Some(28),
        model_revision: Some(revision.into()),
        template_hash: Some("def".into()),
    }
}

fn continued(parts: Vec<Content>, tokens: Vec<u32>) -> EngineEvent {
    EngineEvent::Continued {
        parts,
        notices: vec![],
        tokens,
    }
}

fn thinking(text: &str) -> Content {
    Content::thinking(text)
}

fn words(text: &str) -> Content {
    Content::text(text)
}

fn kinds(message: &StoredMessage) -> Vec<Content> {
    message.parts.iter().map(|part| part.content.clone()).collect()
}

/// The message as a window builds it from these events.
fn shown(events: &[AnswerEvent]) -> Vec<Content> {
    let mut parts: Vec<Content> = Vec::new();
    for event in events {
        match &event.body {
            AnswerBody::Continued { parts: all, .. } => parts = all.iter().map(|part| part.content.clone()).collect(),
            AnswerBody::Delta { content, .. } => Content::push(&mut parts, content.clone()),
            _ => {}
        }
    }
    parts
}

impl Harness {
    async fn tokens(&self, message: &str) -> Vec<u32> {
        History::open(&self.path).await.unwrap().tokens(message).await.unwrap()
    }

    /// An answer that was stopped in the middle of its thought.
    pub async fn stopped(&self, chat: &str) -> String {
        let (message, job) = self.ask(chat, "question").await;
        job.events.send(started("abc"));
        job.events.send(thought("It is ha", 1));
        self.chat.answers().stop(&message).await.unwrap();
        cancelled(&job).await;
        job.events.send(thought("<", 2));
        job.events.send(done(FinishReason::Cancelled));
        assert_eq!(self.end(&message).await.state, AnswerState::Stopped);
        message
    }

    /// Continues the answer, and gives the job that the engine got for it.
    pub async fn continues(&self, message: &str) -> FakeJob {
        let view = self.chat.answers().continue_answer(message).await.unwrap();
        let last = view.messages.last().unwrap();
        assert_eq!((last.id.as_str(), last.state), (message, AnswerState::Streaming));
        self.job().await
    }

    async fn refuses(&self, message: &str) -> Error {
        let error = self.chat.answers().continue_answer(message).await.unwrap_err();
        assert!(self.engine.take_job().is_none() && self.chat.answers().running().is_empty());
        error
    }
}

async fn cancelled(job: &FakeJob) {
    while !job.cancel.is_cancelled() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn an_answer_is_continued_from_its_tokens_and_shows_what_they_say() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let message = harness.stopped(&chat).await;
    assert_eq!(harness.tokens(&message).await, [1, 2, 99]);
    let before = harness.stored(&chat).await.pop().unwrap();
    harness.chat.chats().rename(&chat, "other").await.unwrap();
    let settings = ChatSettings {
        model: Some("another".into()),
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    let job = harness.continues(&message).await;
    assert_eq!(job.request.model.reference(), "pebble", "the model that began it");
    assert_eq!(job.request.messages.len(), 1);
    let prefix = AnswerPrefix::Tokens {
        tokens: vec![1, 2, 99],
        model_revision: Some("abc".into()),
        thinking_ended: false,
    };
    assert_eq!(job.request.answer_prefix, Some(prefix));

    let mut window = harness.chat.answers().attach(&message, 0).await.unwrap();
    let mut events = vec![next(&mut window).await];
    assert_eq!(
        shown(&events),
        [thinking("It is ha<")],
        "what there was is shown while the engine reads"
    );
    // The last letter was the beginning of a marker, which the parser holds back.
    job.events.send(started("abc"));
    job.events.send(continued(vec![thinking("It is ha")], vec![1, 2, 99]));
    job.events.send(text("So be it", 3));
    while !matches!(events.last().unwrap().body, AnswerBody::Delta { .. }) {
        events.push(next(&mut window).await);
    }
    let reader = History::open(&harness.path).await.unwrap();
    while reader.tokens(&message).await.unwrap() != [1, 2, 99, 3] {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        kinds(&reader.message(&message).await.unwrap()),
        [thinking("It is ha"), words("So be it")]
    );
    job.events.send(text(".", 4));
    job.events.send(done(FinishReason::Stop));
    events.extend(all(window).await);
    let answer = finished(events.last().unwrap());
    assert_eq!(kinds(&answer), [thinking("It is ha"), words("So be it.")]);
    assert_eq!(shown(&events), kinds(&answer));
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64));
    assert_eq!(
        (answer.state, answer.finish_reason),
        (AnswerState::Complete, Some(FinishReason::Stop))
    );
    assert_eq!(
        (answer.created_at, &answer.siblings),
        (before.created_at, &before.siblings)
    );
    let lasted = |message: &StoredMessage| message.parts[0].ended_at - message.parts[0].started_at;
    assert_eq!(lasted(&answer), lasted(&before), "the pause is no thinking");
    assert_eq!(harness.stored(&chat).await.pop().unwrap(), answer);
    assert_eq!(harness.tokens(&message).await, [1, 2, 99, 3, 4, 99]);
}

#[tokio::test]
async fn an_answer_without_tokens_is_continued_from_its_words_and_one_without_words_is_not() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "broken")));
    assert!(!harness.end(&message).await.continuable);
    assert_eq!(harness.refuses(&message).await.code, ErrorCode::BadRequest);
    let (message, job) = harness.ask(&chat, "again").await;
    assert_eq!(job.request.answer_prefix, None);
    let piece = |content| EngineEvent::Delta {
        content,
        tokens: vec![],
        thinking_tokens: Some(0),
    };
    job.events.send(piece(thinking("hm")));
    job.events.send(piece(words("Half an")));
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "broken again")));
    harness.end(&message).await;
    let job = harness.continues(&message).await;
    let prefix = AnswerPrefix::Text {
        thinking: Some("hm".into()),
        text: Some("Half an".into()),
    };
    assert_eq!(job.request.answer_prefix, Some(prefix));
    job.events
        .send(continued(vec![thinking("hm"), words("Half an")], vec![5, 6, 7]));
    job.events.send(text(" answer", 8));
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::Engine, "and again")));
    let answer = harness.end(&message).await;
    assert_eq!(answer.text(), "Half an answer");
    assert_eq!(harness.tokens(&message).await, [5, 6, 7, 8]);
}

#[tokio::test]
async fn what_cannot_be_continued_is_refused_with_a_sentence_and_nothing_changes() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (first, job) = harness.ask(&chat, "question").await;
    assert_eq!(
        harness.chat.answers().continue_answer(&first).await.unwrap_err().code,
        ErrorCode::Busy
    );
    job.events.send(text("whole", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&first).await;
    let error = harness.refuses(&first).await;
    assert!(
        error.code == ErrorCode::BadRequest && error.message.contains("complete"),
        "{error}"
    );
    let question = harness.stored(&chat).await[0].clone();
    assert_eq!(
        (question.role, harness.refuses(&question.id).await.code),
        (Role::User, ErrorCode::BadRequest)
    );
    assert_eq!(harness.refuses("nothing").await.code, ErrorCode::NotFound);

    let stopped = harness.stopped(&chat).await;
    let (_, job) = harness.ask(&chat, "more").await;
    job.events.send(done(FinishReason::Stop));
    while !harness.chat.answers().running().is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    let before = harness.stored(&chat).await;
    let error = harness.refuses(&stopped).await;
    assert!(
        error.code == ErrorCode::BadRequest && error.message.contains("last"),
        "{error}"
    );
    assert_eq!(harness.stored(&chat).await, before);
}

#[tokio::test]
async fn a_model_that_is_gone_or_changed_leaves_all_there_was() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        model: Some("missing".into()),
        ..ChatSettings::default()
    };
    let chat = harness.new_chat().await;
    let message = harness.stopped(&chat).await;
    // The chat has moved to a model that is gone, but the answer's own is there.
    harness
        .chat
        .chats()
        .set_settings(&chat, &settings)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let before = harness.stored(&chat).await.pop().unwrap();
    let job = harness.continues(&message).await;
    let Some(AnswerPrefix::Tokens { model_revision, .. }) = &job.request.answer_prefix else {
        panic!("it has tokens")
    };
    assert_eq!(model_revision.as_deref(), Some("abc"));
    job.events.send(started("another"));
    job.events.send(EngineEvent::Failed(Error::new(
        ErrorCode::BadRequest,
        "the model has changed",
    )));
    let answer = harness.end(&message).await;
    assert_eq!(
        answer.error,
        Some(Error::new(ErrorCode::BadRequest, "the model has changed"))
    );
    assert_eq!((answer.state, kinds(&answer)), (AnswerState::Failed, kinds(&before)));
    assert_eq!(
        (answer.usage, answer.model_revision.as_deref()),
        (before.usage, Some("abc"))
    );
    assert_eq!(harness.tokens(&message).await, [1, 2, 99]);
    // Asking for the same again would fail for the same reason.
    assert!(before.continuable && !answer.continuable);
    assert_eq!(harness.refuses(&message).await.code, ErrorCode::BadRequest);

    // A model folder that no longer has it refuses before anything is changed.
    let missing = harness
        .chat
        .chats()
        .create(ChatSettings::default())
        .await
        .unwrap()
        .summary
        .id;
    let message = harness.stopped(&missing).await;
    let mut file = sqlx::SqliteConnection::connect(harness.path.to_str().unwrap())
        .await
        .unwrap();
    sqlx::query("UPDATE messages SET model = 'missing' WHERE id = ?")
        .bind(&message)
        .execute(&mut file)
        .await
        .unwrap();
    let before = harness.stored(&missing).await;
    assert_eq!(harness.refuses(&message).await.code, ErrorCode::ModelNotFound);
    assert_eq!(harness.stored(&missing).await, before);
}

#[tokio::test]
async fn an_answer_is_continued_after_its_process_was_gone_as_often_as_it_takes() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    job.events.send(started("abc"));
    job.events.send(text("one ", 1));
    let reader = History::open(&harness.path).await.unwrap();
    let stored = |tokens: Vec<u32>| {
        let (reader, message) = (reader.clone(), message.clone());
        async move {
            while reader.tokens(&message).await.unwrap() != tokens {
                sleep(Duration::from_millis(5)).await;
            }
        }
    };
    stored(vec![1]).await;
    let mut file = sqlx::SqliteConnection::connect(harness.path.to_str().unwrap())
        .await
        .unwrap();
    let mut tokens = vec![1];
    let mut jobs = vec![job];
    let mut harnesses = Vec::new();
    for (round, word) in ["two ", "three ", "four "].into_iter().enumerate() {
        // As if the process that writes it had been killed: it is another one's, and long silent.
        sqlx::query("UPDATE messages SET owner = '1:1@nowhere', heartbeat = 0 WHERE state = 'streaming'")
            .execute(&mut file)
            .await
            .unwrap();
        let (engine, chats) = open(&harness.path).await;
        let view = chats.chats().get(&chat).await.unwrap();
        assert_eq!(view.messages[1].state, AnswerState::Interrupted);
        assert_eq!(
            view.messages[1].thinking_tokens,
            Some(1),
            "counted while it was written"
        );
        chats.answers().continue_answer(&message).await.unwrap();
        let job = loop {
            match engine.take_job() {
                Some(job) => break job,
                None => sleep(Duration::from_millis(1)).await,
            }
        };
        assert!(
            matches!(&job.request.answer_prefix, Some(AnswerPrefix::Tokens { tokens: prefix, .. }) if *prefix == tokens)
        );
        let said: String = ["one ", "two ", "three "][..=round].concat();
        job.events.send(started("abc"));
        job.events.send(continued(vec![words(&said)], tokens.clone()));
        tokens.push(round as u32 + 2);
        job.events.send(text(word, round as u32 + 2));
        stored(tokens.clone()).await;
        assert_eq!(reader.message(&message).await.unwrap().text(), format!("{said}{word}"));
        jobs.push(job);
        harnesses.push((engine, chats));
    }
}

#[tokio::test]
async fn whoever_watches_from_another_process_sees_what_a_continued_answer_says() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let message = harness.stopped(&chat).await;
    let job = harness.continues(&message).await;
    let (_, other) = open(&harness.path).await;
    let mut window = other.answers().attach(&message, 0).await.unwrap();
    let mut events = vec![next(&mut window).await];
    assert_eq!(shown(&events), [thinking("It is ha<")]);
    // A text that was read as a letter turns out to be a marker.
    job.events.send(continued(vec![thinking("It is ha")], vec![1, 2, 99]));
    job.events.send(text("So", 3));
    while !matches!(shown(&events).last(), Some(Content::Text { .. })) {
        events.push(next(&mut window).await);
    }
    job.events.send(text(" be it", 4));
    job.events.send(done(FinishReason::Stop));
    events.extend(all(window).await);
    let answer = finished(events.last().unwrap());
    assert_eq!(kinds(&answer), [thinking("It is ha"), words("So be it")]);
    assert_eq!(shown(&events), kinds(&answer));
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{events:?}");
}

#[tokio::test]
async fn a_replacement_that_is_longer_than_what_was_shown_is_shown_once() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let message = harness.stopped(&chat).await;
    let job = harness.continues(&message).await;
    let (_, other) = open(&harness.path).await;
    let mut window = other.answers().attach(&message, 0).await.unwrap();
    let mut events = vec![next(&mut window).await];
    // Another reading of what was shown, and much more, before the file is read again.
    let long = "It is quite another thought. ".repeat(20);
    job.events.send(continued(vec![thinking(&long)], vec![1, 2, 99]));
    while shown(&events) != [thinking(&long)] {
        events.push(next(&mut window).await);
    }
    job.events.send(thought("And more.", 3));
    job.events.send(done(FinishReason::Stop));
    events.extend(all(window).await);
    let answer = finished(events.last().unwrap());
    assert_eq!(kinds(&answer), [thinking(&format!("{long}And more."))]);
    assert_eq!(shown(&events), kinds(&answer));
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{events:?}");
}

#[tokio::test]
async fn what_was_told_just_before_an_answer_is_read_anew_is_kept() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let message = harness.stopped(&chat).await;
    let job = harness.continues(&message).await;
    let (unseen, ended) = (
        Notice::new(NoticeCode::MediaNotSeen, "It cannot see."),
        Notice::new(NoticeCode::ThinkingEnded, "It was ended."),
    );
    job.events.send(EngineEvent::Notice(unseen.clone()));
    job.events.send(EngineEvent::Continued {
        parts: vec![thinking("It is ha")],
        notices: vec![ended.clone()],
        tokens: vec![1, 2],
    });
    job.events.send(done(FinishReason::Stop));
    assert_eq!(harness.end(&message).await.notices, [unseen, ended]);
}

#[tokio::test]
async fn an_answer_that_repeated_itself_is_continued_with_a_penalty() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let plain = harness.stopped(&chat).await;
    let job = harness.continues(&plain).await;
    assert_eq!(job.request.sampling.repetition_penalty, None);
    job.events.send(EngineEvent::Notice(Notice::new(
        NoticeCode::Repeats,
        "It repeats itself.",
    )));
    job.events.send(text("ha", 3));
    job.events.send(done(FinishReason::Length));
    assert_eq!(harness.end(&plain).await.notices[0].code, NoticeCode::Repeats);
    let job = harness.continues(&plain).await;
    let sampling = &job.request.sampling;
    assert!(sampling.repetition_penalty.is_some_and(|penalty| penalty > 1.2));
    assert!(sampling.penalty_context.is_some_and(|tokens| tokens >= 256));
    job.events.send(done(FinishReason::Stop));
    harness.end(&plain).await;
}
