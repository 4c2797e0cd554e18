//! A chat with a model whose layers carry states instead of keys goes on from what it has read, and says what an engine
//! says that reads everything.

use crate::common::oracle::{python, seed, Written};
use crate::common::{hear, source, Heard};
use engine::MlxEngine;
use protocol::{Engine, FolderSource, LocalEngine, Message, Request, Role, Sampling};

/// One of each kind of layers, and one without attention.
const STATES: [&str; 16] = [
    "qwen3.5",
    "lfm2",
    "granite-hybrid",
    "nemotron-h",
    "falcon-h1",
    "mamba2",
    "jamba",
    "recurrent-gemma",
    "kimi-linear",
    "ring-linear",
    "baichuan-m1",
    "gear-full",
    "plamo2-1b",
    "rwkv7-g1",
    "deepseek-v4",
    "qwen4-exp",
];

async fn ask(engine: &MlxEngine, model: &FolderSource, messages: &[Message]) -> Heard {
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(12),
        ..Request::new(model.clone(), messages.to_vec())
    };
    hear(engine.generate(request)).await
}

#[tokio::test]
async fn turns_go_on_from_states_and_say_the_same() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &STATES, false);
    assert_eq!(written.variants.len(), STATES.len());
    for variant in &written.variants {
        let model = source(&written.model(&variant.name));
        let (warm, cold) = (MlxEngine::start(), MlxEngine::start());
        let (mut messages, mut cached) = (Vec::new(), Vec::new());
        for question in [
            "What is a river?",
            "And where does it end?",
            "Name three of them.",
            "Thank you.",
        ] {
            messages.push(Message::text(Role::User, question));
            let heard = ask(&warm, &model, &messages).await;
            let fresh = ask(&cold, &model, &messages).await;
            assert_eq!(heard.tokens, fresh.tokens, "{}: {question}", variant.name);
            let usage = heard.done().usage.unwrap();
            assert_eq!(usage.cached_tokens + usage.prefilled_tokens, usage.prompt_tokens);
            cached.push(usage.cached_tokens);
            assert_eq!(fresh.done().usage.unwrap().cached_tokens, 0);
            // An unloaded model remembers nothing.
            cold.unload_all().await.unwrap();
            messages.push(Message::text(Role::Assistant, heard.text));
        }
        assert!(
            cached[0] == 0 && cached[1..].iter().all(|tokens| *tokens > 0),
            "{}: {cached:?}",
            variant.name
        );
        assert!(cached.is_sorted(), "each turn goes on from more: {cached:?}");
    }
}
