//! The order of service: a chat's answer goes on while long prompts of programs are read, a question among them is
//! answered first, and everybody's turn comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{engine_without_prefixes, hear, question, story};
use engine::MlxEngine;
use protocol::{Engine, EngineEvent, FinishReason, JobHandle, Priority, Request, Thinking};

fn full() -> bool {
    std::env::var_os("PONDER_FULL").is_some()
}

/// A program's prompt of about `tokens` tokens, all of them its own.
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

/// True if there is one more piece of an answer.
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

/// The number of tokens of one more piece of an answer; `None` at its good end.
async fn next_tokens(job: &mut JobHandle) -> Option<usize> {
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Delta { tokens, .. }) => return Some(tokens.len()),
            Some(EngineEvent::Done(_)) => return None,
            Some(EngineEvent::Failed(error)) => panic!("{error}"),
            Some(_) => {}
            None => panic!("it ends without a word"),
        }
    }
}

fn percentiles<T: Ord + Copy>(mut gaps: Vec<T>) -> [T; 3] {
    gaps.sort();
    [gaps[gaps.len() / 2], gaps[gaps.len() * 95 / 100], gaps[gaps.len() - 1]]
}

/// The stream of a chat and the prompts that are read meanwhile.
#[derive(Debug, Default)]
struct Progress {
    pieces: AtomicUsize,
    prompts: AtomicUsize,
}

