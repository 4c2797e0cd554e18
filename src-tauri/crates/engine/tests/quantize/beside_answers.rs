//! Answers while a model is quantized.

use std::sync::mpsc::channel;
use std::time::Duration;

use engine::MlxEngine;
use protocol::{CancelFlag, Engine, EngineEvent, Message, Request, Role, Sampling, Thinking};

use crate::common::pebble;
use crate::failures::{model, recipe};

/// The time that an answer of a few tokens may take on a busy computer.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_ends_while_a_model_is_quantized() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (model(folder.path()), folder.path().join("copy"));
    let engine = MlxEngine::start();
    let (begun, has_begun) = channel();
    let (ended, has_ended) = channel();
    let writing = tokio::task::spawn_blocking({
        let engine = engine.clone();
        move || {
            let mut first = true;
            engine.quantize(&source, &target, recipe(64), CancelFlag::default(), |_| {
                // The first tensor is written, others are left.
                if std::mem::take(&mut first) {
                    begun.send(()).unwrap();
                    has_ended.recv_timeout(PATIENCE).unwrap();
                }
            })
        }
    });
    tokio::task::spawn_blocking(move || has_begun.recv_timeout(PATIENCE).unwrap())
        .await
        .unwrap();
    let request = Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling::greedy(),
        max_tokens: Some(8),
        ..Request::new(pebble(), vec![Message::text(Role::User, "What is 3 plus 4?")])
    };
    let mut job = engine.generate(request);
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Done(_)) => break,
            Some(EngineEvent::Failed(error)) => panic!("{error}"),
            Some(_) => (),
            None => panic!("the engine is gone"),
        }
    }
    ended.send(()).unwrap();
    let written = writing.await.unwrap().unwrap();
    assert!(written.bytes < written.source_bytes);
}
