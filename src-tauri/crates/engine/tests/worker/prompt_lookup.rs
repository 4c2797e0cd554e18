//! Answers with drafts from what they repeat are those without: Pebble, greedy or with a seed, whatever is asked of it.

use std::path::Path;
use std::process::Command;

use crate::common::{hear, pebble, pebble_dir, question, Heard};
use engine::{Drafting, EngineOptions, LookupFigures, MlxEngine};
use protocol::{
    AnswerPrefix, EndedBy, Engine, EngineEvent, FinishReason, KvBits, LocalEngine, Message, NoticeCode, Priority,
    Request, Role, Sampling, SpeculationUsage, Thinking,
};
use serde::Deserialize;
use serde_json::Value;

const SUM: &str = "What is 347 + 589?";
const TABLE: &str = "Write the multiplication table of 7.";

fn engine(prompt_lookup: Drafting) -> MlxEngine {
    MlxEngine::with_options(EngineOptions {
        prompt_lookup,
        ..EngineOptions::default()
    })
}

/// One that never drafts, and one that always does.
fn engines() -> [MlxEngine; 2] {
    [engine(Drafting::Off), engine(Drafting::Always)]
}

pub async fn ask(engine: &MlxEngine, request: &Request) -> Heard {
    hear(engine.generate(request.clone())).await
}

pub fn speculation(heard: &Heard) -> SpeculationUsage {
    heard.done().usage.unwrap().speculation.unwrap_or_default()
}

/// All that an answer says of itself, but for times.
#[derive(Debug, PartialEq)]
pub struct Said<'a> {
    text: &'a str,
    thinking: &'a str,
    tokens: &'a [u32],
    calls: Vec<(&'a str, &'a Value)>,
    notices: Vec<NoticeCode>,
    finish_reason: FinishReason,
    ended_by: &'a EndedBy,
    completion_tokens: u32,
    thinking_tokens: Option<u32>,
}

pub fn said(heard: &Heard) -> Said<'_> {
    let (done, usage) = (heard.done(), heard.done().usage.unwrap());
    Said {
        text: &heard.text,
        thinking: &heard.thinking,
        tokens: &heard.tokens,
        calls: heard
            .calls
            .iter()
            .map(|call| (call.name.as_str(), &call.arguments))
            .collect(),
        notices: heard.notices.iter().map(|notice| notice.code).collect(),
        finish_reason: done.finish_reason,
        ended_by: &done.ended_by,
        completion_tokens: usage.completion_tokens,
        thinking_tokens: usage.thinking_tokens,
    }
}

#[derive(Deserialize)]
struct Question {
    thinking: bool,
    messages: Vec<Turn>,
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct Turn {
    role: Role,
    content: String,
}

/// Questions of Pebble's exam.
pub fn exam(count: usize) -> Vec<Request> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/exam/questions.py");
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(script)
        .arg("--training")
        .arg(pebble_dir().join("../training"));
    let output = command
        .args(["--count", &count.to_string(), "--seed", "20261121"])
        .output()
        .expect("python3 writes the questions");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let questions: Vec<Question> = serde_json::from_slice(&output.stdout).unwrap();
    let request = |question: Question| {
        let messages = question
            .messages
            .iter()
            .map(|turn| Message::text(turn.role, turn.content.clone()));
        Request {
            tools: question.tools,
            thinking: Some(if question.thinking { Thinking::On } else { Thinking::Off }),
            sampling: Sampling::greedy(),
            max_tokens: Some(400),
            ..Request::new(pebble(), messages.collect())
        }
    };
    questions.into_iter().map(request).collect()
}

