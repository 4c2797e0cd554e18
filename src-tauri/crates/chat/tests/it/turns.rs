//! From a question to the stored answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chat::Chat;
use futures::future::BoxFuture;
use protocol::{
    AnswerBody, AnswerState, ChatSettings, Code, Engine, EngineEvent, Error, Job, LoadEvent, MemoryFigures, ModelInfo, ModelSource, Notice,
    PartKind, Receiver, Request, Role, Sampling, Stage, Stop, Thinking, ToolCall,
};
use sqlx::Connection;

use crate::{all, done, finished, open, text, thought, timing, usage, House, Shelf};

fn said(request: &Request) -> Vec<(Role, String)> {
    request
        .messages
        .iter()
        .map(|message| (message.role, message.plain_text()))
        .collect()
}

#[tokio::test]
async fn everything_that_the_engine_says_is_passed_on_and_stored() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    house.chat.set_draft(&chat, "Weather in").await.unwrap();
    let turn = house.chat.send(&chat, " Weather in Oslo? ").await.unwrap();
    let job = house.job().await;
    assert_eq!(said(&job.request), [(Role::User, " Weather in Oslo? ".into())]);
    assert_eq!((job.request.model.reference.as_str(), job.request.thinking), ("pebble", None));
    let call = ToolCall {
        id: "1".into(),
        name: "weather".into(),
        arguments: serde_json::json!({"city": "Oslo"}),
    };
    let notice = Notice {
        code: "a".into(),
        message: "b".into(),
    };
    let mut window = house.chat.attach(&turn.answer.id, 0).await.unwrap();
    let script = [
        EngineEvent::Progress {
            stage: Stage::Load,
            done: 1,
            total: 2,
        },
        EngineEvent::Started {
            prompt_tokens: 28,
            model_revision: "abc".into(),
            template_hash: "def".into(),
        },
        thought("hm", 1),
        thought("", 2),
        thought("m", 3),
        text("It is ", 4),
        EngineEvent::Notice(notice.clone()),
        EngineEvent::ToolCall {
            call: call.clone(),
            tokens: vec![5],
        },
        text("cold", 6),
    ];
    let mut bodies = Vec::new();
    for event in script {
        let silent = matches!(&event, EngineEvent::Started { .. }) || event == thought("", 2);
        job.events.send(event);
        if !silent {
            let event = crate::next(&mut window).await;
            assert_eq!((event.seq, &event.message), (bodies.len() as u64 + 1, &turn.answer.id));
            bodies.push(event.body);
        }
    }
    job.events.send(done(Stop::ToolCalls));
    let end = crate::next(&mut window).await;
    assert_eq!(end.seq, 8);
    assert_eq!(window.recv().await, None);
    assert!(matches!(
        &bodies[0],
        AnswerBody::Progress {
            stage: Stage::Load,
            done: 1,
            total: 2
        }
    ));

    let message = finished(&end);
    let kinds: Vec<PartKind> = message.parts.iter().map(|part| part.kind.clone()).collect();
    let expected = [
        PartKind::Thinking { text: "hmm".into() },
        PartKind::Text { text: "It is ".into() },
        PartKind::ToolCall { call },
        PartKind::Text { text: "cold".into() },
    ];
    assert_eq!(kinds, expected);
    assert!(message
        .parts
        .iter()
        .all(|part| message.created_at <= part.started_at && part.started_at <= part.ended_at));
    assert_eq!(
        (message.state, message.stop, message.error.clone()),
        (AnswerState::Complete, Some(Stop::ToolCalls), None)
    );
    assert_eq!((message.usage, message.timing), (Some(usage()), Some(timing())));
    assert_eq!(
        (message.model_revision.as_deref(), message.template_hash.as_deref()),
        (Some("abc"), Some("def"))
    );
    assert_eq!(message.notices, [notice]);
    let view = house.chat.chat(&chat).await.unwrap();
    assert_eq!(view.messages, [turn.question, message.clone()]);
    assert_eq!(
        (view.summary.title.as_str(), view.draft.as_str(), view.summary.running),
        ("Weather in Oslo?", "", false)
    );
    let history = history::History::open(&house.path).await.unwrap();
    assert_eq!(history.tokens(&message.id).await.unwrap(), [1, 2, 3, 4, 5, 6, 99]);
    assert!(house.chat.running().is_empty());
}

