//! Who waits for whom: a chat's answer goes on beside long prompts of programs, a question among them is answered first, and
//! everybody's turn comes.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{hear, pebble, question};
use engine::MlxEngine;
use protocol::{Engine, EngineEvent, FinishReason, JobHandle, LocalEngine, Priority, Request, Thinking};

fn full() -> bool {
    std::env::var_os("PONDER_FULL").is_some()
}

/// An engine that has loaded Pebble and keeps no prefixes.
async fn engine() -> MlxEngine {
    let engine = MlxEngine::start();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    engine.set_prefix_cache_budget(0).unwrap();
    engine
}

fn story(tokens: u32) -> Request {
    Request {
        max_tokens: Some(tokens),
        ..question("Tell me a story.", Thinking::Off)
    }
}

/// A program's prompt of about so many tokens, all of them its own.
fn prompt(tokens: usize, salt: usize) -> Request {
    let words: Vec<String> = (0..tokens / 5)
        .map(|word| format!("{}", 10_000 + (word * 7919 + salt * 104_729) % 89_989))
        .collect();
    Request {
        max_tokens: Some(4),
        priority: Priority::Api,
        ..question(&format!("{}. What is 2 + 3?", words.join(" ")), Thinking::Off)
    }
}

/// Whether there is one more piece of an answer.
async fn piece(job: &mut JobHandle) -> bool {
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Delta { .. }) => return true,
            Some(EngineEvent::Failed(error)) => panic!("{error}"),
            Some(_) => {}
            None => return false,
        }
    }
}

fn percentiles(mut gaps: Vec<Duration>) -> [Duration; 3] {
    gaps.sort();
    [gaps[gaps.len() / 2], gaps[gaps.len() * 95 / 100], gaps[gaps.len() - 1]]
}

/// The gaps between so many pieces, or to the end.
async fn gaps(job: &mut JobHandle, most: usize) -> Vec<Duration> {
    let (mut gaps, mut last) = (Vec::new(), Instant::now());
    while gaps.len() < most && piece(job).await {
        gaps.push(last.elapsed());
        last = Instant::now();
    }
    gaps
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_goes_on_beside_four_long_prompts_and_a_question_comes_first() {
    let engine = engine().await;
    let tokens = if full() { 3000 } else { 800 };
    let alone = hear(engine.generate(prompt(tokens, 0))).await;
    let length = alone.done().usage.unwrap().prompt_tokens;
    let start = Instant::now();
    hear(engine.generate(question("What is 2 + 3?", Thinking::Off))).await.done();
    let own = start.elapsed();
    let mut chat = engine.generate(story(1500));
    piece(&mut chat).await;
    let before = percentiles(gaps(&mut chat, 20).await);
    let readers: Vec<JobHandle> = (1..5).map(|salt| engine.generate(prompt(tokens, salt))).collect();
    let start = Instant::now();
    let beside = percentiles(gaps(&mut chat, 35).await);
    let asked = Instant::now();
    let mut job = engine.generate(question("What is 2 + 3?", Thinking::Off));
    piece(&mut job).await;
    let first = asked.elapsed();
    chat.cancel.cancel();
    for reader in readers {
        assert_eq!(hear(reader).await.done().finish_reason, FinishReason::Length);
    }
    let read = start.elapsed();
    println!(
        "report: fairness gaps of a chat's tokens, p50, p95, max: alone {before:?}, beside four prompts of {length} tokens {beside:?}; a question's first \
         token after {first:?} (all of it alone {own:?}), the prompts after {read:?}"
    );
    assert!(
        first < read,
        "the question was answered after {first:?}, the prompts after {read:?}"
    );
    hear(job).await.done();
    hear(chat).await.done();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_programs_and_a_chat_all_come_to_their_end() {
    let engine = engine().await;
    let span = Duration::from_secs(if full() { 60 } else { 4 });
    let start = Instant::now();
    let programs: Vec<_> = (0..20)
        .map(|program| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let (mut answered, mut longest) = (0, Duration::ZERO);
                while answered == 0 || start.elapsed() < span {
                    let asked = Instant::now();
                    let request = match program % 4 {
                        0 => prompt(300, program * 100 + answered),
                        _ => Request {
                            priority: [Priority::Api, Priority::Background][program % 2],
                            ..story(5 + program as u32)
                        },
                    };
                    hear(engine.generate(request)).await.done();
                    longest = longest.max(asked.elapsed());
                    answered += 1;
                }
                (answered, longest)
            })
        })
        .collect();
    let (mut questions, mut slowest) = (0, Duration::ZERO);
    while start.elapsed() < span {
        let asked = Instant::now();
        let heard = hear(engine.generate(question("What is 2 + 3?", Thinking::Off))).await;
        assert_eq!(heard.done().finish_reason, FinishReason::Stop);
        slowest = slowest.max(asked.elapsed());
        questions += 1;
    }
    let (mut answered, mut longest) = (0, Duration::ZERO);
    for program in programs {
        let (count, waited) = tokio::time::timeout(Duration::from_secs(120), program)
            .await
            .expect("nobody starves")
            .unwrap();
        assert!(count > 0);
        answered += count;
        longest = longest.max(waited);
    }
    println!(
        "report: fairness of 20 programs and a chat in {:?}: {answered} answers for programs, at most {longest:?} each; {questions} for the chat, at \
         most {slowest:?} each",
        start.elapsed()
    );
    assert!(
        questions > 0 && slowest < longest,
        "a chat waited {slowest:?}, programs {longest:?}"
    );
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}