#[tokio::test]
async fn greedy_answers_are_the_same_with_and_without_drafts() {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let [plain, drafting] = engines();
    let (mut prompts, mut total, mut tokens) = (0, SpeculationUsage::default(), 0);
    for request in exam(if full { 200 } else { 7 }) {
        prompts += 1;
        let (expected, heard) = (ask(&plain, &request).await, ask(&drafting, &request).await);
        assert_eq!(said(&heard), said(&expected), "{:?}", request.messages);
        assert_eq!(speculation(&expected), SpeculationUsage::default());
        let usage = speculation(&heard);
        total.draft_tokens += usage.draft_tokens;
        total.accepted_draft_tokens += usage.accepted_draft_tokens;
        total.decode_steps += usage.decode_steps;
        tokens += usage.decode_steps + usage.accepted_draft_tokens;
    }
    println!(
        "report: prompt lookup: {prompts} greedy answers are the same; {} of {} draft tokens accepted, {:.2} tokens per step",
        total.accepted_draft_tokens,
        total.draft_tokens,
        f64::from(tokens) / f64::from(total.decode_steps)
    );
    assert!(total.accepted_draft_tokens > 0 && total.accepted_draft_tokens < total.draft_tokens);
}

/// Requests of every kind that end or go on in their own way; each repeats something.
pub fn kinds() -> Vec<(&'static str, Request)> {
    let again = || Request {
        messages: vec![
            Message::text(Role::User, TABLE),
            Message::text(
                Role::Assistant,
                (1..=10).map(|i| format!("7 x {i} = {}  \n", 7 * i)).collect::<String>(),
            ),
            Message::text(Role::User, TABLE),
        ],
        ..question(TABLE, Thinking::Off)
    };
    let sum = || question(SUM, Thinking::On);
    let mut kinds = vec![("again", again()), ("sum", sum())];
    for most in [1, 2, 3, 4, 5, 7, 8, 11, 12] {
        kinds.push((
            "limit",
            Request {
                max_tokens: Some(most),
                ..again()
            },
        ));
    }
    for budget in [0, 1, 3, 8, 20, 40] {
        kinds.push((
            "budget",
            Request {
                thinking_budget: Some(budget),
                ..sum()
            },
        ));
    }
    for stop in ["7 x 4", "42", " =", "x 9 = 6", "\n"] {
        kinds.push((
            "stop",
            Request {
                stop: vec![stop.into()],
                ..again()
            },
        ));
    }
    for kv_bits in [KvBits::Eight, KvBits::Four] {
        kinds.push((
            "kv bits",
            Request {
                kv_bits: Some(kv_bits),
                ..again()
            },
        ));
        kinds.push((
            "kv bits",
            Request {
                kv_bits: Some(kv_bits),
                ..sum()
            },
        ));
    }
    for seed in 0..4 {
        let sampling = Sampling {
            temperature: Some(0.9),
            top_p: Some(0.95),
            seed: Some(seed),
            repetition_penalty: (seed % 2 == 1).then_some(1.1),
            ..Sampling::default()
        };
        kinds.push((
            "seed",
            Request {
                sampling: sampling.clone(),
                ..again()
            },
        ));
        kinds.push((
            "seed",
            Request {
                sampling: sampling.clone(),
                ..sum()
            },
        ));
        kinds.push((
            "seed and budget",
            Request {
                sampling,
                thinking_budget: Some(6),
                ..sum()
            },
        ));
    }
    // It ends in a circle, which a notice tells.
    let endless = Sampling {
        logit_bias: [(400, 1000.0)].into(),
        ..Sampling::greedy()
    };
    kinds.push((
        "repetition",
        Request {
            sampling: endless,
            ..again()
        },
    ));
    kinds
}

#[tokio::test]
async fn answers_of_every_kind_are_the_same_with_and_without_drafts() {
    let [plain, drafting] = engines();
    let mut drafted = std::collections::BTreeMap::new();
    for (kind, request) in kinds() {
        let (expected, heard) = (ask(&plain, &request).await, ask(&drafting, &request).await);
        assert_eq!(said(&heard), said(&expected), "{kind}: {request:?}");
        *drafted.entry(kind).or_insert(0) += speculation(&heard).accepted_draft_tokens;
        if kind == "repetition" {
            assert_eq!(heard.done().ended_by, EndedBy::Repetition);
        }
    }
    println!("report: prompt lookup: accepted draft tokens by kind of request: {drafted:?}");
    for (kind, accepted) in drafted {
        assert!(accepted > 0, "{kind} accepts none, so that it shows nothing");
    }
}

