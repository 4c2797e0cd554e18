//! How likely tokens were: as mlx-lm tells it, together with what carries them, and the same beside other answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::oracle::python;
use crate::common::{hear, pebble, pebble_dir, question};
use engine::MlxEngine;
use prompt::{ChatProcessor, RenderRequest};
use protocol::{Engine, EngineEvent, ErrorCode, LocalEngine, Request, Sampling, Thinking, TokenLogprobs};
use serde::Deserialize;
use serde_json::json;

/// How far a log probability may be off in 32 bit floats.
const TOLERANCE: f32 = 1e-3;
const TOKENS: u32 = 30;
const TOP: u8 = 5;

#[derive(Deserialize)]
struct Position {
    token: u32,
    logprob: f32,
    top: Vec<(u32, f32)>,
}

fn story(sampling: Sampling) -> Request {
    Request {
        sampling,
        max_tokens: Some(TOKENS),
        top_logprobs: Some(TOP),
        ..question("Tell me a story.", Thinking::Off)
    }
}

fn samplings() -> [Sampling; 2] {
    let penalised = Sampling {
        repetition_penalty: Some(1.4),
        logit_bias: BTreeMap::from([(300, 2.0), (17, -1.5)]),
        ..Sampling::greedy()
    };
    [Sampling::greedy(), penalised]
}

fn seeded(seed: u64) -> Sampling {
    Sampling {
        temperature: Some(1.3),
        top_p: Some(0.9),
        seed: Some(seed),
        ..Sampling::default()
    }
}

