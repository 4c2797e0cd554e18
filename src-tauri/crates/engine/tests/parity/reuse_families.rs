//! Every kind of cache continues from what was read as if it had never stopped: windows, recurrent states, latents,
//! sinks, shared and packed keys, on tiny random models.

use crate::common::oracle::{python, seed, Written};
use crate::common::{hear, source, Heard};
use engine::MlxEngine;
use protocol::{Engine, FolderSource, KvBits, LoadEvent, LocalEngine, Message, Request, Role, Sampling};

/// One of each kind, for every day.
const SOME: [&str; 29] = [
    "gemma4-e2b",
    "gemma4-26b",
    "llama-llama3",
    "qwen3.5",
    "gpt-oss",
    "gemma3-text",
    "lfm2",
    "deepseek-v3",
    "gpt2",
    "nanbeige",
    "iquest-loop",
    "nemotron_nas",
    "afmoe",
    "laguna",
    "mistral4",
    "llama4",
    "mimo-v2-flash",
    "deepseek-v32",
    "minimax-m3",
    "hy-v4",
    "qwen4-exp",
    "longcat-lite",
    "phi-3-small",
    "nemotron-h",
    "falcon-h1",
    "kimi-linear",
    "ling-2.5",
    "baichuan-m1",
    "plamo2-1b",
];

async fn load(engine: &MlxEngine, model: &FolderSource) {
    let mut events = engine.load(model.clone());
    while let Some(event) = events.recv().await {
        if let LoadEvent::Failed(error) = event {
            panic!("{error}");
        }
    }
}

async fn ask(engine: &MlxEngine, model: &FolderSource, messages: &[Message], kv_bits: Option<KvBits>) -> Heard {
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(12),
        kv_bits,
        ..Request::new(model.clone(), messages.to_vec())
    };
    hear(engine.generate(request)).await
}

#[tokio::test]
async fn every_kind_of_cache_goes_on_from_what_was_read() {
    let Some(python) = python() else { return };
    let full = std::env::var_os("PONDER_FULL").is_some();
    let written = Written::new(&python, seed(), if full { &[] } else { &SOME }, false);
    let (engine, cold) = (MlxEngine::start(), MlxEngine::start());
    let (mut read, mut all, mut asked) = (0, 0, 0);
    for variant in &written.variants {
        // Some ropes turn a key by how much was read at once, so that no cache can be like another.
        if !variant.steps_alike || variant.quantized {
            continue;
        }
        let model = source(&written.model(&variant.name));
        load(&engine, &model).await;
        load(&cold, &model).await;
        cold.set_prefix_cache_budget(0).unwrap();
        for kv_bits in [None, Some(KvBits::Eight)] {
            let mut messages = Vec::new();
            for (turn, question) in ["one two three four five six seven", "and then?", "why?"]
                .into_iter()
                .enumerate()
            {
                messages.push(Message::text(Role::User, question));
                // The second time is another answer to the same question.
                for again in [false, true] {
                    let warm = ask(&engine, &model, &messages, kv_bits).await;
                    let usage = warm.done().usage.unwrap();
                    let expected = ask(&cold, &model, &messages, kv_bits).await;
                    let at = format!("{}, turn {turn}, {kv_bits:?}, again {again}: {usage:?}", variant.name);
                    assert_eq!(warm.tokens, expected.tokens, "{at}");
                    assert_eq!(expected.done().usage.unwrap().cached_tokens, 0);
                    assert!((turn == 0 && !again) || usage.cached_tokens > 0, "{at}");
                    assert!(!again || usage.prefilled_tokens <= 33, "{at}");
                    read += usage.prefilled_tokens;
                    all += usage.prompt_tokens;
                    asked += 1;
                    if again {
                        messages.push(Message::text(Role::Assistant, warm.text));
                    }
                }
            }
        }
    }
    println!("report: reuse {asked} answers of tiny models of many families, {read} of {all} prompt tokens read, all as from nothing");
    assert!(asked > 0 && read < all);
}
