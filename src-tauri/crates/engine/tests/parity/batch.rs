//! Several sequences decoded together give the tokens that each gives alone, in every family, and one alone costs
//! nothing.

use crate::common::oracle::{python, seed, Written};
use crate::common::{measured, source};
use engine::MlxEngine;
use protocol::KvBits;

/// Families, with the number of operations of a decode step of one sequence on a CPU, with its kernels, and on a GPU,
/// as they were before sequences could decode together.
const FAMILIES: [(&str, u64, u64); 26] = [
    ("gemma4-e2b", 214, 485),
    ("gemma4-26b", 251, 416),
    ("gemma3-text", 115, 239),
    ("llama-llama3", 48, 79),
    ("llama-dynamic", 48, 79),
    ("qwen3", 48, 91),
    ("qwen3-moe", 70, 111),
    ("qwen3.5", 176, 211),
    ("qwen3-next", 230, 277),
    ("gpt-oss", 149, 196),
    ("lfm2", 65, 106),
    ("deepseek-v2", 141, 166),
    ("deepseek-v3", 177, 202),
    ("phi3", 48, 79),
    ("ministral3", 48, 79),
    ("olmo3", 115, 138),
    ("gpt2", 68, 81),
    ("minicpm3", 130, 147),
    ("nanbeige", 64, 105),
    ("nanochat", 61, 86),
    ("nemotron_nas", 52, 85),
    ("openelm", 62, 120),
    ("bitnet", 72, 85),
    ("iquest-loop", 100, 144),
    ("plamo", 59, 85),
    ("talkie", 62, 105),
];

/// Families with parts that none of those has, whose operations are not counted.
const MORE: [&str; 41] = [
    "ernie4.5-moe",
    "bailing-moe",
    "exaone-moe",
    "mellum",
    "minimax-m2",
    "minimax-m3",
    "hunyuan-moe",
    "afmoe",
    "laguna",
    "klear",
    "phimoe",
    "mistral4",
    "muse-glimmer",
    "spark2.5",
    "step3.5",
    "llama4",
    "llama4-text",
    "mimo-v2-flash",
    "dbrx",
    "deepseek-v32",
    "kimi-linear",
    "ring-linear",
    "ling-2.5",
    "ling-3",
    "baichuan-m1",
    "gear-full",
    "plamo2-1b",
    "cohere2-moe",
    "kolibri-1",
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
    "phixtral-4x",
];

/// How far a logit may be off in 32 bit floats; logits spread over about ten.
const EXACT: f32 = 2e-3;

/// The same with keys and values in few bits: a rounding may tip one of them to the next value that those bits have.
const PACKED: f32 = 0.1;

/// Prompts of different lengths, some longer than the sliding windows.
fn prompts(vocabulary: u32) -> Vec<Vec<u32>> {
    let prompt = |(index, length): (u32, u32)| (0..length).map(|at| (at * 31 + index * 17 + 3) % vocabulary).collect();
    [(0, 5), (1, 23), (2, 2), (3, 70)].into_iter().map(prompt).collect()
}

#[test]
fn sequences_that_decode_together_give_what_each_gives_alone() {
    let Some(python) = python() else { return };
    let daily = [&FAMILIES.map(|(name, ..)| name)[..], &MORE].concat();
    let written = Written::new(&python, seed(), &measured::or_all(&daily), true);
    let (cpu, gpu) = (MlxEngine::start(), MlxEngine::start());
    gpu.pretend_gpu().unwrap();
    let mut worst: f32 = 0.0;
    let mut failures = Vec::new();
    for variant in &written.variants {
        let name = &variant.name;
        let (model, mut worst_of_variant, before) = (source(&written.model(name)), 0.0f32, failures.len());
        for (engine, bits, bound) in [
            (&cpu, None, EXACT),
            (&cpu, Some(KvBits::Eight), PACKED),
            (&cpu, Some(KvBits::Four), PACKED),
        ] {
            let all = engine.decode_together(model.clone(), prompts(64), 12, bits).unwrap();
            for (index, decoded) in all.iter().enumerate() {
                if decoded.alone != decoded.together || decoded.apart > bound {
                    failures.push(format!("{name}, {bits:?}, sequence {index}: {decoded:?}"));
                }
                if bits.is_none() {
                    worst_of_variant = worst_of_variant.max(decoded.apart);
                }
            }
        }
        worst = worst.max(worst_of_variant);
        // A GPU's ways in the files' own number formats: near enough.
        for decoded in gpu.decode_together(model, prompts(64), 12, None).unwrap() {
            if decoded.apart > PACKED {
                failures.push(format!("{name} by the operations of GPUs: {decoded:?}"));
            }
        }
        if failures.len() == before {
            measured::keep("batch", &variant.model_type, worst_of_variant);
        }
    }
    println!(
        "report: batch of {} families: the largest difference of a logit is {worst:.1e}",
        written.variants.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn one_sequence_alone_costs_no_operation_more() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &FAMILIES.map(|(name, ..)| name), true);
    let (cpu, gpu) = (MlxEngine::start(), MlxEngine::start());
    gpu.pretend_gpu().unwrap();
    let found = FAMILIES.map(|(name, ..)| {
        let model = source(&written.model(name));
        let [cpu, gpu] = [&cpu, &gpu].map(|engine| engine.step_operations(model.clone()).unwrap());
        (name, cpu, gpu)
    });
    assert_eq!(found, FAMILIES);
}
