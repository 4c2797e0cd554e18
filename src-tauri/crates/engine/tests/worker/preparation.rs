//! Requests on their way to the worker: whatever a template or a tokenizer takes, the answers that run go on, and
//! nothing is done for whoever has left.

use std::path::Path;
use std::time::Duration;

use engine::MlxEngine;
use protocol::{Engine, EngineEvent, ErrorCode, FinishReason, JobHandle, LocalEngine, Priority, Request, Thinking};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::common::files::edit_config;
use crate::common::{copy_pebble, hear, question, source};

/// Less than the time that a template has, and more than anything else here takes.
const LIMIT: Duration = Duration::from_secs(15);

/// A message that the template below reads for longer than it may, and that is not refused by its bytes.
fn sloths() -> String {
    "A sloth. ".repeat(6000)
}

/// Pebble with a template that counts the words about sloths again and again. Fuel alone would end cheaper steps.
fn slow_pebble() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_pebble(folder.path());
    let file = folder.path().join("chat_template.jinja");
    let template = std::fs::read_to_string(&file).unwrap();
    let slow = "{%- if messages and messages[-1].content is string and 'sloth' in messages[-1].content -%}\
        {%- for a in range(99999) -%}{%- for b in range(20) -%}\
        {%- if messages[-1].content | wordcount == 0 -%}{%- endif -%}\
        {%- endfor -%}{%- endfor -%}{%- endif -%}";
    std::fs::write(file, format!("{slow}{template}")).unwrap();
    folder
}

fn ask(folder: &Path, text: &str, priority: Priority) -> Request {
    Request {
        model: source(folder).into(),
        priority,
        max_tokens: Some(3000),
        ..question(text, Thinking::Off)
    }
}

/// A long answer that has begun.
async fn running(engine: &MlxEngine, folder: &Path) -> JobHandle {
    let mut job = engine.generate(ask(folder, "Count from 1 to 500.", Priority::Chat));
    while !matches!(job.events.recv().await, Some(EngineEvent::Delta { .. })) {}
    job
}

/// The tokens of a running answer that come before anything of another, at most `enough`.
async fn tokens_before(running: &mut JobHandle, other: &mut JobHandle, enough: usize) -> usize {
    let mut come = 0;
    while come < enough {
        tokio::select! {
            biased;
            _ = other.events.recv() => break,
            event = running.events.recv() => match event {
                Some(EngineEvent::Delta { tokens, .. }) => come += tokens.len(),
                Some(EngineEvent::Done(_) | EngineEvent::Failed(_)) | None => panic!("it ends: {event:?}"),
                Some(_) => {}
            },
        }
    }
    come
}

async fn is_cancelled(job: JobHandle) {
    job.cancel.cancel();
    let heard = timeout(LIMIT, hear(job)).await.unwrap();
    assert_eq!(heard.done().finish_reason, FinishReason::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_while_the_template_of_another_is_slow() {
    let (engine, folder) = (MlxEngine::start(), slow_pebble());
    let mut answer = running(&engine, folder.path()).await;
    for priority in [Priority::Chat, Priority::Api] {
        let mut slow = engine.generate(ask(folder.path(), &sloths(), priority));
        assert_eq!(tokens_before(&mut answer, &mut slow, 40).await.min(40), 40);
        is_cancelled(slow).await;
    }
    is_cancelled(answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_while_a_huge_message_is_tokenized() {
    let (engine, folder) = (MlxEngine::start(), slow_pebble());
    edit_config(folder.path(), |config| {
        config["text_config"]["max_position_embeddings"] = 4_000_000.into();
    });
    let mut answer = running(&engine, folder.path()).await;
    let huge = "Every word of this is read by nobody. ".repeat(100_000);
    let mut other = engine.generate(ask(folder.path(), &huge, Priority::Api));
    let come = tokens_before(&mut answer, &mut other, 40).await;
    println!(
        "report: {come} tokens of an answer come while a message of {} bytes is tokenized",
        huge.len()
    );
    assert!(come >= 10, "{come}");
    is_cancelled(other).await;
    is_cancelled(answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_answered_before_a_slow_one_and_its_end_frees_its_place() {
    let (engine, folder) = (MlxEngine::start(), slow_pebble());
    engine.set_max_sequences(1);
    let mut slow = engine.generate(ask(folder.path(), &sloths(), Priority::Api));
    let sum = |priority| engine.generate(ask(folder.path(), "What is 2 + 3?", priority));
    let chat = timeout(LIMIT, hear(sum(Priority::Chat))).await.unwrap();
    let program = sum(Priority::Api);
    // It hears of the model's load alone.
    while let Some(event) = slow.events.try_recv() {
        assert!(matches!(event, EngineEvent::Progress { .. }), "{event:?}");
    }
    is_cancelled(slow).await;
    let program = timeout(LIMIT, hear(program)).await.unwrap();
    assert_eq!(chat.done().finish_reason, FinishReason::Stop);
    assert_eq!(program.tokens, chat.tokens);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_rendering_makes_short_enough_is_refused_by_its_bytes() {
    let (engine, folder) = (MlxEngine::start(), slow_pebble());
    let sloths = "A sloth. ".repeat(10_000);
    let refused = hear(engine.generate(ask(folder.path(), &sloths, Priority::Chat)));
    let refused = timeout(LIMIT, refused).await.unwrap();
    assert_eq!(refused.error().code, ErrorCode::ContextFull, "{}", refused.error());
    assert!(engine.loaded().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_wait_for_each_other_and_end_when_their_callers_leave() {
    let (engine, folder) = (MlxEngine::start(), slow_pebble());
    let count = |text: &str| tokio::spawn(engine.count(ask(folder.path(), text, Priority::Chat)));
    let slow: Vec<_> = (0..4).map(|_| count(&sloths())).collect();
    let mut sum = count("What is 2 + 3?");
    // Two of them have their places.
    assert!(timeout(Duration::from_millis(500), &mut sum).await.is_err());
    // An answer waits for none of them.
    let answer = engine.generate(ask(folder.path(), "What is 2 + 3?", Priority::Chat));
    let answer = timeout(LIMIT, hear(answer)).await.unwrap();
    slow.iter().for_each(|count| count.abort());
    let counted = timeout(LIMIT, sum).await.unwrap().unwrap().unwrap();
    assert_eq!(answer.started, Some(counted.tokens));
}
