//! The prefix cache serves every prompt that begins alike, and nothing that happens in between leaves it wrong.

use std::time::{Duration, Instant};

use crate::common::{hear, pebble, question, story, Heard};
use engine::MlxEngine;
use protocol::{
    Engine, EngineEvent, ErrorCode, FinishReason, KvBits, LocalEngine, Message, Request, Role, Sampling, Thinking,
    Usage,
};

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// A chat that is longer than Pebble's sliding window, with a question at its end.
fn long_chat(question: &str) -> Vec<Message> {
    let mut messages = vec![user("My name is Yara."), assistant("Nice to meet you, Yara!")];
    for number in 1..=12 {
        messages.push(user(&format!("What is {number} + 1?")));
        messages.push(assistant(&format!("{number} + 1 = **{}**", number + 1)));
    }
    messages.push(user(question));
    messages
}

fn request(messages: &[Message]) -> Request {
    Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling::greedy(),
        ..Request::new(pebble(), messages.to_vec())
    }
}

async fn ask(engine: &MlxEngine, messages: &[Message]) -> (Heard, Usage) {
    let heard = hear(engine.generate(request(messages))).await;
    let usage = heard.done().usage.unwrap();
    assert_eq!(
        usage.cached_tokens + usage.prefilled_tokens,
        usage.prompt_tokens,
        "{usage:?}"
    );
    (heard, usage)
}

async fn load(engine: &MlxEngine) {
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
}

async fn settled(engine: &MlxEngine) {
    let ended = tokio::time::timeout(Duration::from_secs(300), engine.prefetched()).await;
    ended.expect("reading ahead ends");
}

/// An engine that keeps nothing of what it reads.
async fn without_prefix_cache() -> MlxEngine {
    let engine = MlxEngine::start();
    load(&engine).await;
    engine.set_prefix_cache_budget(0).unwrap();
    engine
}

#[tokio::test]
async fn another_answer_an_edit_and_another_branch_read_what_differs() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    let chat = long_chat("What is my name?");
    let (first, usage) = ask(&engine, &chat).await;
    assert_eq!(usage.cached_tokens, 0);
    assert!(
        usage.prompt_tokens > 2 * 128,
        "the sliding window has turned: {usage:?}"
    );

    let (again, usage) = ask(&engine, &chat).await;
    assert_eq!(
        (usage.prefilled_tokens, &again.text),
        (1, &first.text),
        "another answer to the same question"
    );

    let edited = long_chat("What is 12 * 11?");
    let (other, usage) = ask(&engine, &edited).await;
    assert!(usage.prefilled_tokens <= 16, "an edited question: {usage:?}");
    assert_eq!(other.text, ask(&cold, &edited).await.0.text);

    // The branch of the first question continues; then that of the second.
    for (branch, answer) in [(&chat, &first), (&edited, &other)] {
        let next = [branch.as_slice(), &[assistant(&answer.text), user("What is 5 + 7?")]].concat();
        let (heard, usage) = ask(&engine, &next).await;
        assert!(usage.prefilled_tokens <= 18, "another branch: {usage:?}");
        let (expected, usage) = ask(&cold, &next).await;
        assert_eq!((&heard.text, &heard.tokens), (&expected.text, &expected.tokens));
        assert_eq!(usage.cached_tokens, 0);
    }
}

#[tokio::test]
async fn chats_with_the_same_instructions_share_them() {
    let engine = MlxEngine::start();
    let instructions = Message::text(Role::System, "Be brief. ".repeat(30));
    let chat = |question: &str| vec![instructions.clone(), user(question)];
    let (_, first) = ask(&engine, &chat("What is 2 + 3?")).await;
    let (_, second) = ask(&engine, &chat("Spell the word river.")).await;
    assert!(
        first.prompt_tokens > 60 && second.prefilled_tokens <= 14,
        "{first:?} {second:?}"
    );
}

#[tokio::test]
async fn opening_a_chat_reads_it_and_other_work_comes_first() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    let mut history = long_chat("What is my name?");
    let question = history.pop().unwrap();

    engine.prefetch(request(&history));
    settled(&engine).await;
    assert!(engine.loaded().is_empty(), "nothing is loaded for reading ahead");

    // It is read as soon as somebody has the model loaded.
    load(&engine).await;
    let reads = async {
        while engine.prefetched_chunks() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reads)
        .await
        .expect("it is read ahead");
    settled(&engine).await;
    let whole = [history.as_slice(), &[question]].concat();
    let (heard, usage) = ask(&engine, &whole).await;
    assert!(usage.prefilled_tokens <= 12, "{usage:?}");
    assert_eq!(heard.text, ask(&cold, &whole).await.0.text);
    // The last answer again: its prompt ends before it.
    let (_, usage) = ask(&engine, &history[..history.len() - 1]).await;
    assert!(usage.prefilled_tokens <= 2, "{usage:?}");
}

