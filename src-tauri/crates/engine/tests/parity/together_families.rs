//! In every family, answers that are made together say what each says alone, whatever is asked of them: tiny random
//! models in 32 bit floats on the CPU, greedy or with a seed, so that a single wrong row would change the words.

use std::path::Path;
use std::time::Duration;

use crate::common::oracle::{python, seed, Written};
use crate::common::{hear, source, Heard};
use engine::MlxEngine;
use protocol::{
    AnswerPrefix, Engine, EngineEvent, FinishReason, FolderSource, JobHandle, KvBits, LoadEvent, LocalEngine, Message,
    Priority, Request, Role, Sampling, Thinking,
};

const FAMILIES: [&str; 36] = [
    "gemma4-e2b",
    "gemma3-text",
    "llama-llama3",
    "qwen3",
    "qwen3-moe",
    "qwen3.5",
    "gpt-oss",
    "lfm2",
    "deepseek-v3",
    "phi3",
    "ministral3",
    "olmo3",
    "laguna",
    "phimoe",
    "mistral4",
    "llama4",
    "mimo-v2-flash",
    "minimax-m3",
    "deepseek-v4",
    "afm7",
    "hrm-text",
    "hy-v4",
    "qwen4-exp",
    "longcat-sparse",
    "longcat-lite-long-runs",
    "phi-3-small",
    "rwkv7-g1",
    "granite-hybrid",
    "nemotron-h-experts",
    "falcon-h1",
    "mamba",
    "recurrent-gemma",
    "kimi-linear",
    "ling-2.5",
    "baichuan-m1",
    "gear-full",
];

/// Longer than the sliding windows, so that their rings turn within an answer.
const TOKENS: u32 = 24;

/// The template that the oracle writes, with a switch for a thought that the prompt opens.
const TEMPLATE: &str =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking %}<think>\n{% endif %}{% endif %}";

/// A copy of a model that can be told to think.
fn thinking_model(from: &Path, to: &Path) -> FolderSource {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let path = to.join("tokenizer_config.json");
    let mut config: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["chat_template"] = TEMPLATE.into();
    std::fs::write(path, config.to_string()).unwrap();
    source(to)
}

async fn load(engine: &MlxEngine, model: &FolderSource) {
    let mut events = engine.load(model.clone());
    while let Some(event) = events.recv().await {
        if let LoadEvent::Failed(error) = event {
            panic!("{}: {error}", model.reference);
        }
    }
}

fn ask(model: &FolderSource, text: &str) -> Request {
    Request {
        sampling: Sampling::greedy(),
        thinking: Some(Thinking::Off),
        max_tokens: Some(TOKENS),
        ..Request::new(model.clone(), vec![Message::text(Role::User, text)])
    }
}

fn seeded(request: Request, seed: u64) -> Request {
    let sampling = Sampling {
        temperature: Some(1.0),
        seed: Some(seed),
        ..Sampling::default()
    };
    Request { sampling, ..request }
}

/// A question of `count` words.
fn words(count: usize) -> String {
    (0..count).map(|word| format!("{} ", word * 37 % 101)).collect()
}

/// Requests that differ in length and in what they ask of the engine.
fn kinds(model: &FolderSource, begun: &[u32]) -> Vec<(&'static str, Request)> {
    let kv = |bits, request| Request {
        kv_bits: Some(bits),
        ..request
    };
    vec![
        ("short", ask(model, "Hi")),
        ("past the window", ask(model, &words(40))),
        ("kv 8", kv(KvBits::Eight, ask(model, &words(12)))),
        ("kv 4", kv(KvBits::Four, ask(model, &words(25)))),
        ("seed", seeded(ask(model, "Say something."), 7)),
        (
            "budget",
            Request {
                thinking: Some(Thinking::On),
                thinking_budget: Some(5),
                ..ask(model, "Why?")
            },
        ),
        (
            "continued",
            Request {
                answer_prefix: Some(AnswerPrefix::Tokens {
                    tokens: begun.to_vec(),
                    model_revision: None,
                    thinking_ended: false,
                }),
                ..ask(model, "Hi")
            },
        ),
        (
            "logprobs",
            Request {
                top_logprobs: Some(3),
                ..ask(model, &words(6))
            },
        ),
    ]
}

fn said(heard: &Heard) -> (&str, &str, &[u32], FinishReason) {
    (&heard.text, &heard.thinking, &heard.tokens, heard.done().finish_reason)
}

/// Takes `count` tokens of a job.
async fn tokens(job: &mut JobHandle, count: usize) -> Vec<u32> {
    let mut all = Vec::new();
    while all.len() < count {
        match job.events.recv().await {
            Some(EngineEvent::Delta { tokens, .. }) => all.extend(tokens),
            Some(EngineEvent::Done(done)) => {
                all.extend(done.tokens);
                break;
            }
            Some(EngineEvent::Failed(error)) => panic!("{error}"),
            Some(_) => {}
            None => break,
        }
    }
    all
}

