//! Whatever comes and goes: no job is lost, each ends exactly once, and nothing of it stays in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{hear, pebble, pebble_dir, question, source, Heard};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Engine, ErrorCode, FinishReason, FolderSource, KvBits, LocalEngine, MemoryGuard, Message, Priority, Request, Role,
    Sampling, Thinking,
};

/// Random numbers that are the same every time.
#[derive(Debug)]
struct Random(AtomicU64);

impl Random {
    fn below(&self, bound: u64) -> u64 {
        let next = |state: u64| {
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let last = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| Some(next(state)));
        (next(last.unwrap()) >> 33) % bound
    }
}

/// Now there is room for a second model, now there is not, and now and then not even for a prompt.
impl MemoryGuard for Random {
    fn before_load(&self, _: &FolderSource, _: &str, kept: u64, _: u64) -> protocol::Result<()> {
        match kept == 0 || self.below(2) == 0 {
            true => Ok(()),
            false => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
        }
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        match self.below(20) {
            0 => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
            _ => Ok(()),
        }
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

fn request(random: &Random, models: &[FolderSource; 2]) -> Request {
    let words = |count: u64, salt: u64| -> String {
        (0..count)
            .map(|word| format!("{} ", (word * 7919 + salt * 104_729) % 9973))
            .collect()
    };
    let model = models[usize::from(random.below(6) == 0)].clone();
    let asked = match random.below(3) {
        0 => question("What is 347 + 589?", Thinking::On),
        1 => question(&words(40 + random.below(60), random.below(5)), Thinking::Off),
        _ => question("Tell me a story.", Thinking::Off),
    };
    let sampling = match random.below(3) {
        0 => Sampling {
            temperature: Some(1.1),
            seed: Some(random.below(9)),
            ..Sampling::default()
        },
        1 => Sampling {
            repetition_penalty: Some(1.2),
            ..Sampling::greedy()
        },
        _ => Sampling::greedy(),
    };
    Request {
        model: model.into(),
        sampling,
        max_tokens: Some(1 + random.below(40) as u32),
        thinking_budget: (random.below(4) == 0).then(|| random.below(12) as u32),
        kv_bits: [None, None, Some(KvBits::Eight), Some(KvBits::Four)][random.below(4) as usize],
        top_logprobs: (random.below(5) == 0).then(|| random.below(6) as u8),
        priority: [Priority::Chat, Priority::Api, Priority::Api, Priority::Background][random.below(4) as usize],
        ..asked
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_joins_leaves_errors_and_model_changes_lose_no_job_and_leave_nothing_behind() {
    let _alone = crate::ALONE.lock().await;
    const OPEN: usize = 12;
    let span = Duration::from_secs(if std::env::var_os("PONDER_FULL").is_some() {
        600
    } else {
        5
    });
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(pebble_dir()).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let models = [pebble(), source(folder.path())];
    let random = Arc::new(Random(AtomicU64::new(20_261_121)));
    let engine = MlxEngine::with_options(EngineOptions {
        memory_guard: Some(Arc::new(Random(AtomicU64::new(7)))),
        ..EngineOptions::default()
    });
    let before = engine.memory().await.unwrap().active;
    let (start, mut open, mut heard): (_, Vec<tokio::task::JoinHandle<Heard>>, Vec<Heard>) =
        (Instant::now(), Vec::new(), Vec::new());
    let mut unloads = 0;
    // A computer that is busy otherwise takes longer for as many.
    while start.elapsed() < span || heard.len() < 4 * OPEN {
        let request = request(&random, &models);
        let model = request.model.reference();
        let job = match random.below(14) {
            0 => engine.panicking_job(request, random.below(4) as usize),
            1 => engine.generate(Request {
                messages: vec![Message::text(Role::User, "word ".repeat(5000))],
                ..request
            }),
            _ => engine.generate(request),
        };
        let (cancel, now) = (job.cancel.clone(), job.end_thinking.clone());
        open.push(tokio::spawn(hear(job)));
        match random.below(16) {
            0..=2 => {
                tokio::time::sleep(Duration::from_millis(random.below(20))).await;
                cancel.cancel();
            }
            3 => now.answer_now(),
            4 => engine.prefetch(Request::new(
                pebble(),
                vec![Message::text(Role::User, "What comes next?")],
            )),
            5 => drop(engine.memory().await.unwrap()),
            6 => {
                unloads += 1;
                tokio::spawn(engine.unload(&model));
            }
            _ => {}
        }
        while open.len() >= OPEN {
            let one = open.remove(random.below(OPEN as u64) as usize);
            heard.push(
                tokio::time::timeout(Duration::from_secs(120), one)
                    .await
                    .expect("nobody waits for ever")
                    .unwrap(),
            );
        }
    }
    for one in open {
        heard.push(
            tokio::time::timeout(Duration::from_secs(120), one)
                .await
                .expect("nobody waits for ever")
                .unwrap(),
        );
    }
    let (mut failed, mut cancelled) = (0, 0);
    for one in &heard {
        assert_eq!(one.ends.len(), 1, "{one:?}");
        match &one.ends[0] {
            Ok(done) => cancelled += usize::from(done.finish_reason == FinishReason::Cancelled),
            Err(error) => {
                failed += 1;
                let expected = [
                    ErrorCode::Engine,
                    ErrorCode::MemoryShort,
                    ErrorCode::ContextFull,
                    ErrorCode::Busy,
                ];
                assert!(expected.contains(&error.code), "{error}");
            }
        }
    }
    println!(
        "report: soak {} answers in {:?}: {failed} failed, {cancelled} were cancelled, {unloads} models were unloaded on the way",
        heard.len(),
        start.elapsed()
    );
    assert!(
        heard.len() > OPEN && failed > 0 && cancelled > 0,
        "{} ended, {failed} failed, {cancelled} cancelled",
        heard.len()
    );
    let held = engine.inspect().unwrap();
    assert_eq!(
        held.living,
        (held.tensors + held.prefix_cache_tensors) as i64,
        "no job left anything behind"
    );
    // The engine is as good as new.
    let sum = hear(engine.generate(question("What is 347 + 589?", Thinking::On))).await;
    assert!(sum.ends[0].is_err() || sum.text.contains("936"), "{sum:?}");
    engine.unload_all().await.unwrap();
    assert_eq!(engine.inspect().unwrap().living, 0);
    let after = engine.memory().await.unwrap().active;
    assert!(after <= before + (1 << 20), "{after} bytes are left of {before}");
}