#[tokio::test]
async fn log_probabilities_are_those_of_mlx_lm() {
    let Some(python) = python() else { return };
    let processor = ChatProcessor::open(&pebble_dir()).unwrap();
    let asked: Vec<serde_json::Value> = samplings()
        .iter()
        .map(|sampling| {
            let request = story(sampling.clone());
            let render = RenderRequest {
                messages: &request.messages,
                tools: &[],
                thinking: request.thinking,
                add_generation_prompt: true,
                images: &[],
            };
            json!({
                "prompt": processor.prompt(&render).unwrap().ids,
                "tokens": TOKENS,
                "top": TOP,
                "repetition_penalty": sampling.repetition_penalty,
                "logit_bias": sampling.logit_bias,
            })
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/logprobs.py");
    let mut command = Command::new(python);
    // The oracle brings an MLX of its own.
    command
        .env_remove("LD_LIBRARY_PATH")
        .arg(script)
        .arg("--model")
        .arg(pebble_dir());
    let ran = command.args(["--asked", &json!(asked).to_string()]).output().unwrap();
    assert!(
        ran.status.success(),
        "the oracle failed: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let expected: Vec<Vec<Position>> = serde_json::from_slice(&ran.stdout).unwrap();

    let engine = MlxEngine::start();
    engine.compute_exactly().unwrap();
    let mut worst: f32 = 0.0;
    for (sampling, expected) in samplings().into_iter().zip(expected) {
        let heard = hear(engine.generate(story(sampling))).await;
        assert_eq!(heard.logprobs.len(), TOKENS as usize);
        for (at, (found, expected)) in heard.logprobs.iter().zip(&expected).enumerate() {
            assert_eq!(found.token, expected.token, "position {at}");
            assert_eq!(found.top.len(), expected.top.len());
            worst = worst.max((found.logprob - expected.logprob).abs());
            for (found, (token, logprob)) in found.top.iter().zip(&expected.top) {
                worst = worst.max((found.logprob - logprob).abs());
                assert_eq!(found.token, *token, "position {at}: {found:?}");
            }
        }
    }
    println!("report: logprobs agree with mlx-lm, the largest difference is {worst:.1e}");
    assert!(worst <= TOLERANCE, "{worst}");
}

/// The log probabilities of a job, each of which has to come right before the tokens it is of.
async fn listen(engine: &MlxEngine, request: Request) -> (Vec<u32>, Vec<TokenLogprobs>) {
    let mut job = engine.generate(request);
    let (mut tokens, mut all, mut told) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = job.events.recv().await {
        let carried = match event {
            EngineEvent::Logprobs(logprobs) => {
                assert!(told.is_empty(), "nothing carried {told:?}");
                told = logprobs;
                continue;
            }
            EngineEvent::Delta { tokens, .. } => tokens,
            EngineEvent::Done(done) => done.tokens,
            EngineEvent::Failed(error) => panic!("{error}"),
            _ => Vec::new(),
        };
        let of: Vec<u32> = told.iter().map(|logprobs| logprobs.token).collect();
        assert_eq!(of, carried);
        tokens.extend(carried);
        all.append(&mut told);
    }
    (tokens, all)
}

#[tokio::test]
async fn each_token_is_told_with_what_carries_it_alone_and_beside_others() {
    let engine = MlxEngine::start();
    let mut alone = Vec::new();
    for seed in 0..3 {
        let (tokens, logprobs) = listen(&engine, story(seeded(seed))).await;
        assert_eq!(tokens.len(), logprobs.len());
        let text = hear(engine.generate(story(seeded(seed)))).await.text;
        let bytes: Vec<u8> = logprobs.iter().flat_map(|logprobs| logprobs.bytes.clone()).collect();
        assert!(
            String::from_utf8_lossy(&bytes).starts_with(&text),
            "{text:?} is not what {bytes:?} spells"
        );
        for position in &logprobs {
            assert_eq!(position.top.len(), usize::from(TOP));
            assert!(
                position.top.windows(2).all(|pair| pair[0].logprob >= pair[1].logprob),
                "{position:?}"
            );
            assert!(
                position.logprob <= position.top[0].logprob && position.top[0].logprob <= 0.0,
                "{position:?}"
            );
            let among = position.top.iter().find(|top| top.token == position.token);
            assert!(among.is_none_or(|top| (top.logprob, &top.bytes) == (position.logprob, &position.bytes)));
        }
        alone.push((tokens, logprobs));
    }
    assert!(alone[0].0 != alone[1].0 && alone[1].0 != alone[2].0, "seeds differ");
    let silent = Request {
        top_logprobs: None,
        ..story(Sampling::greedy())
    };
    let greedy = hear(engine.generate(silent.clone())).await;
    let beside = engine.generate(silent);
    let together = futures::join!(
        listen(&engine, story(seeded(0))),
        listen(&engine, story(seeded(1))),
        listen(&engine, story(seeded(2)))
    );
    for (together, alone) in [together.0, together.1, together.2].iter().zip(&alone) {
        assert_eq!(together.0, alone.0);
        for (together, alone) in together.1.iter().zip(&alone.1) {
            assert!(
                (together.logprob - alone.logprob).abs() <= TOLERANCE,
                "{together:?} {alone:?}"
            );
        }
    }
    let beside = hear(beside).await;
    assert_eq!(
        (&beside.tokens, beside.logprobs.len()),
        (&greedy.tokens, 0),
        "nobody asked for any"
    );
}

#[tokio::test]
async fn as_many_are_told_as_were_asked_for() {
    let engine = MlxEngine::start();
    for top in [0, 1, 20] {
        let asked = Request {
            top_logprobs: Some(top),
            max_tokens: Some(3),
            ..story(Sampling::greedy())
        };
        let (_, logprobs) = listen(&engine, asked).await;
        assert!(!logprobs.is_empty() && logprobs.iter().all(|position| position.top.len() == usize::from(top)));
    }
    let too_many = Request {
        top_logprobs: Some(21),
        ..story(Sampling::greedy())
    };
    assert_eq!(
        hear(engine.generate(too_many)).await.error().code,
        ErrorCode::BadRequest
    );
}

#[tokio::test]
async fn tokens_that_end_a_thought_for_the_model_have_no_log_probability() {
    let engine = MlxEngine::start();
    let asked = Request {
        top_logprobs: Some(2),
        thinking_budget: Some(3),
        ..question("What is 347 + 589?", Thinking::On)
    };
    let heard = hear(engine.generate(asked)).await;
    let told: Vec<u32> = heard.logprobs.iter().map(|logprobs| logprobs.token).collect();
    assert!(
        told.len() < heard.tokens.len(),
        "{} of {} tokens",
        told.len(),
        heard.tokens.len()
    );
    let mut rest = heard.tokens.iter();
    assert!(
        told.iter().all(|token| rest.any(|other| other == token)),
        "in the order of the answer"
    );
}

#[tokio::test]
async fn several_answers_to_one_question_read_it_once() {
    let engine = MlxEngine::start();
    let words: Vec<String> = (0..200).map(|word| (word * 7919 % 9973).to_string()).collect();
    let asked = |seed: u64| Request {
        max_tokens: Some(12),
        sampling: seeded(seed),
        ..question(&format!("{}. Tell me a story.", words.join(" ")), Thinking::Off)
    };
    let mut alone = Vec::new();
    for seed in 0..3 {
        engine.unload_all().await.unwrap();
        alone.push(hear(engine.generate(asked(seed))).await);
    }
    let prompt = alone[0].done().usage.unwrap().prefilled_tokens;
    engine.unload_all().await.unwrap();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    let jobs: Vec<_> = (0..3).map(|seed| engine.generate(asked(seed))).collect();
    let (mut read, mut cached) = (0, 0);
    for (job, alone) in jobs.into_iter().zip(&alone) {
        let heard = hear(job).await;
        assert_eq!((&heard.tokens, &heard.text), (&alone.tokens, &alone.text));
        let usage = heard.done().usage.unwrap();
        read += usage.prefilled_tokens;
        cached += usage.cached_tokens;
    }
    println!("report: three answers to one prompt of {prompt} tokens read {read} and had {cached} from the cache");
    assert!(
        read <= prompt + 2 * 34 && cached + read == 3 * prompt,
        "{read} of {prompt} read, {cached} cached"
    );
}