#[tokio::test]
async fn the_chats_settings_choose_what_is_asked() {
    let house = House::new().await;
    let settings = ChatSettings {
        model: Some("a/b".into()),
        thinking: Some(Thinking::Off),
        thinking_budget: None,
        system_prompt: "Be brief.".into(),
        sampling: Sampling {
            top_k: Some(3),
            ..Sampling::default()
        },
    };
    let chat = house.chat.create(settings.clone()).await.unwrap().summary.id;
    let (message, job) = house.ask(&chat, "one").await;
    assert_eq!(said(&job.request), [(Role::System, "Be brief.".into()), (Role::User, "one".into())]);
    assert_eq!(job.request.model.reference, "a/b");
    assert_eq!(
        (job.request.thinking, &job.request.sampling),
        (Some(Thinking::Off), &settings.sampling)
    );
    job.events.send(thought("hm", 1));
    job.events.send(text("1", 2));
    job.events.send(done(Stop::Stop));
    let answer = house.end(&message).await;
    assert_eq!((answer.model.as_deref(), answer.thinking), (Some("a/b"), Some(Thinking::Off)));

    house.chat.set_settings(&chat, &ChatSettings::default()).await.unwrap();
    house.chat.set_default_model("c/d").await.unwrap();
    let (_, job) = house.ask(&chat, "two").await;
    assert_eq!(
        said(&job.request),
        [
            (Role::User, "one".into()),
            (Role::Assistant, "1".into()),
            (Role::User, "two".into())
        ]
    );
    assert_eq!(job.request.messages[1].reasoning.as_deref(), Some("hm"));
    assert_eq!((job.request.model.reference.as_str(), job.request.thinking), ("c/d", None));
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_not_stored() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    house.chat.set_draft(&chat, "half").await.unwrap();
    for (chat, question, code) in [(chat.as_str(), " \n", Code::BadRequest), ("nothing", "question", Code::NotFound)] {
        assert_eq!(house.chat.send(chat, question).await.unwrap_err().code, code);
    }
    assert_eq!(house.chat.set_default_model("missing").await.unwrap_err().code, Code::ModelNotFound);
    assert_eq!(house.chat.default_model().await.unwrap(), "pebble");
    let settings = ChatSettings {
        model: Some("missing".into()),
        ..ChatSettings::default()
    };
    house.chat.set_settings(&chat, &settings).await.unwrap();
    assert_eq!(house.chat.send(&chat, "question").await.unwrap_err().code, Code::ModelNotFound);
    let view = house.chat.chat(&chat).await.unwrap();
    assert!(view.messages.is_empty() && view.summary.title.is_empty());
    assert_eq!(view.draft, "half");
}

#[tokio::test]
async fn a_chat_is_busy_while_it_answers_and_others_are_not() {
    let house = House::new().await;
    let (chat, other) = (house.new_chat().await, house.new_chat().await);
    let (message, job) = house.ask(&chat, "question").await;
    assert_eq!(house.chat.send(&chat, "more").await.unwrap_err().code, Code::Busy);
    assert_eq!(house.chat.regenerate(&message).await.unwrap_err().code, Code::Busy);
    let (_, other_job) = house.ask(&other, "question").await;
    assert_eq!(house.chat.running().len(), 2);
    other_job.events.send(done(Stop::Stop));
    job.events.send(done(Stop::Stop));
    house.end(&message).await;
    house.ask(&chat, "more").await;
}

#[tokio::test]
async fn a_stopped_answer_keeps_what_it_said() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "question").await;
    let mut window = house.chat.attach(&message, 0).await.unwrap();
    job.events.send(text("half an ", 1));
    crate::next(&mut window).await;
    house.chat.stop(&message).await.unwrap();
    house.chat.stop(&message).await.unwrap();
    while !job.cancel.is_cancelled() {
        tokio::task::yield_now().await;
    }
    // What the engine still had on its way counts, too.
    job.events.send(text("answer", 2));
    job.events.send(done(Stop::Cancelled));
    let answer = house.end(&message).await;
    assert_eq!(
        (answer.state, answer.stop, answer.text().as_str()),
        (AnswerState::Stopped, Some(Stop::Cancelled), "half an answer")
    );
    house.chat.stop(&message).await.unwrap();
    assert_eq!(house.stored(&chat).await[1], answer);
    assert_eq!(house.chat.stop("nothing").await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn an_engine_that_does_not_react_cannot_keep_an_answer_from_stopping() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "question").await;
    house.chat.stop(&message).await.unwrap();
    let begun = Instant::now();
    let answer = house.end(&message).await;
    assert_eq!((answer.state, answer.stop), (AnswerState::Stopped, Some(Stop::Cancelled)));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(job.cancel.is_cancelled());
}

