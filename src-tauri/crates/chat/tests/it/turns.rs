//! From a question to the stored answer.

use std::time::{Duration, Instant};

use api::{AnswerBody, AnswerState, ChatSettings, Position};
use protocol::{
    Content, EngineEvent, Error, ErrorCode, FinishReason, Notice, NoticeCode, Role, Sampling, Stage, Thinking, ToolCall,
};

use crate::prefetch::said;
use crate::{done, finished, open, text, thought, timing, usage, Harness};

#[tokio::test]
async fn everything_that_the_engine_says_is_passed_on_and_stored() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness
        .chat
        .chats()
        .set_draft(&chat, &[Content::text("Weather in")])
        .await
        .unwrap();
    let turn = harness
        .chat
        .answers()
        .send(&chat, &[Content::text(" Weather in Oslo? ")], &Position::End)
        .await
        .unwrap();
    let job = harness.job().await;
    assert_eq!(said(&job.request), [(Role::User, " Weather in Oslo? ".into())]);
    assert_eq!(
        (job.request.model.reference().as_str(), job.request.thinking),
        ("pebble", None)
    );
    let call = ToolCall {
        id: "1".into(),
        name: "weather".into(),
        arguments: serde_json::json!({"city": "Oslo"}),
    };
    let notice = Notice::new(NoticeCode::Repetition, "b");
    let mut window = harness.chat.answers().attach(&turn.answer.id, 0).await.unwrap();
    let script = [
        EngineEvent::Progress {
            stage: Stage::Load,
            done: 1,
            total: 2,
        },
        EngineEvent::Started {
            prompt_tokens: Some(28),
            model_revision: Some("abc".into()),
            template_hash: Some("def".into()),
        },
        thought("hm", 1),
        thought("", 2),
        thought("m", 3),
        text("It is ", 4),
        EngineEvent::Notice(notice.clone()),
        EngineEvent::Delta {
            content: Content::ToolCall { call: call.clone() },
            tokens: vec![5],
            thinking_tokens: Some(1),
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
    job.events.send(done(FinishReason::ToolCalls));
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
    let kinds: Vec<Content> = message.parts.iter().map(|part| part.content.clone()).collect();
    let expected = [
        Content::thinking("hmm"),
        Content::text("It is "),
        Content::ToolCall { call },
        Content::text("cold"),
    ];
    assert_eq!(kinds, expected);
    assert!(message
        .parts
        .iter()
        .all(|part| message.created_at <= part.started_at && part.started_at <= part.ended_at));
    assert_eq!(
        (message.state, message.finish_reason, message.error.clone()),
        (AnswerState::Complete, Some(FinishReason::ToolCalls), None)
    );
    assert_eq!((message.usage, message.timing), (Some(usage()), Some(timing())));
    assert_eq!(
        (message.model_revision.as_deref(), message.template_hash.as_deref()),
        (Some("abc"), Some("def"))
    );
    assert_eq!(message.notices, [notice]);
    let view = harness.chat.chats().get(&chat).await.unwrap();
    assert_eq!(view.messages, [turn.question, message.clone()]);
    assert_eq!(
        (view.summary.title.as_str(), view.draft.len(), view.summary.running),
        ("Weather in Oslo?", 0, false)
    );
    let history = history::History::open(&harness.path).await.unwrap();
    assert_eq!(history.tokens(&message.id).await.unwrap(), [1, 2, 3, 4, 5, 6, 99]);
    assert!(harness.chat.answers().running().is_empty());
}

#[tokio::test]
async fn the_chats_settings_choose_what_is_asked() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        model: Some("a/b".into()),
        thinking: Some(Thinking::Off),
        system_prompt: "Be brief.".into(),
        sampling: Sampling {
            top_k: Some(3),
            ..Sampling::default()
        },
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings.clone()).await.unwrap().summary.id;
    let (message, job) = harness.ask(&chat, "one").await;
    assert_eq!(
        said(&job.request),
        [(Role::System, "Be brief.".into()), (Role::User, "one".into())]
    );
    assert_eq!(job.request.model.reference(), "a/b");
    assert_eq!(
        (job.request.thinking, &job.request.sampling),
        (Some(Thinking::Off), &settings.sampling)
    );
    job.events.send(thought("hm", 1));
    job.events.send(text("1", 2));
    job.events.send(done(FinishReason::Stop));
    let answer = harness.end(&message).await;
    let asked_with = ChatSettings {
        system_prompt: String::new(),
        ..settings.clone()
    };
    assert_eq!(
        (answer.model.as_deref(), answer.settings),
        (Some("a/b"), Some(asked_with))
    );

    harness
        .chat
        .chats()
        .set_settings(&chat, &ChatSettings::default())
        .await
        .unwrap();
    harness.chat.settings().set_default_model("c/d").await.unwrap();
    let (_, job) = harness.ask(&chat, "two").await;
    assert_eq!(
        said(&job.request),
        [
            (Role::User, "one".into()),
            (Role::Assistant, "1".into()),
            (Role::User, "two".into())
        ]
    );
    assert_eq!(job.request.messages[1].reasoning.as_deref(), Some("hm"));
    assert_eq!(
        (job.request.model.reference().as_str(), job.request.thinking),
        ("a/b", None),
        "a chat keeps its model"
    );
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_not_stored() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness
        .chat
        .chats()
        .set_draft(&chat, &[Content::text("half")])
        .await
        .unwrap();
    for (chat, question, code) in [
        (chat.as_str(), " \n", ErrorCode::BadRequest),
        ("nothing", "question", ErrorCode::NotFound),
    ] {
        assert_eq!(harness.refusal(chat, question).await, code);
    }
    assert_eq!(
        harness
            .chat
            .settings()
            .set_default_model("missing")
            .await
            .unwrap_err()
            .code,
        ErrorCode::ModelNotFound
    );
    assert_eq!(harness.chat.settings().default_model().await.unwrap(), "pebble");
    let settings = ChatSettings {
        model: Some("missing".into()),
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    assert_eq!(harness.refusal(&chat, "question").await, ErrorCode::ModelNotFound);
    let view = harness.chat.chats().get(&chat).await.unwrap();
    assert!(view.messages.is_empty() && view.summary.title.is_empty());
    assert_eq!(view.draft, [Content::text("half")]);
}

