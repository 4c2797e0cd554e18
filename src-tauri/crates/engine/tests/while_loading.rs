//! While a model loads: others go on answering, a cancelled job ends at once, and closing the engine waits for nothing.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{hear, pebble, question};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Engine, EngineEvent, ErrorCode, FinishReason, FolderSource, JobHandle, LoadEvent, LocalEngine, MemoryGuard, Message, Request, Role,
    Sampling, Stage, Thinking,
};
use serde_json::json;

/// As much memory as anybody wants.
#[derive(Debug)]
struct Plenty;

impl MemoryGuard for Plenty {
    fn before_load(&self, _: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

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

/// Waits until a part of the model is there.
async fn is_loading(job: &mut JobHandle) {
    loop {
        match job.events.recv().await.unwrap() {
            EngineEvent::Progress {
                stage: Stage::Load, done, ..
            } if done > 0 => return,
            EngineEvent::Progress { .. } => {}
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

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_model_loads() {
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

    // A job that waits ends at once when it is cancelled, whatever it waits for.
    let mut first = engine.generate(to_large(&model));
    is_loading(&mut first).await;
    let (same, other) = (engine.generate(to_large(&model)), engine.generate(question("Hi", Thinking::Off)));
    let start = Instant::now();
    for job in [same, other] {
        job.cancel.cancel();
        assert_eq!(hear(job).await.done().finish_reason, FinishReason::Cancelled);
    }
    let ended = start.elapsed();
    assert!(
        engine.memory().await.unwrap().active > 0 && engine.loaded().is_empty(),
        "it still loads"
    );
    // So does the one that the load is for; who waits for the same model is answered all the same.
    let mut waiting = engine.generate(to_large(&model));
    is_loading(&mut waiting).await;
    let start = Instant::now();
    first.cancel.cancel();
    assert_eq!(hear(first).await.done().finish_reason, FinishReason::Cancelled);
    let ended = ended.max(start.elapsed());
    assert!(engine.loaded().is_empty(), "it still loads");
    println!("report: a cancelled job ended after {ended:?} of a load of {whole:?}");
    assert!(ended < whole / 3, "{ended:?} of {whole:?}");
    assert_eq!(hear(waiting).await.done().timing.load_ms, 0.0, "the load went on");

    // A load that nobody wants any more is given up, and nothing of it stays.
    engine.unload_all().await.unwrap();
    let mut first = engine.generate(to_large(&model));
    is_loading(&mut first).await;
    first.cancel.cancel();
    hear(first).await.done();
    assert_eq!(engine.inspect().unwrap().living, 0);

    // A loaded model answers while another one loads.
    load_time(&engine, &pebble()).await;
    let alone = hear(engine.generate(question("What is 347 + 589?", Thinking::On))).await;
    let mut loading = engine.generate(to_large(&model));
    is_loading(&mut loading).await;
    let mut beside = engine.generate(question("What is 347 + 589?", Thinking::On));
    while !matches!(beside.events.recv().await.unwrap(), EngineEvent::Delta { .. }) {}
    assert_eq!(engine.loaded().len(), 1, "the other one still loads");
    let beside = hear(beside).await;
    assert_eq!(beside.text, alone.text);
    hear(loading).await.done();
    let info = engine.loaded().into_iter().find(|info| info.reference == model.reference).unwrap();
    let expected = info.parameters * 4;
    assert!(
        info.resident_bytes.abs_diff(expected) < expected / 10,
        "{} are told, {expected} expected",
        info.resident_bytes
    );
    engine.unload_all().await.unwrap();
    assert_eq!(engine.inspect().unwrap().living, 0);

    // Closing the engine ends everything.
    load_time(&engine, &pebble()).await;
    let running = engine.generate(question("Tell me a story.", Thinking::Off));
    let mut loading = engine.generate(to_large(&model));
    is_loading(&mut loading).await;
    let waiting = engine.generate(to_large(&model));
    let start = Instant::now();
    drop(engine);
    let closed = start.elapsed();
    println!("report: the engine closed in {closed:?} in the middle of a load and an answer");
    assert!(closed < Duration::from_secs(2), "{closed:?}");
    assert_eq!(hear(running).await.ends.len(), 1);
    assert_eq!(hear(loading).await.ends.len(), 1);
    assert_eq!(hear(waiting).await.error().code, ErrorCode::EngineGone);
    assert!(start.elapsed() < Duration::from_secs(2));
}
