//! Answers of programs that are paused for a chat: they say what they say alone, and all of them end.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{hear, pebble, question, Heard};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Engine, EngineEvent, ErrorCode, FinishReason, FolderSource, JobHandle, KvBits, LocalEngine, MemoryGuard, Priority,
    Request, Sampling, Stage, Thinking,
};
use serde_json::json;

/// So much memory for reading as a test says.
#[derive(Debug)]
struct Room {
    bytes: AtomicU64,
    /// The most that was asked for.
    asked: AtomicU64,
}

impl MemoryGuard for Room {
    fn before_load(&self, _: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, bytes: u64, _: &str, _: u64) -> protocol::Result<()> {
        self.asked.fetch_max(bytes, Ordering::Relaxed);
        match bytes <= self.bytes.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
        }
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

async fn loaded(options: EngineOptions) -> MlxEngine {
    let engine = MlxEngine::with_options(options);
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    engine
}

fn story(tokens: u32) -> Request {
    Request {
        max_tokens: Some(tokens),
        ..question("Tell me a story.", Thinking::Off)
    }
}

/// Requests of programs that a pause could harm in different ways.
fn programs() -> Vec<(&'static str, Request)> {
    let sampled = Sampling {
        temperature: Some(1.1),
        repetition_penalty: Some(1.2),
        seed: Some(11),
        ..Sampling::default()
    };
    let words: Vec<String> = (0..300).map(|word| format!("{}", (word * 7919) % 9973)).collect();
    let requests = vec![
        ("plain", story(150)),
        (
            "sampled under a schema",
            Request {
                sampling: sampled.clone(),
                schema: Some(json!({"type": "array", "items": {"type": "integer"}, "minItems": 200})),
                ..story(150)
            },
        ),
        (
            "packed keys",
            Request {
                kv_bits: Some(KvBits::Eight),
                ..story(140)
            },
        ),
        (
            "a thought that is ended, sampled",
            Request {
                sampling: sampled,
                thinking_budget: Some(40),
                max_tokens: Some(120),
                ..question("What is 347 + 589?", Thinking::On)
            },
        ),
        (
            "a long prompt",
            Request {
                max_tokens: Some(30),
                ..question(&format!("{}. What is 2 + 3?", words.join(" ")), Thinking::Off)
            },
        ),
    ];
    let by_program = |request| Request {
        priority: Priority::Api,
        ..request
    };
    requests
        .into_iter()
        .map(|(name, request)| (name, by_program(request)))
        .collect()
}

/// Waits until the prompt is being read or, if it is short, has been.
async fn has_begun(job: &mut JobHandle) {
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Delta { .. }) | None => return,
            Some(EngineEvent::Progress {
                stage: Stage::Prefill,
                done,
                ..
            }) if done > 0 => return,
            Some(EngineEvent::Failed(error)) => panic!("{error}"),
            Some(_) => {}
        }
    }
}

/// That an answer whose first events may have been heard already is the same as alone.
fn assert_same(name: &str, heard: &Heard, alone: &Heard) {
    assert!(
        alone.text.ends_with(&heard.text),
        "{name}: {:?} instead of {:?}",
        heard.text,
        alone.text
    );
    assert!(alone.tokens.ends_with(&heard.tokens), "{name}");
    assert_eq!(heard.done().finish_reason, alone.done().finish_reason, "{name}");
    let tokens = |heard: &Heard| heard.done().usage.unwrap().completion_tokens;
    assert_eq!(tokens(heard), tokens(alone), "{name}");
}