#[tokio::test]
async fn a_chat_is_busy_while_it_answers_and_others_are_not() {
    let harness = Harness::new().await;
    let (chat, other) = (harness.new_chat().await, harness.new_chat().await);
    let (message, job) = harness.ask(&chat, "question").await;
    assert_eq!(harness.refusal(&chat, "more").await, ErrorCode::Busy);
    assert_eq!(
        harness
            .chat
            .answers()
            .regenerate(&message, None)
            .await
            .unwrap_err()
            .code,
        ErrorCode::Busy
    );
    let (_, other_job) = harness.ask(&other, "question").await;
    assert_eq!(harness.chat.answers().running().len(), 2);
    other_job.events.send(done(FinishReason::Stop));
    job.events.send(done(FinishReason::Stop));
    harness.end(&message).await;
    harness.ask(&chat, "more").await;
}

#[tokio::test]
async fn a_stopped_answer_keeps_what_it_said() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let mut window = harness.chat.answers().attach(&message, 0).await.unwrap();
    job.events.send(text("half an ", 1));
    crate::next(&mut window).await;
    harness.chat.answers().stop(&message).await.unwrap();
    harness.chat.answers().stop(&message).await.unwrap();
    while !job.cancel.is_cancelled() {
        tokio::task::yield_now().await;
    }
    // Events that were still on their way count, too.
    job.events.send(text("answer", 2));
    job.events.send(done(FinishReason::Cancelled));
    let answer = harness.end(&message).await;
    assert_eq!(
        (answer.state, answer.finish_reason, answer.text().as_str()),
        (AnswerState::Stopped, Some(FinishReason::Cancelled), "half an answer")
    );
    harness.chat.answers().stop(&message).await.unwrap();
    assert_eq!(harness.stored(&chat).await[1], answer);
    assert_eq!(
        harness.chat.answers().stop("nothing").await.unwrap_err().code,
        ErrorCode::NotFound
    );
}

#[tokio::test]
async fn an_engine_that_does_not_react_cannot_keep_an_answer_from_stopping() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    harness.chat.answers().stop(&message).await.unwrap();
    let begun = Instant::now();
    let answer = harness.end(&message).await;
    println!(
        "report: an answer whose engine does not react stopped after {:?}",
        begun.elapsed()
    );
    assert_eq!(
        (answer.state, answer.finish_reason),
        (AnswerState::Stopped, Some(FinishReason::Cancelled))
    );
    assert!(job.cancel.is_cancelled());
}

#[tokio::test]
async fn another_answer_is_a_sibling_that_does_not_see_the_first() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (first, job) = harness.ask(&chat, "question").await;
    job.events.send(text("first", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&first).await;
    let view = harness.chat.answers().regenerate(&first, None).await.unwrap();
    let second = view.messages[1].id.clone();
    assert_eq!(view.messages[1].siblings, [first.clone(), second.clone()]);
    assert_eq!(view.messages[1].state, AnswerState::Streaming);
    let job = harness.job().await;
    assert_eq!(said(&job.request), [(Role::User, "question".into())]);
    job.events.send(text("second", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&second).await;
    // From the question it is the same.
    let question = view.messages[0].id.clone();
    let view = harness.chat.answers().regenerate(&question, None).await.unwrap();
    assert_eq!(view.messages[1].siblings.len(), 3);
    harness.job().await.events.send(done(FinishReason::Stop));
    harness.end(&view.messages[1].id).await;

    let shown = harness.chat.chats().show_branch(&first).await.unwrap();
    assert_eq!(shown.messages[1].text(), "first");
    assert_eq!(
        harness
            .chat
            .answers()
            .regenerate("nothing", None)
            .await
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
}

#[tokio::test]
async fn a_deleted_chat_stops_and_comes_back_with_what_was_said() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let mut window = harness.chat.answers().attach(&message, 0).await.unwrap();
    job.events.send(text("half", 1));
    crate::next(&mut window).await;
    let (deleted, ()) = tokio::join!(harness.chat.library().delete(&chat), async {
        while !job.cancel.is_cancelled() {
            tokio::task::yield_now().await;
        }
        job.events.send(done(FinishReason::Cancelled));
    });
    deleted.unwrap();
    assert!(harness.chat.answers().running().is_empty() && harness.chat.chats().list().await.unwrap().is_empty());
    assert_eq!(finished(&crate::next(&mut window).await).state, AnswerState::Stopped);
    assert_eq!(harness.refusal(&chat, "more").await, ErrorCode::NotFound);
    harness.chat.library().restore(&chat).await.unwrap();
    let answer = harness.stored(&chat).await.pop().unwrap();
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Stopped, "half"));
}