#[tokio::test]
async fn another_answer_is_a_sibling_that_does_not_see_the_first() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (first, job) = house.ask(&chat, "question").await;
    job.events.send(text("first", 1));
    job.events.send(done(Stop::Stop));
    house.end(&first).await;
    let view = house.chat.regenerate(&first).await.unwrap();
    let second = view.messages[1].id.clone();
    assert_eq!(view.messages[1].siblings, [first.clone(), second.clone()]);
    assert_eq!(view.messages[1].state, AnswerState::Streaming);
    let job = house.job().await;
    assert_eq!(said(&job.request), [(Role::User, "question".into())]);
    job.events.send(text("second", 1));
    job.events.send(done(Stop::Stop));
    house.end(&second).await;
    // From the question it is the same.
    let question = view.messages[0].id.clone();
    let view = house.chat.regenerate(&question).await.unwrap();
    assert_eq!(view.messages[1].siblings.len(), 3);
    house.job().await.events.send(done(Stop::Stop));
    house.end(&view.messages[1].id).await;

    let shown = house.chat.show_branch(&first).await.unwrap();
    assert_eq!(shown.messages[1].text(), "first");
    assert_eq!(house.chat.regenerate("nothing").await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_failure_of_the_engine_is_the_end_of_the_answer_alone() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "question").await;
    job.events.send(text("half", 1));
    job.events.send(EngineEvent::Failed(Error::new(Code::ContextFull, "too long")));
    let answer = house.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "half"));
    assert_eq!(answer.error, Some(Error::new(Code::ContextFull, "too long")));
    assert_eq!(house.stored(&chat).await[1], answer);

    let (message, job) = house.ask(&chat, "again").await;
    job.events.send(text("half", 1));
    drop(job);
    let answer = house.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "half"));
    assert_eq!(answer.error.unwrap().code, Code::EngineGone);

    let (message, job) = house.ask(&chat, "and again").await;
    job.events.send(done(Stop::Stop));
    assert_eq!(house.end(&message).await.state, AnswerState::Complete);
}

/// An engine whose every call panics.
struct Panicking;

impl Engine for Panicking {
    fn load(&self, _: ModelSource) -> Receiver<LoadEvent> {
        panic!("load")
    }
    fn generate(&self, _: Request) -> Job {
        panic!("generate")
    }
    fn unload(&self) -> BoxFuture<'static, protocol::Result<()>> {
        panic!("unload")
    }
    fn loaded(&self) -> Option<ModelInfo> {
        panic!("loaded")
    }
    fn memory(&self) -> BoxFuture<'static, protocol::Result<MemoryFigures>> {
        panic!("memory")
    }
}

#[tokio::test]
async fn a_panic_in_a_turn_ends_its_answer_as_failed() {
    let folder = tempfile::tempdir().unwrap();
    let chats = Chat::open(&folder.path().join("history.sqlite"), Arc::new(Panicking), Arc::new(Shelf))
        .await
        .unwrap();
    let chat = chats.create(ChatSettings::default()).await.unwrap().summary.id;
    for question in ["one", "two"] {
        let message = chats.send(&chat, question).await.unwrap().answer.id;
        let events = all(chats.attach(&message, 0).await.unwrap()).await;
        let answer = finished(events.last().unwrap());
        assert_eq!((answer.state, answer.error.unwrap().code), (AnswerState::Failed, Code::Engine));
    }
    assert!(chats.running().is_empty());
}