/// Tries it until answers were paused: a busy computer may let them end before a chat is asked anything.
const ATTEMPTS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_paused_for_want_of_slots_say_what_they_say_alone() {
    let engine = loaded(EngineOptions::default()).await;
    let mut alone = Vec::new();
    for (name, request) in programs() {
        alone.push((name, hear(engine.generate(request)).await));
    }
    let chat = hear(engine.generate(story(60))).await;
    for _ in 0..ATTEMPTS {
        let before = engine.inspect().unwrap().preemptions;
        // The slots of a CPU.
        let mut jobs: Vec<JobHandle> = programs()[..4]
            .iter()
            .map(|(_, request)| engine.generate(request.clone()))
            .collect();
        for job in &mut jobs {
            has_begun(job).await;
        }
        let chats: Vec<JobHandle> = (0..3).map(|_| engine.generate(story(60))).collect();
        for job in chats {
            assert_eq!(hear(job).await.tokens, chat.tokens);
        }
        for ((name, alone), job) in alone.iter().zip(jobs) {
            assert_same(name, &hear(job).await, alone);
        }
        let held = engine.inspect().unwrap();
        assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
        assert_eq!(held.preemptions.1, 0, "their caches stay");
        println!(
            "report: {} answers were paused for three of chats",
            held.preemptions.0 - before.0
        );
        if held.preemptions.0 >= before.0 + 2 {
            return;
        }
    }
    panic!("no answer was paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_whose_caches_make_room_for_a_chat_say_what_they_say_alone() {
    let room = Arc::new(Room {
        bytes: AtomicU64::new(u64::MAX),
        asked: AtomicU64::new(0),
    });
    let engine = loaded(EngineOptions {
        memory_guard: Some(room.clone()),
        ..EngineOptions::default()
    })
    .await;
    let chat = hear(engine.generate(story(150))).await;
    for (name, request) in programs() {
        room.bytes.store(u64::MAX, Ordering::Relaxed);
        let alone = hear(engine.generate(request.clone())).await;
        // The memory of both when the one has come a bit further.
        let mut first = engine.generate(request.clone());
        for _ in 0..3 {
            has_begun(&mut first).await;
        }
        room.asked.store(0, Ordering::Relaxed);
        hear(engine.generate(story(150))).await.done();
        room.bytes
            .store(room.asked.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        hear(first).await.done();
        let mut dropped = 0;
        for _ in 0..ATTEMPTS {
            let before = engine.inspect().unwrap().preemptions.1;
            let mut paused = engine.generate(request.clone());
            has_begun(&mut paused).await;
            assert_eq!(hear(engine.generate(story(150))).await.tokens, chat.tokens, "{name}");
            assert_same(name, &hear(paused).await, &alone);
            dropped = engine.inspect().unwrap().preemptions.1 - before;
            if dropped > 0 {
                break;
            }
        }
        assert!(dropped > 0, "{name}: no room was made");
    }
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_end_although_chats_never_cease() {
    let engine = loaded(EngineOptions::default()).await;
    let open = Arc::new(AtomicUsize::new(5));
    let programs: Vec<_> = (0..5)
        .map(|number| {
            let priority = if number < 4 {
                Priority::Api
            } else {
                Priority::Background
            };
            let job = engine.generate(Request { priority, ..story(8) });
            let open = open.clone();
            tokio::spawn(async move {
                let heard = hear(job).await;
                open.fetch_sub(1, Ordering::Release);
                heard
            })
        })
        .collect();
    // Five at a time, which are more than there are slots.
    let chats: Vec<_> = (0..5)
        .map(|_| {
            let (engine, open) = (engine.clone(), open.clone());
            tokio::spawn(async move {
                while open.load(Ordering::Acquire) > 0 {
                    hear(engine.generate(story(20))).await.done();
                }
            })
        })
        .collect();
    for program in programs {
        let heard = tokio::time::timeout(Duration::from_secs(300), program)
            .await
            .expect("nobody starves");
        assert_eq!(heard.unwrap().done().finish_reason, FinishReason::Length);
    }
    for chat in chats {
        chat.await.unwrap();
    }
    // One that is paused can be cancelled.
    let mut jobs: Vec<JobHandle> = programs_of(&engine, 4);
    for job in &mut jobs {
        has_begun(job).await;
    }
    let chat = engine.generate(story(100));
    jobs[3].cancel.cancel();
    for job in jobs {
        hear(job).await.done();
    }
    hear(chat).await.done();
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}

fn programs_of(engine: &MlxEngine, count: usize) -> Vec<JobHandle> {
    let request = || Request {
        priority: Priority::Api,
        ..story(60)
    };
    (0..count).map(|_| engine.generate(request())).collect()
}
