//! Answers that are made together: what each says, who waits for whom, and what a failing one does to the others.

use std::time::Duration;

use crate::common::{engine_without_prefixes, hear, question, story, Heard};
use engine::MlxEngine;
use protocol::{
    AnswerPrefix, Engine, EngineEvent, ErrorCode, FinishReason, JobHandle, KvBits, LocalEngine, Priority, Request,
    Sampling, Thinking,
};

const SUM: &str = "What is 347 + 589?";

fn api(request: Request) -> Request {
    Request {
        priority: Priority::Api,
        ..request
    }
}

#[tokio::test]
async fn the_slots_are_told_and_follow_what_is_set() {
    let engine = MlxEngine::start();
    let mut activity = engine.follow();
    assert!(activity
        .wait_for(|activity| activity.slots > 1)
        .await
        .unwrap()
        .loaded
        .is_empty());
    engine.set_max_sequences(3);
    hear(engine.generate(story(1))).await.done();
    assert_eq!(activity.wait_for(|activity| !activity.busy).await.unwrap().slots, 3);
}

/// A question after `words` words that are all different.
fn long(words: usize, salt: usize) -> Request {
    let words: Vec<String> = (0..words)
        .map(|index| format!("{}", (index * 7919 + salt * 104_729) % 9973))
        .collect();
    Request {
        max_tokens: Some(4),
        ..question(&format!("{salt}: {}. What is 2 + 3?", words.join(" ")), Thinking::Off)
    }
}

/// Requests of every kind that differ in what they ask of the engine.
fn kinds() -> Vec<(&'static str, Request)> {
    let seeded = Sampling {
        temperature: Some(1.2),
        top_p: Some(0.95),
        seed: Some(7),
        ..Sampling::default()
    };
    let penalised = Sampling {
        repetition_penalty: Some(1.3),
        ..Sampling::greedy()
    };
    vec![
        ("plain", question(SUM, Thinking::On)),
        ("story", story(70)),
        (
            "kv 8",
            Request {
                kv_bits: Some(KvBits::Eight),
                ..story(60)
            },
        ),
        (
            "kv 4",
            Request {
                kv_bits: Some(KvBits::Four),
                ..story(40)
            },
        ),
        (
            "seed",
            Request {
                sampling: seeded,
                ..story(50)
            },
        ),
        (
            "penalty",
            Request {
                sampling: penalised,
                ..story(45)
            },
        ),
        (
            "stop",
            Request {
                stop: vec!["=".into()],
                ..question(SUM, Thinking::On)
            },
        ),
        (
            "budget",
            Request {
                thinking_budget: Some(5),
                ..question(SUM, Thinking::On)
            },
        ),
        (
            "budget 0",
            Request {
                thinking_budget: Some(0),
                ..question(SUM, Thinking::On)
            },
        ),
        (
            "limit",
            Request {
                max_tokens: Some(1),
                ..question(SUM, Thinking::On)
            },
        ),
        ("long", long(120, 3)),
    ]
}

fn said(heard: &Heard) -> (&str, &str, &[u32], FinishReason) {
    (&heard.text, &heard.thinking, &heard.tokens, heard.done().finish_reason)
}