/// Interrupts the reading ahead of a chat in its first chunks, and when a part of it has been read; `false` if it came
/// to its end before.
async fn interrupt(engine: &MlxEngine, chat: &[Message]) -> bool {
    for chunks in [1, 5] {
        let begun = engine.prefetched_chunks();
        engine.prefetch(request(chat));
        let hi = request(&[user("Hi")]);
        let mut told = Duration::ZERO;
        loop {
            let start = Instant::now();
            engine.memory().await.unwrap();
            told = told.max(start.elapsed());
            if !engine.prefetching() {
                return false;
            }
            if engine.prefetched_chunks() >= begun + chunks {
                break;
            }
        }
        let (start, chunks) = (Instant::now(), engine.prefetched_chunks());
        let mut job = engine.generate(hi);
        // The job's first event comes when the worker has turned to it.
        job.events.recv().await;
        println!(
            "report: reading ahead gave way after {:.0?}, the memory was told after {told:.0?}",
            start.elapsed()
        );
        // The one that was being read, and one that may have begun before the job was sent.
        let more = engine.prefetched_chunks() - chunks;
        assert!(more <= 2, "{more} chunks were read while a job waited");
        assert!(!engine.prefetching());
        hear(job).await.done();
    }
    true
}

#[tokio::test]
async fn reading_ahead_gives_way_at_once_and_what_was_read_stays() {
    let engine = MlxEngine::start();
    load(&engine).await;
    ask(&engine, &[user("Hi")]).await;
    let mut kept = None;
    // A busy computer may let this program wait until everything has been read.
    for attempt in 0..5 {
        let words = "one two three four five six seven eight nine ten ".repeat(200);
        let long = vec![user(&format!("{attempt}: {words}")), assistant("Yes.")];
        let in_the_middle = interrupt(&engine, &long).await;
        let (_, usage) = ask(&engine, &[long.as_slice(), &[user("What?")]].concat()).await;
        assert!(usage.cached_tokens > 16, "{usage:?}");
        if in_the_middle && usage.prefilled_tokens > 100 {
            kept = Some(usage);
            break;
        }
    }
    kept.expect("being asked for the memory ends nothing, and a job ends reading ahead before its end");
    let held = engine.inspect().unwrap();
    assert_eq!(
        held.living,
        (held.tensors + held.prefix_cache_tensors) as i64,
        "what was begun is gone"
    );
}

#[tokio::test]
async fn a_cancelled_answer_leaves_what_was_read_right() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    load(&engine).await;
    let text = "one two three four five six seven eight nine ten ".repeat(60);
    let long = vec![user(&text), assistant("Yes."), user("What is 2 + 3?")];

    // In the middle of the prompt.
    let mut job = engine.generate(request(&long));
    while !matches!(
        job.events.recv().await,
        Some(EngineEvent::Progress {
            stage: protocol::Stage::Prefill,
            ..
        })
    ) {}
    job.cancel.cancel();
    let heard = hear(job).await;
    let read = heard.done().usage.unwrap().prefilled_tokens;
    assert_eq!(heard.done().finish_reason, FinishReason::Cancelled);
    assert!(read > 0);
    let (heard, usage) = ask(&engine, &long).await;
    assert!(
        usage.cached_tokens >= read.min(usage.prompt_tokens - 1),
        "{usage:?} after {read}"
    );
    assert_eq!(heard.text, ask(&cold, &long).await.0.text);

    // In the middle of the answer.
    let story = vec![user("Tell me a story.")];
    let mut job = engine.generate(request(&story));
    let mut pieces = 0;
    while pieces < 5 {
        pieces += usize::from(matches!(job.events.recv().await, Some(EngineEvent::Delta { .. })));
    }
    job.cancel.cancel();
    let begun = hear(job).await;
    assert_eq!(begun.done().finish_reason, FinishReason::Cancelled);
    let (whole, _) = ask(&engine, &story).await;
    assert_eq!(whole.text, ask(&cold, &story).await.0.text);
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}