async fn check_family(engine: &MlxEngine, model: &FolderSource, name: &str) -> usize {
    load(engine, model).await;
    engine.set_prefix_cache_budget(0).unwrap();
    let begun = hear(engine.generate(ask(model, "Hi"))).await.tokens;
    let kinds = kinds(model, &begun[..begun.len().min(9)]);
    let mut alone = Vec::new();
    for (_, request) in &kinds {
        alone.push(hear(engine.generate(request.clone())).await);
    }
    assert!(
        !alone[5].thinking.is_empty() && alone[5].notices.len() == 1,
        "{name}: {:?}",
        alone[5]
    );

    // Two that join at different times, then all of them, at once and one after the other.
    let mut first = engine.generate(kinds[0].1.clone());
    let mut heard = tokens(&mut first, 3).await;
    let second = engine.generate(kinds[1].1.clone());
    heard.extend(hear(first).await.tokens);
    assert_eq!(heard, alone[0].tokens, "{name}: the first of two");
    assert_eq!(said(&hear(second).await), said(&alone[1]), "{name}: the second of two");
    for pause in [0, 4] {
        let mut jobs = Vec::new();
        for (_, request) in &kinds {
            jobs.push(engine.generate(request.clone()));
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        for (((kind, _), alone), job) in kinds.iter().zip(&alone).zip(jobs) {
            let heard = hear(job).await;
            assert_eq!(said(&heard), said(alone), "{name}, {kind}, {pause} ms apart");
            for (together, alone) in heard.logprobs.iter().zip(&alone.logprobs) {
                assert!(
                    (together.logprob - alone.logprob).abs() < 1e-3,
                    "{name}: {together:?} {alone:?}"
                );
            }
            assert_eq!(heard.logprobs.len(), alone.logprobs.len());
        }
    }

    // One is cancelled and one told to answer in the middle; two others do not notice.
    let endless = |text: &str| Request {
        max_tokens: Some(400),
        ..ask(model, text)
    };
    let long = hear(engine.generate(endless("Go on."))).await;
    let kept = [engine.generate(kinds[1].1.clone()), engine.generate(kinds[4].1.clone())];
    let mut given_up = engine.generate(endless("Go on."));
    let mut thinking = engine.generate(Request {
        thinking: Some(Thinking::On),
        ..endless("Why?")
    });
    let mut thought = tokens(&mut thinking, 2).await;
    thinking.end_thinking.answer_now();
    let mut before = tokens(&mut given_up, 4).await;
    given_up.cancel.cancel();
    let late = engine.generate(kinds[0].1.clone());
    before.extend(hear(given_up).await.tokens);
    assert!(
        long.tokens.starts_with(&before),
        "{name}: what was cancelled is the beginning of the whole"
    );
    let answered = hear(thinking).await;
    thought.extend(&answered.tokens);
    // The same thought ended by a budget, alone.
    let budget = Request {
        thinking: Some(Thinking::On),
        thinking_budget: answered.done().usage.unwrap().thinking_tokens,
        ..endless("Why?")
    };
    let expected = hear(engine.generate(budget)).await;
    assert_eq!(thought, expected.tokens, "{name}: answer now");
    for (kept, alone) in kept.into_iter().zip([&alone[1], &alone[4]]) {
        assert_eq!(said(&hear(kept).await), said(alone), "{name}: beside one that left");
    }
    assert_eq!(
        said(&hear(late).await),
        said(&alone[0]),
        "{name}: joined where one left"
    );

    // Three answers to one prompt, which is read once.
    let several = |seed| seeded(ask(model, &words(60)), seed);
    let mut alone = Vec::new();
    for seed in 0..3 {
        alone.push(hear(engine.generate(several(seed))).await);
    }
    engine.set_prefix_cache_budget(1 << 30).unwrap();
    let api = |request| Request {
        priority: Priority::Api,
        ..request
    };
    let jobs: Vec<JobHandle> = (0..3).map(|seed| engine.generate(api(several(seed)))).collect();
    let prompt = alone[0].done().usage.unwrap().prompt_tokens;
    let mut read = 0;
    for (job, alone) in jobs.into_iter().zip(&alone) {
        let heard = hear(job).await;
        assert_eq!(said(&heard), said(alone), "{name}: one of three");
        read += heard.done().usage.unwrap().prefilled_tokens;
    }
    assert!(
        read < prompt + prompt / 2,
        "{name}: three read {read} tokens of {prompt}"
    );
    2 + 2 * kinds.len() + 5 + 3
}

#[tokio::test]
async fn every_family_says_together_what_each_says_alone() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &FAMILIES, true);
    let folder = tempfile::tempdir().unwrap();
    let engine = MlxEngine::start();
    // How a prompt is parted depends on the time that its chunks take. The last bits do, too, and a key that is rounded
    // to 16 bits makes a thousandth of them.
    engine.compute_exactly().unwrap();
    let mut answers = 0;
    for name in FAMILIES {
        let model = thinking_model(&written.model(name), &folder.path().join(name));
        answers += check_family(&engine, &model, name).await;
    }
    println!(
        "report: together {answers} answers of {} families say what each says alone",
        FAMILIES.len()
    );
    engine.unload_all().await.unwrap();
    assert_eq!(engine.inspect().unwrap().living, 0);
}