/// The next event that carries tokens; `None` at the end.
async fn next_tokens(job: &mut JobHandle) -> Option<usize> {
    loop {
        match job.events.recv().await? {
            EngineEvent::Delta { tokens, .. } => return Some(tokens.len()),
            EngineEvent::Failed(error) => panic!("{error}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn answers_that_are_made_together_say_what_they_say_alone() {
    let engine = engine_without_prefixes().await;
    let mut alone = Vec::new();
    for (name, request) in kinds() {
        alone.push((name, hear(engine.generate(request)).await));
    }
    for pause in [0, 15] {
        let mut jobs = Vec::new();
        for (_, request) in kinds() {
            jobs.push(engine.generate(request));
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        for ((name, alone), job) in alone.iter().zip(jobs) {
            let heard = hear(job).await;
            assert_eq!(said(&heard), said(alone), "{name}, {pause} ms apart");
            assert_eq!(heard.notices.len(), alone.notices.len(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_continued_answer_goes_on_beside_others() {
    let engine = engine_without_prefixes().await;
    let whole = hear(engine.generate(story(60))).await;
    let others: Vec<JobHandle> = (0..2).map(|_| engine.generate(story(70))).collect();
    let continued = Request {
        answer_prefix: Some(AnswerPrefix::Tokens {
            tokens: whole.tokens[..25].to_vec(),
            model_revision: None,
            thinking_ended: false,
        }),
        ..story(35)
    };
    let heard = hear(engine.generate(continued)).await;
    assert_eq!((&heard.text, &heard.tokens), (&whole.text, &whole.tokens));
    for other in others {
        assert_eq!(hear(other).await.tokens[..60], whole.tokens[..60]);
    }
}

#[tokio::test]
async fn one_that_is_cancelled_or_told_to_answer_changes_nothing_for_the_others() {
    let engine = engine_without_prefixes().await;
    let (tale, sum) = (
        hear(engine.generate(story(70))).await,
        hear(engine.generate(question(SUM, Thinking::On))).await,
    );
    let now = Request {
        thinking_budget: Some(3),
        ..question(SUM, Thinking::On)
    };
    let forced = hear(engine.generate(now)).await;
    let kept = engine.generate(story(70));
    let mut given_up = engine.generate(story(400));
    let mut thinking = engine.generate(question(SUM, Thinking::On));
    next_tokens(&mut given_up).await;
    next_tokens(&mut thinking).await;
    thinking.end_thinking.answer_now();
    given_up.cancel.cancel();
    let late = engine.generate(question(SUM, Thinking::On));
    assert_eq!(hear(given_up).await.done().finish_reason, FinishReason::Cancelled);
    let answered = hear(thinking).await;
    assert_eq!(answered.done().finish_reason, FinishReason::Stop);
    assert!(
        answered.text.contains("936") || answered.text == forced.text,
        "{answered:?}"
    );
    assert_eq!(said(&hear(kept).await), said(&tale));
    assert_eq!(said(&hear(late).await), said(&sum));
}

#[tokio::test]
async fn a_request_that_breaks_a_step_fails_alone() {
    let engine = engine_without_prefixes().await;
    let (tale, sum) = (
        hear(engine.generate(story(80))).await,
        hear(engine.generate(question(SUM, Thinking::On))).await,
    );
    let others = [engine.generate(story(80)), engine.generate(question(SUM, Thinking::On))];
    let broken = engine.panicking_job(story(80), 10);
    assert_eq!(hear(broken).await.error().code, ErrorCode::Engine);
    for (other, alone) in others.into_iter().zip([&tale, &sum]) {
        assert_eq!(said(&hear(other).await), said(alone));
    }
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}

#[tokio::test]
async fn a_prompt_that_begins_like_one_that_is_being_read_is_not_read_twice() {
    let engine = MlxEngine::start();
    let alone = hear(engine.generate(long(250, 1))).await;
    let read = alone.done().usage.unwrap().prefilled_tokens;
    engine.unload_all().await.unwrap();
    let jobs: Vec<JobHandle> = (0..3).map(|_| engine.generate(api(long(250, 1)))).collect();
    let mut all = 0;
    for job in jobs {
        let heard = hear(job).await;
        assert_eq!(heard.tokens, alone.tokens);
        all += heard.done().usage.unwrap().prefilled_tokens;
    }
    assert!(all < read + read / 2, "three read {all} tokens where one reads {read}");
}

#[tokio::test]
async fn more_requests_than_may_wait_are_refused_and_a_chat_never_is() {
    let engine = engine_without_prefixes().await;
    let mut running: Vec<JobHandle> = (0..4).map(|_| engine.generate(api(story(600)))).collect();
    for job in &mut running {
        next_tokens(job).await;
    }
    let waiting: Vec<JobHandle> = (0..60).map(|_| engine.generate(api(story(2)))).collect();
    let chat = engine.generate(question(SUM, Thinking::Off));
    assert_eq!(hear(chat).await.done().finish_reason, FinishReason::Stop);
    let cancels: Vec<_> = running.iter().map(|job| job.cancel.clone()).collect();
    cancels.iter().for_each(protocol::CancelFlag::cancel);
    let (mut answered, mut refused) = (0, 0);
    for job in waiting {
        match &hear(job).await.ends[..] {
            [Ok(_)] => answered += 1,
            [Err(error)] => {
                assert_eq!(error.code, ErrorCode::Busy);
                assert!(error.arguments.contains_key("retry_after"), "{error:?}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(answered >= 32 && refused > 0, "{answered} answered, {refused} refused");
    for job in running {
        hear(job).await.done();
    }
}
