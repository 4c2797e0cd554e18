//! While a model loads: others go on answering, a cancelled job ends at once, and closing the engine waits for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{hear, pebble, question, Heard, Plenty};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Engine, EngineEvent, ErrorCode, FinishReason, FolderSource, JobHandle, LoadEvent, LocalEngine, Message, Request,
    Role, Sampling, Stage, Thinking,
};
use serde_json::json;

/// A model whose load takes long enough to do something meanwhile.
fn large(folder: &std::path::Path) -> FolderSource {
    let config = json!({"model_type": "llama", "hidden_size": 768, "num_hidden_layers": 24, "intermediate_size": 2304,
        "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "rms_norm_eps": 1e-6, "vocab_size": 2048,
        "max_position_embeddings": 4096, "rope_theta": 10_000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "hidden_act": "silu", "eos_token_id": 1, "quantization": {"group_size": 64, "bits": 4, "mode": "affine"}});
    random_models::write_model(&config, folder).unwrap()
}

fn to_large(model: &FolderSource) -> Request {
    Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(2),
        ..Request::new(model.clone(), vec![Message::text(Role::User, "<unk>")])
    }
}

/// Waits until a part of the model is there; `false` if all of it is.
async fn is_loading(job: &mut JobHandle) -> bool {
    loop {
        match job.events.recv().await.unwrap() {
            EngineEvent::Progress {
                stage: Stage::Load,
                done,
                total,
            } if done > 0 => return done < total,
            EngineEvent::Progress { .. } => {}
            EngineEvent::Started { .. } => return false,
            other => panic!("{other:?}"),
        }
    }
}

/// How long a load takes here and now.
async fn load_time(engine: &MlxEngine, model: &FolderSource) -> Duration {
    let start = Instant::now();
    let mut events = engine.load(model.clone());
    let mut last = None;
    while let Some(event) = events.recv().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(LoadEvent::Ready(_))), "{last:?}");
    start.elapsed()
}

/// How long jobs that wait for a load, and the one it is for, take to end after they were cancelled; `None` if the
/// model had been loaded before.
async fn ended_while_loading(engine: &MlxEngine, model: &FolderSource) -> Option<Duration> {
    let mut first = engine.generate(to_large(model));
    is_loading(&mut first).await;
    let (same, other) = (
        engine.generate(to_large(model)),
        engine.generate(question("Hi", Thinking::Off)),
    );
    let start = Instant::now();
    for job in [same, other] {
        job.cancel.cancel();
        assert_eq!(hear(job).await.done().finish_reason, FinishReason::Cancelled);
    }
    let ended = start.elapsed();
    let some = engine.memory().await.unwrap().active > 0;
    // So does the one that the load is for; who waits for the same model is answered all the same.
    let mut waiting = engine.generate(to_large(model));
    if !is_loading(&mut waiting).await {
        return None;
    }
    let start = Instant::now();
    first.cancel.cancel();
    let first = hear(first).await;
    let ended = ended.max(start.elapsed());
    if !engine.loaded().is_empty() {
        return None;
    }
    assert_eq!(first.done().finish_reason, FinishReason::Cancelled);
    assert!(some, "a part of it was there");
    assert_eq!(hear(waiting).await.done().timing.load_ms, 0.0, "the load went on");
    Some(ended)
}

/// True if a load that no request waits for any more is given up, and nothing of it stays.
async fn is_given_up(engine: &MlxEngine, model: &FolderSource) -> bool {
    let mut first = engine.generate(to_large(model));
    is_loading(&mut first).await;
    first.cancel.cancel();
    hear(first).await.done();
    engine.loaded().is_empty() && engine.inspect().unwrap().living == 0
}