#[tokio::test]
async fn a_tiny_budget_costs_time_and_nothing_else() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    load(&engine).await;
    // About two copies of Pebble's windows.
    engine.set_prefix_cache_budget(2_000_000).unwrap();
    let mut messages = Vec::new();
    for turn in 0..4 {
        for chat in ["Yara", "Omar"] {
            let asked = [
                messages.as_slice(),
                &[user(&format!("My name is {chat}, and what is {turn} + 1?"))],
            ]
            .concat();
            let (heard, _) = ask(&engine, &asked).await;
            assert_eq!(heard.text, ask(&cold, &asked).await.0.text);
            let bytes = engine.inspect().unwrap().prefix_cache_bytes;
            assert!(bytes <= 2_000_000, "{bytes}");
            if chat == "Omar" {
                messages = [asked, vec![assistant(&heard.text)]].concat();
            }
        }
    }
    engine.unload_all().await.unwrap();
    let held = engine.inspect().unwrap();
    assert_eq!(
        (held.prefix_cache_tensors, held.prefix_cache_bytes, held.living),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_loads_nothing() {
    let engine = MlxEngine::start();
    let long = "one two three four five six seven eight nine ten ".repeat(600);
    let error = hear(engine.generate(question(&long, Thinking::Off)))
        .await
        .error()
        .clone();
    assert_eq!(error.code, ErrorCode::ContextFull);
    assert!(error.message.contains("4096"), "{}", error.message);
    assert!(engine.loaded().is_empty());
}

#[tokio::test]
async fn packed_keys_give_the_same_answers_and_are_told_apart() {
    let engine = MlxEngine::start();
    let packed = |bits| Request {
        kv_bits: Some(bits),
        ..request(&long_chat("What is my name?"))
    };
    let (plain, _) = ask(&engine, &long_chat("What is my name?")).await;
    for gpu in [false, true] {
        if gpu {
            engine.pretend_gpu().unwrap();
        }
        for bits in [KvBits::Eight, KvBits::Four] {
            let first = hear(engine.generate(packed(bits))).await;
            assert_eq!(
                first.done().usage.unwrap().cached_tokens,
                0,
                "{bits:?}: what is kept in other bits is not used"
            );
            assert!(first.text.contains("Yara"), "{bits:?}: {}", first.text);
            assert!(first.notices.is_empty(), "{:?}", first.notices);
            let again = hear(engine.generate(packed(bits))).await;
            assert_eq!(
                (again.done().usage.unwrap().prefilled_tokens, &again.text),
                (1, &first.text),
                "{bits:?}"
            );
        }
    }
    assert!(plain.text.contains("Yara"));
}

#[test]
fn packed_keys_move_the_logits_a_little() {
    let engine = MlxEngine::start();
    let tokens = engine::bench_prompt(200, 4096);
    let logits = |chunk, bits| {
        engine
            .kv_logits(pebble(), tokens.clone(), true, Some(chunk), bits)
            .unwrap()
    };
    let likeliest = |row: &[f32]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    let exact = logits(64, None);
    for (bits, most, agreeing) in [(KvBits::Eight, 0.5, 196), (KvBits::Four, 6.0, 150)] {
        let mut worst: f32 = 0.0;
        for chunk in [1, 64] {
            let rows = logits(chunk, Some(bits));
            let differences = rows
                .iter()
                .flatten()
                .zip(exact.iter().flatten())
                .map(|(a, b)| (a - b).abs());
            worst = worst.max(differences.fold(0.0, f32::max));
            let agree = rows
                .iter()
                .zip(&exact)
                .filter(|(a, b)| likeliest(a) == likeliest(b))
                .count();
            assert!(
                agree >= agreeing,
                "{bits:?} in chunks of {chunk}: {agree} of 200 positions agree"
            );
        }
        println!("report: keys and values in {bits:?} bits move Pebble's logits by {worst:.2} at most");
        assert!(worst > 0.0 && worst <= most, "{bits:?}: {worst}");
    }
}

#[tokio::test]
async fn freed_caches_are_read_again_and_change_no_answer() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    let chat = long_chat("What is my name?");
    let (first, _) = ask(&engine, &chat).await;
    settled(&engine).await;
    assert!(engine.inspect().unwrap().prefix_cache_bytes > 0);

    engine.free_caches().await.unwrap();
    assert_eq!(engine.inspect().unwrap().prefix_cache_bytes, 0);

    let next = [chat.as_slice(), &[assistant(&first.text), user("What is 5 + 7?")]].concat();
    let (heard, usage) = ask(&engine, &next).await;
    let (expected, _) = ask(&cold, &next).await;
    assert_eq!(usage.cached_tokens, 0, "everything is read again: {usage:?}");
    assert_eq!((&heard.text, &heard.tokens), (&expected.text, &expected.tokens));

    // A prefetch that runs is given up.
    engine.prefetch(request(&long_chat("And now?")));
    engine.free_caches().await.unwrap();
    assert!(!engine.prefetching());
    assert_eq!(engine.inspect().unwrap().prefix_cache_bytes, 0);
}

#[tokio::test]
async fn caches_are_freed_at_once_between_the_steps_of_an_answer_that_goes_on() {
    let (engine, cold) = (MlxEngine::start(), without_prefix_cache().await);
    load(&engine).await;
    let alone = hear(cold.generate(story(200))).await;
    let mut activity = engine.follow();
    let answer = tokio::spawn(hear(engine.generate(story(200))));
    activity.wait_for(|activity| activity.busy).await.unwrap();
    let mut freed = 0;
    while !answer.is_finished() {
        engine.free_caches().await.unwrap();
        freed += usize::from(!answer.is_finished());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let heard = answer.await.unwrap();
    assert!(freed >= 3, "freed {freed} times");
    assert_eq!((&heard.text, &heard.tokens), (&alone.text, &alone.tokens));
    let resting = activity.wait_for(|activity| !activity.busy).await.unwrap();
    assert_eq!(resting.loaded, ["pebble"]);
}
