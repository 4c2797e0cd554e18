//! Drafts that are partly wrong leave nothing behind, in every family: what follows is what single steps give, past the
//! sliding windows too, with states of recurrent layers, with packed keys, and with draws and penalties.

use crate::common::oracle::{python, seed, Written};
use crate::common::{measured, pebble, source};
use engine::{bench_prompt, MlxEngine};
use protocol::{KvBits, Sampling};

/// In 32 bit floats, so that a rounding changes no token.
const FAMILIES: [&str; 57] = [
    "gemma4-e2b",
    "gemma4-26b",
    "gemma3-text",
    "llama-llama3",
    "llama-longrope",
    "qwen3",
    "qwen3-moe",
    "qwen3.5",
    "qwen3-next",
    "gpt-oss",
    "lfm2",
    "lfm2-moe",
    "deepseek-v2",
    "deepseek-v3",
    "phi3",
    "ministral3",
    "olmo3",
    "exaone4",
    "gpt2",
    "minicpm3",
    "iquest-loop",
    "nanbeige",
    "nemotron_nas",
    "openelm",
    "plamo",
    "plamo3",
    "talkie",
    "muse-glimmer",
    "step3.5",
    "mistral4",
    "llama4",
    "mimo-v2-flash",
    "deepseek-v32",
    "minimax-m3",
    "granite-hybrid",
    "nemotron-h-experts",
    "falcon-h1",
    "olmo-hybrid",
    "jamba",
    "recurrent-gemma",
    "kimi-linear",
    "ring-linear",
    "ling-3",
    "longcat-flash",
    "xing-4",
    "deepseek-v4",
    "afm7",
    "hrm-text",
    "hy-v4",
    "qwen4-exp",
    "longcat-sparse",
    "longcat-lite",
    "phi-3-small",
    "rwkv7-g1",
    "baichuan-m1",
    "gear-full",
    "plamo2-1b",
];

/// Tokens after each prompt: more than any of the windows.
const TOKENS: usize = 40;

fn seeded() -> Sampling {
    Sampling {
        temperature: Some(0.8),
        top_p: Some(0.9),
        repetition_penalty: Some(1.3),
        seed: Some(11),
        ..Sampling::default()
    }
}

#[test]
fn wrong_drafts_leave_nothing_behind_in_any_family() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &measured::or_all(&FAMILIES), true);
    let engine = MlxEngine::start();
    let (mut failures, mut tokens, mut passes) = (Vec::new(), 0, 0);
    for variant in &written.variants {
        let (name, before) = (&variant.name, failures.len());
        // Several rows times packed weights are rounded otherwise than one, and a rope may depend on the length.
        if !FAMILIES.contains(&name.as_str()) && (variant.quantized || !variant.steps_alike) {
            continue;
        }
        let model = source(&written.model(name));
        let mut kinds = vec![
            (70, Sampling::greedy(), None),
            (23, seeded(), None),
            (40, Sampling::greedy(), Some(KvBits::Four)),
        ];
        if std::env::var_os("PONDER_FULL").is_some() {
            kinds.push((5, Sampling::greedy(), None));
            kinds.push((40, Sampling::greedy(), Some(KvBits::Eight)));
        }
        for (length, sampling, bits) in kinds {
            let prompt = bench_prompt(length, 64);
            let (stepped, drafted, made) = engine
                .decode_with_drafts(model.clone(), prompt, TOKENS, sampling, bits)
                .unwrap();
            if stepped != drafted {
                let at = stepped.iter().zip(&drafted).position(|(a, b)| a != b);
                failures.push(format!("{name}, prompt of {length}, {bits:?}: differs at {at:?}"));
            }
            tokens += TOKENS;
            passes += made;
        }
        if failures.len() == before {
            measured::keep("drafts", &variant.model_type, 0.0);
        }
    }
    println!(
        "report: prompt lookup: {} families, {tokens} tokens in {passes} passes",
        written.variants.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn wrong_drafts_leave_nothing_behind_past_pebbles_window() {
    let engine = MlxEngine::start();
    for (length, tokens, bits) in [
        (3, 300, None),
        (100, 200, None),
        (255, 90, Some(KvBits::Eight)),
        (300, 60, Some(KvBits::Four)),
    ] {
        let prompt = bench_prompt(length, 4096);
        let (stepped, drafted, passes) = engine
            .decode_with_drafts(pebble(), prompt, tokens, Sampling::greedy(), bits)
            .unwrap();
        assert_eq!(stepped, drafted, "{length}, {bits:?}");
        assert!(passes < tokens * 2 / 3, "{passes} passes for {tokens} tokens");
    }
}

#[test]
fn a_model_of_any_family_drafts_what_it_says() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &FAMILIES, true);
    let engine = MlxEngine::start();
    let wrong = FAMILIES.map(|name| {
        let model = source(&written.model(name));
        engine
            .wrong_drafts_of_itself(model, bench_prompt(70, 64), TOKENS)
            .unwrap()
    });
    let failures: Vec<_> = FAMILIES.iter().zip(wrong).filter(|(_, wrong)| *wrong > 0).collect();
    assert!(failures.is_empty(), "{failures:?}");
    println!("report: drafts by a model: {} families", FAMILIES.len());
}