/// True if a model that is loaded answers while another one loads.
async fn answers_while_loading(engine: &MlxEngine, model: &FolderSource) -> bool {
    let sum = || question("What is 347 + 589?", Thinking::On);
    let alone = hear(engine.generate(sum())).await;
    let mut loading = engine.generate(to_large(model));
    is_loading(&mut loading).await;
    let mut beside = engine.generate(sum());
    while !matches!(beside.events.recv().await.unwrap(), EngineEvent::Delta { .. }) {}
    let still_loads = engine.loaded().len() == 1;
    assert_eq!(hear(beside).await.text, alone.text);
    hear(loading).await.done();
    let info = engine
        .loaded()
        .into_iter()
        .find(|info| info.reference == model.reference)
        .unwrap();
    // Four bits, and a scale and a bias of 16 bits for each 64.
    let expected = info.parameters * 9 / 16;
    assert!(
        info.resident_bytes.abs_diff(expected) < expected / 10,
        "{} are told, {expected} expected",
        info.resident_bytes
    );
    still_loads
}

/// How long an engine takes to close that answers, loads and is waited for; `None` if it had loaded before.
async fn close_while_loading(model: &FolderSource) -> Option<Duration> {
    let engine = MlxEngine::with_options(EngineOptions {
        memory_guard: Some(Arc::new(Plenty)),
        ..EngineOptions::default()
    });
    load_time(&engine, &pebble()).await;
    let running = engine.generate(question("Tell me a story.", Thinking::Off));
    let mut loading = engine.generate(to_large(model));
    is_loading(&mut loading).await;
    let waiting = engine.generate(to_large(model));
    let start = Instant::now();
    drop(engine);
    let closed = start.elapsed();
    let (running, loading, waiting) = (hear(running).await, hear(loading).await, hear(waiting).await);
    assert_eq!((running.ends.len(), loading.ends.len(), waiting.ends.len()), (1, 1, 1));
    let gone = |heard: &Heard| matches!(&heard.ends[0], Err(error) if error.code == ErrorCode::EngineGone);
    let cancelled = |heard: &Heard| matches!(&heard.ends[0], Ok(done) if done.finish_reason == FinishReason::Cancelled);
    (gone(&waiting) && (gone(&loading) || cancelled(&loading))).then_some(closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_model_loads() {
    let _alone = crate::ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let model = large(folder.path());
    let engine = MlxEngine::with_options(EngineOptions {
        memory_guard: Some(Arc::new(Plenty)),
        ..EngineOptions::default()
    });
    load_time(&engine, &model).await;
    engine.unload_all().await.unwrap();
    let whole = load_time(&engine, &model).await;
    engine.unload_all().await.unwrap();
    println!("report: a load of {whole:?} to do something meanwhile");

    // A busy computer may load all of it before anything else is looked at, so each is tried several times.
    let mut ended = None;
    for _ in 0..5 {
        ended = ended_while_loading(&engine, &model).await;
        engine.unload_all().await.unwrap();
        if ended.is_some() {
            break;
        }
    }
    let ended = ended.expect("cancelled jobs end before the load does");
    println!("report: a cancelled job ended after {ended:?} of a load of {whole:?}");

    let mut given_up = false;
    for _ in 0..5 {
        given_up = given_up || is_given_up(&engine, &model).await;
        engine.unload_all().await.unwrap();
    }
    assert!(given_up, "a load that nobody wants any more goes on");
    assert_eq!(engine.inspect().unwrap().living, 0);

    load_time(&engine, &pebble()).await;
    let mut answered = false;
    for _ in 0..5 {
        answered = answered || answers_while_loading(&engine, &model).await;
        engine.unload(&model.reference).await.unwrap();
    }
    assert!(answered, "a loaded model answers while another one loads");
    engine.unload_all().await.unwrap();
    assert_eq!(engine.inspect().unwrap().living, 0);

    drop(engine);

    let mut closed = None;
    for _ in 0..5 {
        closed = close_while_loading(&model).await;
        if closed.is_some() {
            break;
        }
    }
    let closed = closed.expect("closing waits for no load");
    println!("report: the engine closed in {closed:?} in the middle of a load and an answer");
}
