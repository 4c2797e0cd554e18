//! Invariants of the engine: one thread owns the arrays, nothing lazy survives loading, every job ends exactly once,
//! and the worker outlives it all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{hear, pebble, pebble_dir, question, source};
use engine::MlxEngine;
use protocol::{Engine, EngineEvent, ErrorCode, FinishReason, LoadEvent, LocalEngine, Request, Thinking};

async fn load(engine: &MlxEngine, model: protocol::FolderSource) -> Vec<LoadEvent> {
    let mut events = engine.load(model);
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    all
}

#[tokio::test]
async fn nothing_is_left_to_compute_after_a_load() {
    let engine = MlxEngine::start();
    let events = load(&engine, pebble()).await;
    let Some(LoadEvent::Ready(info)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(
        events
            .iter()
            .filter(|event| !matches!(event, LoadEvent::Progress { .. }))
            .count(),
        1
    );
    assert_eq!((info.family.as_str(), info.context), ("gemma4", 4096));
    // The embedding counts once, though the output layer shares it; the tower counts too.
    assert!(
        (17_000_000..18_000_000).contains(&info.parameters),
        "{}",
        info.parameters
    );
    let held = engine.inspect().unwrap();
    assert!(held.tensors > 100, "{held:?}");
    assert_eq!(held.unevaluated, 0);
}

#[tokio::test]
async fn every_array_is_dropped_by_the_worker() {
    let engine = MlxEngine::start();
    hear(engine.generate(question("Hi", Thinking::Off))).await.done();
    let loaded = engine.inspect().unwrap();
    let kept = loaded.tensors + loaded.prefix_cache_tensors;
    assert_eq!(
        loaded.living, kept as i64,
        "an answer leaves the model and copies of what was read"
    );
    assert!(
        loaded.prefix_cache_tensors > 0 && loaded.prefix_cache_bytes > 0,
        "{loaded:?}"
    );

    engine.unload_all().await.unwrap();
    assert!(engine.loaded().is_empty());
    // Handles are counted by thread: one that was dropped elsewhere would be missing here. MLX's allocations are
    // counted for the whole process, so `memory.rs` checks them alone.
    assert_eq!(engine.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn a_panic_in_a_job_is_one_error_and_the_next_job_works() {
    let engine = MlxEngine::start();
    let heard = hear(engine.panicking_job(question("What is 347 + 589?", Thinking::On), 1)).await;
    assert_eq!(heard.error().code, ErrorCode::Engine);
    assert_eq!(
        hear(engine.generate(question("What is 347 + 589?", Thinking::On)))
            .await
            .text,
        "347 + 589 = **936**"
    );
}

#[tokio::test]
async fn loading_by_another_path_replaces_the_model() {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(pebble_dir()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let engine = MlxEngine::start();
    let first = load(&engine, pebble()).await;
    let held = engine.inspect().unwrap();
    let second = load(&engine, source(copy.path())).await;
    let (Some(LoadEvent::Ready(first)), Some(LoadEvent::Ready(second))) = (first.last(), second.last()) else {
        panic!("{second:?}")
    };
    assert_eq!(
        first.revision, second.revision,
        "the same bytes have the same fingerprint"
    );
    assert_eq!(engine.loaded()[0].reference, copy.path().display().to_string());
    assert_eq!(engine.inspect().unwrap(), held, "the first model is gone");
    let Some(LoadEvent::Ready(_)) = load(&engine, source(copy.path())).await.last() else {
        panic!("a loaded model is ready at once")
    };
}

#[tokio::test]
async fn a_cancelled_job_ends_soon_and_says_so() {
    let engine = MlxEngine::start();
    let mut job = engine.generate(question("Tell me a story.", Thinking::Off));
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Delta { .. }) => break,
            Some(EngineEvent::Progress { .. } | EngineEvent::Started { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    job.cancel.cancel();
    let start = Instant::now();
    let heard = hear(job).await;
    println!("report: an answer ended {:?} after it was cancelled", start.elapsed());
    assert_eq!(heard.done().finish_reason, FinishReason::Cancelled);
}

#[tokio::test]
async fn the_memory_is_told_while_an_answer_runs() {
    let engine = MlxEngine::start();
    let mut story = engine.generate(question("Tell me a story.", Thinking::Off));
    while !matches!(story.events.recv().await, Some(EngineEvent::Delta { .. })) {}
    assert!(engine.memory().await.unwrap().active > 0);
    story.cancel.cancel();
    assert_eq!(
        hear(story).await.done().finish_reason,
        FinishReason::Cancelled,
        "the answer was still running"
    );
}

#[tokio::test]
async fn a_request_that_makes_no_sense_loads_nothing() {
    let engine = MlxEngine::start();
    let mut request = question("Hi", Thinking::Off);
    request.sampling.temperature = Some(-1.0);
    assert_eq!(hear(engine.generate(request)).await.error().code, ErrorCode::BadRequest);
    assert!(engine.loaded().is_empty());
}

#[tokio::test]
async fn a_load_is_given_up_when_its_job_is_cancelled() {
    let engine = MlxEngine::start();
    let mut given_up = false;
    // On a busy computer the load may be over before the cancel arrives.
    for _ in 0..10 {
        let mut job = engine.generate(question("Hi", Thinking::Off));
        assert!(matches!(job.events.recv().await, Some(EngineEvent::Progress { .. })));
        job.cancel.cancel();
        let heard = hear(job).await;
        assert_eq!(heard.done().finish_reason, FinishReason::Cancelled);
        given_up |= heard.started.is_none() && engine.loaded().is_empty();
        engine.unload_all().await.unwrap();
    }
    assert!(given_up);
    assert_eq!(
        engine.inspect().unwrap().living,
        0,
        "nothing of the given up load is left"
    );
    let heard = hear(engine.generate(question("Hi", Thinking::Off))).await;
    assert_eq!(heard.done().finish_reason, FinishReason::Stop);
}

#[tokio::test]
async fn dropping_the_engine_ends_running_and_waiting_jobs() {
    let engine = MlxEngine::start();
    let running = engine.generate(question("Tell me a story.", Thinking::Off));
    let waiting = engine.generate(question("Hi", Thinking::Off));
    drop(engine);
    assert_eq!(hear(running).await.ends.len(), 1);
    assert_eq!(hear(waiting).await.error().code, ErrorCode::EngineGone);
}

#[test]
fn twenty_threads_of_jobs_and_cancels_lose_none() {
    const THREADS: usize = 20;
    let span = Duration::from_secs(if std::env::var_os("PONDER_FULL").is_some() {
        30
    } else {
        5
    });
    let engine = MlxEngine::start();
    let (sent, ended, cancelled) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, sent, ended, cancelled) = (engine.clone(), &sent, &ended, &cancelled);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .unwrap();
                let mut round = thread;
                while start.elapsed() < span {
                    round += 1;
                    let request = Request {
                        max_tokens: Some(3 + (round % 5) as u32),
                        ..question("What is 2 + 3?", Thinking::Off)
                    };
                    let job = engine.generate(request);
                    sent.fetch_add(1, Ordering::Relaxed);
                    if round % 3 == 0 {
                        std::thread::sleep(Duration::from_millis((round % 7) as u64));
                        job.cancel.cancel();
                    }
                    let heard = runtime
                        .block_on(async { tokio::time::timeout(Duration::from_secs(120), hear(job)).await })
                        .expect("no deadlock");
                    let done = heard.done();
                    ended.fetch_add(1, Ordering::Relaxed);
                    cancelled.fetch_add(
                        usize::from(done.finish_reason == FinishReason::Cancelled),
                        Ordering::Relaxed,
                    );
                }
            });
        }
    });
    let (sent, ended, cancelled) = (sent.into_inner(), ended.into_inner(), cancelled.into_inner());
    assert_eq!(sent, ended);
    assert!(ended > THREADS && cancelled > 0, "{ended} jobs, {cancelled} cancelled");
    let held = engine.inspect().unwrap();
    assert_eq!(
        held.living,
        (held.tensors + held.prefix_cache_tensors) as i64,
        "no job left anything behind"
    );
}
