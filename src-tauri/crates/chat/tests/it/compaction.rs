//! A context that is full, and what goes on from there.

use std::sync::{Arc, Mutex};

use api::{AnswerState, ChatSettings, CompactionMark, Position, SummaryProgress};
use protocol::{Content, EngineEvent, Error, ErrorCode, FinishReason, LocalEngine, Role, Stage};
use serde_json::{Map, Value};

use crate::{done, finished, text, Harness};

/// The context of the fake's loaded model; it counts a token for each byte.
const CONTEXT: usize = 4096;

impl Harness {
    /// With a model of known context, and no title written by it.
    async fn with_context() -> Self {
        let harness = Self::new().await;
        harness.load().await;
        let change = Map::from_iter([("write_titles".to_owned(), Value::from(false))]);
        harness.chat.settings().change(&change).await.unwrap();
        harness
    }

    pub(crate) async fn load(&self) {
        let model = self.chat.settings().default_model().await.unwrap();
        let mut events = self.engine.load(protocol::FolderSource {
            reference: model,
            path: "/models/pebble".into(),
            revision: None,
            adapter: None,
        });
        events.recv().await.unwrap();
    }

    /// A question of this many bytes and its short answer.
    async fn turn(&self, chat: &str, name: &str, bytes: usize) -> String {
        let (answer, job) = self.ask(chat, &long(name, bytes)).await;
        job.events.send(text(&format!("answer to {name}"), 1));
        job.events.send(done(FinishReason::Stop));
        assert_eq!(self.end(&answer).await.state, AnswerState::Complete);
        answer
    }
}

fn long(name: &str, bytes: usize) -> String {
    format!("{name} {}", "x".repeat(bytes.saturating_sub(name.len() + 1)))
}

#[tokio::test]
async fn a_question_that_does_not_fit_is_refused_before_anything_is_stored() {
    let harness = Harness::with_context().await;
    let chat = harness.new_chat().await;
    harness.turn(&chat, "one", 3000).await;
    let before = harness.stored(&chat).await;
    let question = [Content::text(long("two", 2000))];
    let refused = harness
        .chat
        .answers()
        .send(&chat, &question, &Position::End)
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextFull);
    assert_eq!(u64::try_from(CONTEXT).ok(), refused_context(&refused));
    assert_eq!(harness.stored(&chat).await, before);
    assert!(harness.engine.take_job().is_none(), "the engine was not asked");
    // On a branch where it fits it is taken.
    assert!(harness
        .chat
        .answers()
        .send(&chat, &question, &Position::Beginning)
        .await
        .is_ok());
}

fn refused_context(error: &Error) -> Option<u64> {
    serde_json::to_value(error).unwrap()["arguments"]["context"].as_u64()
}