#[tokio::test]
async fn a_chat_goes_on_from_what_was_kept_of_drafts() {
    let [plain, drafting] = engines();
    let mut messages = Vec::new();
    for turn in 0..4 {
        messages.push(Message::text(Role::User, if turn == 2 { SUM } else { TABLE }));
        let request = Request {
            messages: messages.clone(),
            ..question(SUM, Thinking::Off)
        };
        let (expected, heard) = (ask(&plain, &request).await, ask(&drafting, &request).await);
        assert_eq!(said(&heard), said(&expected), "turn {turn}");
        let cached = heard.done().usage.unwrap().cached_tokens;
        assert!(turn == 0 || cached > 0, "turn {turn} begins anew");
        assert!(turn != 1 || speculation(&heard).accepted_draft_tokens > 30);
        messages.push(Message::text(Role::Assistant, heard.text));
        // Read ahead, as the window does.
        for engine in [&plain, &drafting] {
            engine.prefetch(Request {
                messages: messages.clone(),
                ..question(SUM, Thinking::Off)
            });
            engine.prefetched().await;
        }
    }
    drafting.unload_all().await.unwrap();
    assert_eq!(drafting.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn an_answer_goes_on_from_any_place() {
    let [plain, drafting] = engines();
    let (_, again) = kinds().remove(0);
    let whole = ask(&plain, &again).await;
    for cut in (0..whole.tokens.len()).step_by(7) {
        let begun = AnswerPrefix::Tokens {
            tokens: whole.tokens[..cut].to_vec(),
            model_revision: None,
            thinking_ended: false,
        };
        let request = Request {
            answer_prefix: Some(begun),
            ..again.clone()
        };
        assert_eq!(said(&ask(&drafting, &request).await), said(&whole), "cut at {cut}");
    }
}

/// Hears `tokens` tokens, then does something to the job, then hears the rest.
async fn interrupted(
    engine: &MlxEngine,
    request: &Request,
    after: usize,
    act: impl FnOnce(&protocol::JobHandle),
) -> (Vec<u32>, Heard) {
    let mut job = engine.generate(request.clone());
    let mut tokens = Vec::new();
    while tokens.len() < after {
        if let Some(EngineEvent::Delta { tokens: more, .. }) = job.events.recv().await {
            tokens.extend(more);
        }
    }
    act(&job);
    let heard = hear(job).await;
    tokens.extend(&heard.tokens);
    (tokens, heard)
}

#[tokio::test]
async fn what_is_told_to_answer_or_cancelled_ends_where_it_would() {
    let [plain, drafting] = engines();
    let sum = question(SUM, Thinking::On);
    let (_, again) = kinds().remove(0);
    let whole = ask(&plain, &again).await;
    for after in [1, 5, 12, 25] {
        let (tokens, heard) = interrupted(&drafting, &sum, after, |job| job.end_thinking.answer_now()).await;
        // The same thought ended by a budget.
        let budget = Request {
            thinking_budget: heard.done().usage.unwrap().thinking_tokens,
            ..sum.clone()
        };
        assert_eq!(tokens, ask(&plain, &budget).await.tokens, "answer now after {after}");
        let (tokens, heard) = interrupted(&drafting, &again, after, |job| job.cancel.cancel()).await;
        assert!(whole.tokens.starts_with(&tokens), "cancelled after {after}");
        assert!(matches!(
            heard.done().finish_reason,
            FinishReason::Cancelled | FinishReason::Stop
        ));
        // The caches that it left are right.
        assert_eq!(
            said(&ask(&drafting, &again).await),
            said(&whole),
            "after one that was cancelled"
        );
    }
}

#[tokio::test]
async fn what_repeats_itself_word_for_word_takes_few_steps() {
    let drafting = engine(Drafting::Always);
    let (_, again) = kinds().remove(0);
    let copied = question(
        "Repeat after me: window door table chair kitchen garden bedroom bottle",
        Thinking::On,
    );
    for (name, request, least) in [("a table again", again, 3.0), ("a sentence", copied, 1.3)] {
        let heard = ask(&drafting, &request).await;
        let usage = speculation(&heard);
        let tokens = usage.decode_steps + usage.accepted_draft_tokens;
        let per_step = f64::from(tokens) / f64::from(usage.decode_steps);
        println!(
            "report: prompt lookup: {name}: {per_step:.1} tokens per step, {} of {} draft tokens accepted",
            usage.accepted_draft_tokens, usage.draft_tokens
        );
        assert!(per_step >= least, "{name}: {usage:?}: {}", heard.text);
    }
}

#[tokio::test]
async fn nothing_is_drafted_beside_others_or_for_log_probabilities() {
    let [plain, drafting] = engines();
    let (_, again) = kinds().remove(0);
    let whole = ask(&plain, &again).await;
    let logprobs = Request {
        top_logprobs: Some(2),
        ..again.clone()
    };
    let heard = ask(&drafting, &logprobs).await;
    assert_eq!(heard.tokens, whole.tokens);
    assert_eq!(
        (speculation(&heard), heard.logprobs.len()),
        (SpeculationUsage::default(), whole.tokens.len())
    );
    // Two of the same length from the same moment on: hardly any step is made alone.
    let api = Request {
        priority: Priority::Api,
        ..again.clone()
    };
    let jobs = [drafting.generate(api.clone()), drafting.generate(api)];
    for job in jobs {
        let heard = hear(job).await;
        assert_eq!(heard.tokens, whole.tokens);
        assert!(speculation(&heard).draft_tokens <= 30, "{:?}", speculation(&heard));
    }
    // A step that fails ends its answer and no other.
    let failed = hear(drafting.panicking_job(again.clone(), 20)).await;
    assert!(failed.ends[0].is_err());
    assert_eq!(said(&ask(&drafting, &again).await), said(&whole));
}

#[tokio::test]
async fn a_device_decides_by_its_own_times() {
    let auto = engine(Drafting::Auto);
    let plain = engine(Drafting::Off);
    let (_, again) = kinds().remove(0);
    let expected = ask(&plain, &again).await;
    for _ in 0..4 {
        let heard = ask(&auto, &again).await;
        assert_eq!(said(&heard), said(&expected));
        println!(
            "report: prompt lookup as this device decides: {:?}, {:.0} tok/s, {:.0} without",
            speculation(&heard),
            heard.done().timing.decode_tokens_per_second,
            expected.done().timing.decode_tokens_per_second
        );
    }
}

#[test]
fn what_drafts_cost_and_give_is_measured() {
    let engine = MlxEngine::start();
    let figures = engine.bench_lookup(pebble(), 64, 128).unwrap();
    assert_eq!(
        figures.iter().map(|figures| figures.draft_tokens).collect::<Vec<_>>(),
        [3, 7]
    );
    for LookupFigures {
        draft_tokens,
        without,
        with,
    } in figures
    {
        let rows = (draft_tokens + 1) as f64;
        println!(
            "report: prompt lookup: {without:.0} tok/s in single steps, {with:.0} with right drafts of {draft_tokens}: a pass takes {:.2} steps",
            rows * without / with
        );
        // Were the drafts not read at once, or not at all, these would be the limits.
        assert!(with > 0.5 * without && with < 1.5 * rows * without);
    }
    assert!(
        engine.bench_lookup(pebble(), 64, 8).is_err(),
        "too few tokens to measure"
    );
}