impl Progress {
    /// Waits until the chat has streamed this many pieces.
    async fn streamed(&self, pieces: usize) {
        while self.pieces.load(Ordering::Acquire) < pieces {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The gaps between the pieces of a chat's answers, one after the other, until `enough`.
async fn gaps(engine: MlxEngine, progress: Arc<Progress>, enough: impl Fn(&Progress) -> bool) -> Vec<Duration> {
    let mut gaps = Vec::new();
    while !enough(&progress) {
        let mut chat = engine.generate(story(400));
        piece(&mut chat).await;
        let mut last = Instant::now();
        while !enough(&progress) && piece(&mut chat).await {
            gaps.push(last.elapsed());
            last = Instant::now();
            progress.pieces.fetch_add(1, Ordering::Release);
        }
        chat.cancel.cancel();
        hear(chat).await;
    }
    gaps
}

/// Reads four long prompts of programs beside a chat, and one of the background; whether a question of another chat
/// that comes then is answered before they are.
async fn a_question_beside_four_prompts(engine: &MlxEngine) -> bool {
    let tokens = if full() { 3000 } else { 800 };
    let sum = || question("What is 2 + 3?", Thinking::Off);
    let start = Instant::now();
    let mut alone = engine.generate(sum());
    piece(&mut alone).await;
    let own = start.elapsed();
    hear(alone).await;
    let before = gaps(engine.clone(), Arc::default(), |progress| {
        progress.pieces.load(Ordering::Acquire) >= 20
    })
    .await;

    let progress = Arc::new(Progress::default());
    let all_read = |progress: &Progress| progress.prompts.load(Ordering::Acquire) == 5;
    let chat = tokio::spawn(gaps(engine.clone(), progress.clone(), all_read));
    progress.streamed(3).await;
    let start = Instant::now();
    let readers: Vec<_> = (1..6)
        .map(|salt| {
            let priority = if salt == 5 { Priority::Background } else { Priority::Api };
            let length = if salt == 5 { 50 } else { tokens };
            let job = engine.generate(Request {
                priority,
                ..prompt(length, salt)
            });
            let progress = progress.clone();
            tokio::spawn(async move {
                let heard = hear(job).await;
                progress.prompts.fetch_add(1, Ordering::Release);
                (heard, start.elapsed())
            })
        })
        .collect();
    progress.streamed(progress.pieces.load(Ordering::Acquire) + 5).await;
    let asked = Instant::now();
    let mut job = engine.generate(sum());
    piece(&mut job).await;
    let (first, read) = (asked.elapsed(), progress.prompts.load(Ordering::Acquire));
    assert_eq!(hear(job).await.done().finish_reason, FinishReason::Stop);
    let (mut length, mut last) = (0, Duration::ZERO);
    for reader in readers {
        let (heard, ended) = reader.await.unwrap();
        assert_eq!(heard.done().finish_reason, FinishReason::Length);
        length = length.max(heard.done().usage.unwrap().prompt_tokens);
        last = last.max(ended);
    }
    let (before, beside) = (percentiles(before), percentiles(chat.await.unwrap()));
    println!(
        "report: fairness gaps of a chat's tokens, p50, p95, max: alone {before:.0?}, beside four prompts of {length} tokens {beside:.0?}; \
         a question's first token after {first:.0?} (alone {own:.0?}), {read} of the prompts were read then, all of them after {last:.0?}"
    );
    read < 4
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_goes_on_beside_four_long_prompts_and_a_question_comes_first() {
    let engine = engine_without_prefixes().await;
    // A busy computer may let this program wait until all of them are read.
    for _ in 0..4 {
        if a_question_beside_four_prompts(&engine).await {
            return;
        }
    }
    panic!("the prompts were read before the question");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_programs_and_a_chat_all_come_to_their_end() {
    let engine = engine_without_prefixes().await;
    let span = Duration::from_secs(if full() { 60 } else { 4 });
    let start = Instant::now();
    // The answers of programs that have ended, by which waiting is measured: a busy computer delays all alike.
    let ended = Arc::new(AtomicUsize::new(0));
    let programs: Vec<_> = (0..20)
        .map(|program| {
            let (engine, ended) = (engine.clone(), ended.clone());
            tokio::spawn(async move {
                let mut waited = Vec::new();
                while waited.is_empty() || start.elapsed() < span {
                    let (asked, before) = (Instant::now(), ended.load(Ordering::Acquire));
                    let request = match program % 4 {
                        0 => prompt(300, program * 100 + waited.len()),
                        _ => Request {
                            priority: [Priority::Api, Priority::Background][program % 2],
                            ..story(5 + program as u32)
                        },
                    };
                    hear(engine.generate(request)).await.done();
                    waited.push((ended.fetch_add(1, Ordering::AcqRel) - before, asked.elapsed()));
                }
                waited
            })
        })
        .collect();
    let mut questions = Vec::new();
    while questions.is_empty() || start.elapsed() < span {
        let (asked, before) = (Instant::now(), ended.load(Ordering::Acquire));
        let heard = hear(engine.generate(question("What is 2 + 3?", Thinking::Off))).await;
        assert_eq!(heard.done().finish_reason, FinishReason::Stop);
        questions.push((ended.load(Ordering::Acquire) - before, asked.elapsed()));
    }
    let (mut answers, mut fewest) = (Vec::new(), usize::MAX);
    for program in programs {
        let waited = tokio::time::timeout(Duration::from_secs(300), program)
            .await
            .expect("nobody starves")
            .unwrap();
        fewest = fewest.min(waited.len());
        answers.extend(waited);
    }
    let (asked, answered) = (questions.len(), answers.len());
    let (chat, programs) = (percentiles(questions), percentiles(answers));
    println!(
        "report: fairness of 20 programs and a chat in {:.1?}: {answered} answers for programs, {fewest} for the one with the fewest, \
         answers that ended meanwhile and time, p50, p95, max \
         {programs:.0?}; {asked} for the chat, {chat:.0?}",
        start.elapsed()
    );
    assert!(
        chat[0].0 < programs[0].0,
        "a chat waited {chat:?}, programs {programs:?}"
    );
    let held = engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_that_are_being_written_do_not_make_a_chat_wait() {
    let engine = engine_without_prefixes().await;
    // The tokens of titles, by which waiting is measured: a busy computer delays all alike.
    let tokens = Arc::new(AtomicUsize::new(0));
    let first = |engine: MlxEngine| {
        let tokens = tokens.clone();
        async move {
            let (asked, before) = (Instant::now(), tokens.load(Ordering::Acquire));
            let mut job = engine.generate(question("What is 2 + 3?", Thinking::Off));
            piece(&mut job).await;
            let first = (tokens.load(Ordering::Acquire) - before, asked.elapsed());
            hear(job).await.done();
            first
        }
    };
    let mut alone = Vec::new();
    for _ in 0..9 {
        alone.push(first(engine.clone()).await);
    }
    let stop = Arc::new(AtomicUsize::new(0));
    let titles: Vec<_> = (0..6)
        .map(|_| {
            let (engine, stop, tokens) = (engine.clone(), stop.clone(), tokens.clone());
            tokio::spawn(async move {
                let mut took = Vec::new();
                while took.is_empty() || stop.load(Ordering::Acquire) == 0 {
                    let (asked, mut own) = (Instant::now(), 0);
                    let mut title = engine.generate(Request {
                        priority: Priority::Background,
                        ..story(100)
                    });
                    while let Some(more) = next_tokens(&mut title).await {
                        own += more;
                        tokens.fetch_add(more, Ordering::AcqRel);
                    }
                    took.push((own, asked.elapsed()));
                }
                took
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut beside = Vec::new();
    for _ in 0..9 {
        beside.push(first(engine.clone()).await);
    }
    stop.store(1, Ordering::Release);
    let mut written = Vec::new();
    for title in titles {
        written.extend(title.await.unwrap());
    }
    let [alone, beside, written] = [alone, beside, written].map(percentiles);
    println!(
        "report: fairness of a chat's first token, tokens of titles meanwhile and time, \
         p50, p95, max: alone {alone:.0?}, beside six answers of the background {beside:.0?}, which took {written:.0?}"
    );
    assert!(
        beside[0].0 < 6 * written[0].0 / 2,
        "a chat's first token waits for {beside:?} of six times {written:?}"
    );
}