#[tokio::test]
async fn shutting_down_stores_running_answers_as_stopped() {
    let harness = Harness::new().await;
    let (one, two) = (harness.new_chat().await, harness.new_chat().await);
    let (_, job) = harness.ask(&one, "question").await;
    job.events.send(text("half", 1));
    // This one does not react.
    let (_, _silent) = harness.ask(&two, "question").await;
    let begun = Instant::now();
    harness.chat.shut_down().await;
    println!(
        "report: chats were shut down beside an engine that does not react after {:?}",
        begun.elapsed()
    );
    let (_, again) = open(&harness.path).await;
    for (chat, text) in [(&one, "half"), (&two, "")] {
        let answer = again.chats().get(chat).await.unwrap().messages.pop().unwrap();
        assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Stopped, text));
    }
}

#[tokio::test]
async fn whatever_changes_the_list_of_chats_is_told() {
    let harness = Harness::new().await;
    let mut changes = harness.chat.changes();
    macro_rules! tells {
        ($what:expr) => {{
            changes.mark_unchanged();
            let value = $what;
            assert!(changes.has_changed().unwrap(), stringify!($what));
            value
        }};
    }
    let chat = tells!(harness.new_chat().await);
    tells!(harness.chat.chats().rename(&chat, "title").await.unwrap());
    tells!(harness.chat.chats().pin(&chat, true).await.unwrap());
    let drafts = |text: &str| {
        (!text.is_empty())
            .then(|| Content::text(text))
            .into_iter()
            .collect::<Vec<_>>()
    };
    for (text, told) in [("W", true), ("Why", false), ("", true), ("", false)] {
        changes.mark_unchanged();
        harness.chat.chats().set_draft(&chat, &drafts(text)).await.unwrap();
        assert_eq!(changes.has_changed().unwrap(), told, "{text:?}");
        assert_eq!(
            harness.chat.chats().list().await.unwrap()[0].has_draft,
            !text.is_empty()
        );
    }
    let (message, job) = tells!(harness.ask(&chat, "question").await);
    job.events.send(done(FinishReason::Stop));
    changes.mark_unchanged();
    harness.end(&message).await;
    tokio::time::timeout(Duration::from_secs(60), changes.changed())
        .await
        .unwrap()
        .unwrap();
    tells!(harness.chat.library().delete(&chat).await.unwrap());
    tells!(harness.chat.library().restore(&chat).await.unwrap());
    // Another process tells through the file.
    changes.mark_unchanged();
    let (_, other) = open(&harness.path).await;
    other.chats().rename(&chat, "other").await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), changes.changed())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_remote_model_is_told_nothing_in_the_background_and_continues_no_answer() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        model: Some("endpoint:lab/a/b".into()),
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    assert!(
        harness
            .chat
            .models()
            .capabilities(Some("endpoint:lab/a/b"))
            .await
            .unwrap()
            .leaves_computer
    );
    assert!(!harness.chat.models().capabilities(None).await.unwrap().leaves_computer);

    let (message, job) = harness.ask(&chat, "question").await;
    assert_eq!(job.request.model.reference(), "endpoint:lab/a/b");
    job.events.send(EngineEvent::Started {
        prompt_tokens: None,
        model_revision: None,
        template_hash: None,
    });
    job.events.send(EngineEvent::Delta {
        content: Content::text("half"),
        tokens: Vec::new(),
        thinking_tokens: None,
    });
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::Network, "the endpoint died")));
    let answer = harness.end(&message).await;
    assert_eq!((answer.state, answer.text().as_str()), (AnswerState::Failed, "half"));
    assert_eq!((answer.thinking_tokens, answer.model_revision), (None, None));

    let refused = harness.chat.answers().continue_answer(&message).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadRequest);
    harness.chat.chats().open(&chat).await.unwrap();
    // The same chat with a model of this computer is read ahead, and that comes after anything the remote one could
    // have had.
    let local = ChatSettings {
        model: Some("a/b".into()),
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &local).await.unwrap();
    let prefetched = loop {
        let prefetched = harness.engine.take_prefetched();
        if !prefetched.is_empty() {
            break prefetched;
        }
        tokio::task::yield_now().await;
    };
    assert!(prefetched.iter().all(|request| request.model.folder().is_some()));
}
