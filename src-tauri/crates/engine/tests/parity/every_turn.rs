//! A chat with every kind of model says the same whether what was read before is cached or read again.

use std::collections::HashSet;

use crate::common::oracle::{python, seed, Written};
use crate::common::{hear, measured, source, Heard};
use engine::MlxEngine;
use protocol::{Engine, FolderSource, LoadEvent, LocalEngine, Message, Request, Role, Sampling, Usage};

/// Longer than the sliding windows, so that their rings turn within an answer.
const ANSWER: u32 = 24;

async fn load(engine: &MlxEngine, model: &FolderSource) {
    let mut events = engine.load(model.clone());
    while let Some(event) = events.recv().await {
        if let LoadEvent::Failed(error) = event {
            panic!("{}: {error}", model.reference);
        }
    }
}

async fn ask(engine: &MlxEngine, model: &FolderSource, messages: &[Message]) -> (Heard, Usage) {
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(ANSWER),
        ..Request::new(model.clone(), messages.to_vec())
    };
    let heard = hear(engine.generate(request)).await;
    let usage = heard.done().usage.unwrap();
    assert_eq!(
        usage.cached_tokens + usage.prefilled_tokens,
        usage.prompt_tokens,
        "{usage:?}"
    );
    (heard, usage)
}

#[tokio::test]
async fn a_turn_after_another_says_what_a_cold_run_says() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &[], true);
    let (warm, cold) = (MlxEngine::start(), MlxEngine::start());
    // Another number of rows may be rounded otherwise, and these models have no tokens that are likelier than all others.
    warm.compute_exactly().unwrap();
    cold.compute_exactly().unwrap();
    let (mut cached, mut read) = (0, 0);
    // A cache keeps the same whatever the weights are packed into, so a type's packed models wait for PONDER_FULL.
    let all = std::env::var_os("PONDER_FULL").is_some();
    let unpacked: HashSet<_> = written
        .variants
        .iter()
        .filter(|variant| !variant.quantized)
        .map(|variant| &variant.model_type)
        .collect();
    let chosen = written
        .variants
        .iter()
        .filter(|variant| all || !variant.quantized || !unpacked.contains(&variant.model_type));
    let chosen: Vec<_> = chosen.collect();
    for variant in &chosen {
        let name = &variant.name;
        let model = source(&written.model(name));
        load(&warm, &model).await;
        load(&cold, &model).await;
        cold.set_prefix_cache_budget(0).unwrap();

        let mut messages = vec![Message::text(Role::User, "Say something.")];
        let (first, usage) = ask(&warm, &model, &messages).await;
        let beginning = usage.prompt_tokens;
        messages.push(Message::text(Role::Assistant, first.text));
        messages.push(Message::text(Role::User, "And something else!"));
        let (second, usage) = ask(&warm, &model, &messages).await;
        let (again, usage_again) = ask(&warm, &model, &messages).await;
        let (expected, usage_cold) = ask(&cold, &model, &messages).await;
        assert_eq!(usage_cold.cached_tokens, 0, "{name}");
        assert_eq!(
            usage_again.prefilled_tokens, 1,
            "{name}: another answer reads nothing anew"
        );
        assert!(
            usage.cached_tokens >= beginning - 1,
            "{name}: {usage:?} after {beginning} tokens"
        );
        if variant.steps_alike {
            assert_eq!(second.tokens, expected.tokens, "{name}: the second turn");
            assert_eq!(again.tokens, expected.tokens, "{name}: another answer");
        }
        measured::keep("turns", &variant.model_type, 0.0);
        cached += usage.cached_tokens + usage_again.cached_tokens;
        read += usage.prefilled_tokens + usage_again.prefilled_tokens;
    }
    println!(
        "report: turns of {} kinds of model say what cold runs say; {cached} tokens were kept, {read} read",
        chosen.len()
    );
}