#[tokio::test]
async fn a_question_that_only_the_engine_finds_too_long_is_taken_back_into_the_draft() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (answer, job) = harness.ask(&chat, "first").await;
    let mut events = harness.chat.answers().attach(&answer, 0).await.unwrap();
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::ContextFull, "too long")));
    let end = finished(&crate::next(&mut events).await);
    assert_eq!(end.error.unwrap().code, ErrorCode::ContextFull);
    let view = harness.chat.chats().get(&chat).await.unwrap();
    assert!(view.messages.is_empty());
    assert_eq!(
        (view.draft, view.summary.title.as_str()),
        (vec![Content::text("first")], "")
    );
    assert!(!view.summary.running);

    // Another answer to a question that stays is told as failed, because the question was there before.
    let (answer, job) = harness.ask(&chat, "second").await;
    job.events.send(text("said", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;
    let view = harness.chat.answers().regenerate(&answer, None).await.unwrap();
    let job = harness.job().await;
    job.events
        .send(EngineEvent::Failed(Error::new(ErrorCode::ContextFull, "too long")));
    let again = view.messages.last().unwrap().id.clone();
    assert_eq!(harness.end(&again).await.state, AnswerState::Failed);
    assert_eq!(harness.stored(&chat).await.len(), 2);
}

#[tokio::test]
async fn going_on_without_the_oldest_turns_makes_room_and_deletes_nothing() {
    let harness = Harness::with_context().await;
    let chat = harness.new_chat().await;
    for name in ["one", "two", "three"] {
        harness.turn(&chat, name, 1200).await;
    }
    let question = long("four", 600);
    assert_eq!(harness.refusal(&chat, &question).await, ErrorCode::ContextFull);
    let used = harness
        .chat
        .compaction()
        .context_use(&chat, &[Content::text(question.clone())])
        .await
        .unwrap();
    assert!(used.tokens as usize >= CONTEXT && used.context == Some(CONTEXT as u32) && !used.estimated);

    let view = harness
        .chat
        .compaction()
        .drop_oldest_turns(&chat, &[Content::text(question.clone())])
        .await
        .unwrap();
    let marks: Vec<bool> = view
        .messages
        .iter()
        .map(|message| message.compaction_mark.is_some())
        .collect();
    assert_eq!(
        marks,
        [false, false, false, true, false, false],
        "the last turn and the question take half"
    );
    let asked = harness.said(&chat, &question).await;
    assert_eq!(asked.len(), 3);
    assert!(asked[0].1.starts_with("three"));
    assert_eq!(harness.stored(&chat).await.len(), 8, "all of it is there");
    assert!(harness
        .chat
        .library()
        .export_markdown(&chat)
        .await
        .unwrap()
        .contains("The model's memory begins here."));

    // The mark can be taken away, and the next cut goes on from the last.
    let cut = view.messages[3].id.clone();
    let view = harness
        .chat
        .compaction()
        .drop_oldest_turns(&chat, &[Content::text(long("five", 1500))])
        .await
        .unwrap();
    assert!(view.messages[5].compaction_mark.is_some() || view.messages[7].compaction_mark.is_some());
    for message in &view.messages {
        harness.chat.compaction().set_mark(&message.id, None).await.unwrap();
    }
    assert!(harness
        .chat
        .chats()
        .get(&chat)
        .await
        .unwrap()
        .messages
        .iter()
        .all(|message| message.compaction_mark.is_none()));
    assert_eq!(
        harness
            .chat
            .compaction()
            .set_mark(&cut, Some(&CompactionMark::default()))
            .await
            .unwrap()
            .summary
            .id,
        chat
    );

    // A question that is too long by itself is reported as such.
    let alone = harness
        .chat
        .compaction()
        .drop_oldest_turns(&chat, &[Content::text(long("six", CONTEXT))])
        .await;
    assert_eq!(alone.unwrap_err().code, ErrorCode::ContextFull);
    let empty = harness.new_chat().await;
    assert_eq!(
        harness
            .chat
            .compaction()
            .drop_oldest_turns(&empty, &[])
            .await
            .unwrap_err()
            .code,
        ErrorCode::BadRequest
    );
}

#[tokio::test]
async fn the_model_writes_a_summary_that_stands_in_place_of_what_it_forgets() {
    let harness = Harness::with_context().await;
    let chat = harness.new_chat().await;
    for name in ["one", "two", "three"] {
        harness.turn(&chat, name, 1200).await;
    }
    let question = long("four", 600);
    let (asking, content) = (harness.chat.clone(), [Content::text(question.clone())]);
    let id = chat.clone();
    let progress: Arc<Mutex<Vec<SummaryProgress>>> = Arc::default();
    let heard = progress.clone();
    let tell = move |told| heard.lock().unwrap().push(told);
    let summary = tokio::spawn(async move { asking.compaction().summarize_oldest_turns(&id, &content, tell).await });
    let mut pieces = 0;
    while !summary.is_finished() {
        if let Some(job) = harness.engine.take_job() {
            pieces += 1;
            assert_eq!(job.request.thinking_budget, Some(0));
            let shown = job.request.messages[0].text_with_placeholders();
            assert!(shown.len() < CONTEXT, "a piece fits: {}", shown.len());
            assert!(!shown.contains("three x"), "what stays is not summarised");
            assert_eq!(shown.contains("Piece 1"), pieces > 1, "each piece knows the one before");
            job.events.send(EngineEvent::Progress {
                stage: Stage::Prefill,
                done: 1,
                total: 2,
            });
            job.events.send(text(&format!("Piece {pieces}."), 1));
            job.events.send(done(FinishReason::Stop));
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let view = summary.await.unwrap().unwrap();
    assert!(pieces > 1);
    let progress = progress.lock().unwrap().clone();
    let total = progress[0].total;
    assert!(total > 2400 && progress.iter().all(|told| told.total == total && told.read <= total));
    assert!(progress.is_sorted_by_key(|told| told.read), "{progress:?}");
    assert_eq!((progress[0].read, progress[0].written), (0, 0));
    assert!(
        progress[1].read > 0 && progress[1].written == 0,
        "half of a piece: {progress:?}"
    );
    let end = progress.last().unwrap();
    assert_eq!((end.read, end.written), (total, 1));
    let told = view.messages[3].compaction_mark.clone().unwrap().summary.unwrap();
    assert_eq!(told, format!("Piece {pieces}."));
    let asked = harness.said(&chat, &question).await;
    assert_eq!(asked[0].0, Role::System);
    assert!(asked[0].1.ends_with(&told) && asked[1].1.starts_with("three"));

    // It can be written over.
    let better = CompactionMark {
        summary: Some("Cats.".into()),
    };
    harness
        .chat
        .compaction()
        .set_mark(&view.messages[3].id, Some(&better))
        .await
        .unwrap();
    assert!(harness.said(&chat, "short").await[0].1.ends_with("Cats."));
}

#[tokio::test]
async fn a_summary_can_be_stopped_and_a_bad_one_changes_nothing() {
    let harness = Harness::with_context().await;
    let chat = harness.new_chat().await;
    harness.turn(&chat, "one", 300).await;
    let before = harness.stored(&chat).await;
    let summarise = || {
        let (asking, id) = (harness.chat.clone(), chat.clone());
        tokio::spawn(async move { asking.compaction().summarize_oldest_turns(&id, &[], |_| {}).await })
    };
    let summary = summarise();
    let job = harness.job().await;
    assert_eq!(
        harness
            .chat
            .compaction()
            .summarize_oldest_turns(&chat, &[], |_| {})
            .await
            .unwrap_err()
            .code,
        ErrorCode::Busy
    );
    harness.chat.compaction().stop_summary(&chat);
    assert_eq!(summary.await.unwrap().unwrap_err().code, ErrorCode::Stopped);
    assert!(job.cancel.is_cancelled());

    let summary = summarise();
    let job = harness.job().await;
    job.events.send(text("  \n", 1));
    job.events.send(done(FinishReason::Stop));
    assert_eq!(summary.await.unwrap().unwrap_err().code, ErrorCode::Engine);
    assert_eq!(harness.stored(&chat).await, before);
}

#[tokio::test]
async fn a_new_chat_carries_the_summary_of_another() {
    let harness = Harness::with_context().await;
    let settings = ChatSettings {
        system_prompt: "Be short.".into(),
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    harness.turn(&chat, "one", 300).await;
    let (asking, id) = (harness.chat.clone(), chat.clone());
    let made = tokio::spawn(async move {
        asking
            .compaction()
            .fork_with_summary(&id, "one, continued", |_| {})
            .await
    });
    let job = harness.job().await;
    job.events.send(text("They spoke of one.", 1));
    job.events.send(done(FinishReason::Stop));
    let view = made.await.unwrap().unwrap();
    assert_eq!(view.summary.title, "one, continued");
    assert_eq!(view.settings.carried_summary, "They spoke of one.");
    assert!(view.messages.is_empty());
    let asked = harness.said(&view.summary.id, "And now?").await;
    assert_eq!(asked[0].0, Role::System);
    assert!(asked[0].1.starts_with("Be short.\n\n") && asked[0].1.ends_with("They spoke of one."));
    assert!(harness
        .chat
        .library()
        .export_markdown(&view.summary.id)
        .await
        .unwrap()
        .contains("They spoke of one."));
}