#[tokio::test]
async fn a_deleted_chat_stops_and_comes_back_with_what_was_said() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "question").await;
    let mut window = house.chat.attach(&message, 0).await.unwrap();
    job.events.send(text("half", 1));
    crate::next(&mut window).await;
    let (deleted, ()) = tokio::join!(house.chat.delete(&chat), async {
        while !job.cancel.is_cancelled() {
            tokio::task::yield_now().await;
        }
        job.events.send(done(Stop::Cancelled));
    });
    deleted.unwrap();
    assert!(house.chat.running().is_empty() && house.chat.chats().await.unwrap().is_empty());
    assert_eq!(finished(&crate::next(&mut window).await).state, AnswerState::Stopped);
    assert_eq!(house.chat.send(&chat, "more").await.unwrap_err().code, Code::NotFound);
    house.chat.restore(&chat).await.unwrap();
    let answer = house.stored(&chat).await.pop().unwrap();
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Stopped, "half"));
}

#[tokio::test]
async fn shutting_down_stores_running_answers_as_stopped() {
    let house = House::new().await;
    let (one, two) = (house.new_chat().await, house.new_chat().await);
    let (_, job) = house.ask(&one, "question").await;
    job.events.send(text("half", 1));
    // This one does not react.
    let (_, _silent) = house.ask(&two, "question").await;
    let begun = Instant::now();
    house.chat.shut_down().await;
    assert!(begun.elapsed() < Duration::from_millis(2500));
    let (_, again) = open(&house.path).await;
    for (chat, text) in [(&one, "half"), (&two, "")] {
        let answer = again.chat(chat).await.unwrap().messages.pop().unwrap();
        assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Stopped, text));
    }
}

#[tokio::test]
async fn whatever_changes_the_list_of_chats_is_told() {
    let house = House::new().await;
    let mut changes = house.chat.changes();
    macro_rules! tells {
        ($what:expr) => {{
            changes.mark_unchanged();
            let value = $what;
            assert!(changes.has_changed().unwrap(), stringify!($what));
            value
        }};
    }
    let chat = tells!(house.new_chat().await);
    tells!(house.chat.rename(&chat, "title").await.unwrap());
    tells!(house.chat.pin(&chat, true).await.unwrap());
    let (message, job) = tells!(house.ask(&chat, "question").await);
    job.events.send(done(Stop::Stop));
    changes.mark_unchanged();
    house.end(&message).await;
    tokio::time::timeout(Duration::from_secs(5), changes.changed())
        .await
        .unwrap()
        .unwrap();
    tells!(house.chat.delete(&chat).await.unwrap());
    tells!(house.chat.restore(&chat).await.unwrap());
    // Another process tells through the file.
    changes.mark_unchanged();
    let (_, other) = open(&house.path).await;
    other.rename(&chat, "other").await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), changes.changed())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_question_after_a_failure_stands_for_both() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "My name is Yara.").await;
    job.events.send(EngineEvent::Failed(Error::new(Code::Engine, "broken")));
    house.end(&message).await;
    let (_, job) = house.ask(&chat, "What is my name?").await;
    assert_eq!(job.request.messages.len(), 1);
    let text = job.request.messages[0].plain_text();
    assert_eq!(text, "My name is Yara.\n\nWhat is my name?");
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_shown_and_says_so_and_the_chat_goes_on() {
    let house = House::new().await;
    let chat = house.new_chat().await;
    let (message, job) = house.ask(&chat, "question").await;
    let mut file = sqlx::SqliteConnection::connect(house.path.to_str().unwrap()).await.unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON messages BEGIN SELECT RAISE (ABORT, 'no'); END";
    sqlx::query(refuse).execute(&mut file).await.unwrap();
    job.events.send(text("answer", 1));
    job.events.send(done(Stop::Stop));
    let answer = house.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "answer"));
    let error = answer.error.unwrap();
    assert!(
        error.code == Code::Storage && error.message.contains("could not be saved"),
        "{error}"
    );

    sqlx::query("DROP TRIGGER refuse").execute(&mut file).await.unwrap();
    // As if its last heartbeat were long ago.
    sqlx::query("UPDATE messages SET heartbeat = 0 WHERE state = 'streaming'")
        .execute(&mut file)
        .await
        .unwrap();
    house.ask(&chat, "more").await;
    assert_eq!(house.stored(&chat).await[1].state, AnswerState::Interrupted);
}
