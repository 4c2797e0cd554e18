//! Models with adapters: the logits of mlx-lm, in both layouts of files, beside a model that shares its weights.

use std::path::Path;

use crate::common::oracle::{python, seed, write, Written};
use crate::common::{hear, pebble, pebble_dir, question, read_safetensors, source};
use engine::MlxEngine;
use protocol::{Engine, ErrorCode, FolderSource, LocalEngine, ModelSource, Request, Sampling, Thinking};

/// The largest difference of a logit, both in 32 bit floats.
const BOUND: f32 = 2e-3;

/// Models, and how their adapters are made.
const CASES: &[(&str, &[&str])] = &[
    ("qwen2", &["--dora"]),
    ("phi3", &[]),
    ("qwen3-4bit", &["--dora"]),
    ("gemma4-e2b", &[]),
    ("gpt_neox", &[]),
    (
        "qwen3.5",
        &[
            "--keys",
            "linear_attn.in_proj_qkv",
            "self_attn.q_proj",
            "self_attn.o_proj",
            "mlp.up_proj",
        ],
    ),
    ("deepseek-v2", &["--keys", "self_attn.q_proj", "self_attn.o_proj"]),
    // All modules of the layers, experts among them.
    ("qwen3-moe", &[]),
    (
        "nemotron-h-experts",
        &["--keys", "mixer.switch_mlp.fc1", "mixer.switch_mlp.fc2"],
    ),
    // An embedding that is the output layer too.
    ("qwen2-tied-6bit", &["--keys", "model.embed_tokens", "self_attn.v_proj"]),
];

/// More of them, for full runs.
const MORE: &[(&str, &[&str])] = &[
    (
        "qwen3-moe-4bit",
        &["--keys", "mlp.switch_mlp.up_proj", "self_attn.q_proj"],
    ),
    ("gpt-oss", &["--keys", "mlp.experts.gate_proj", "mlp.experts.down_proj"]),
    ("gemma3-text", &["--keys", "model.embed_tokens"]),
    ("qwen3", &["--keys", "model.embed_tokens"]),
];

fn with_adapter(model: &Path, adapter: &Path) -> FolderSource {
    FolderSource {
        reference: format!("{}:{}", model.display(), adapter.display()),
        adapter: Some(adapter.to_owned()),
        ..source(model)
    }
}

fn largest_difference(found: &[Vec<f32>], wanted: &[f32]) -> f32 {
    let found = found.concat();
    assert_eq!(found.len(), wanted.len());
    let differences = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

/// Compares a model with its adapter and without it, in turn, all with the same weights.
async fn compare(engine: &MlxEngine, model: &Path, folder: &Path) -> [f32; 5] {
    let figures = read_safetensors(&folder.join("figures.safetensors"));
    let ids = figures["prompt"].ids();
    let logits = |source: FolderSource, chunk| engine.logits(source, ids.clone(), true, chunk).unwrap();
    let (base, adapted) = (figures["base"].floats(), figures["logits"].floats());
    let changed = base
        .iter()
        .zip(&adapted)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert!(changed > 50.0 * BOUND, "the adapter changes next to nothing");
    let mlx = folder.join("mlx");
    // PEFT has no layout for stacks of experts.
    let peft = Some(folder.join("peft"))
        .filter(|peft| peft.is_dir())
        .unwrap_or_else(|| mlx.clone());
    let differences = [
        largest_difference(&logits(with_adapter(model, &mlx), None), &adapted),
        largest_difference(&logits(source(model), None), &base),
        largest_difference(&logits(with_adapter(model, &peft), Some(7)), &adapted),
        largest_difference(&logits(with_adapter(model, &mlx), Some(1)), &adapted),
        largest_difference(&logits(source(model), Some(3)), &base),
    ];
    let loaded = engine.loaded();
    let bytes: Vec<u64> = loaded.iter().map(|info| info.resident_bytes).collect();
    // Those of the first are measured, and other tests take and free memory meanwhile; the model alone was used last.
    let adapted = if peft == mlx { 1 } else { 2 };
    assert!(
        bytes.len() == 1 + adapted && bytes[adapted] == 0,
        "weights count once: {bytes:?}"
    );
    engine.unload_all().await.unwrap();
    differences
}

#[tokio::test]
async fn logits_with_adapters_are_those_of_mlx_lm() {
    let Some(python) = python() else { return };
    let more = std::env::var_os("PONDER_FULL").map_or(&[][..], |_| MORE);
    let cases: Vec<_> = CASES.iter().chain(more).collect();
    let names: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
    let written = Written::new(&python, seed(), &names, false);
    let (cpu, gpu) = (MlxEngine::start(), MlxEngine::start());
    cpu.compute_exactly().unwrap();
    gpu.pretend_gpu().unwrap();
    for (name, flags) in cases {
        let folder = tempfile::tempdir().unwrap();
        let variant = written.variants.iter().find(|variant| variant.name == *name).unwrap();
        let model = written.packed_in_f32(variant);
        let model_flag = ["--model", model.to_str().unwrap()];
        let flags = [&model_flag[..], flags].concat();
        write(&python, "adapters.py", folder.path(), seed(), &[], &flags);
        for (device, engine) in [("cpu", &cpu), ("gpu", &gpu)] {
            let differences = compare(engine, &model, folder.path()).await;
            println!("report: {name} {:?} {device}: {differences:?}", &flags[2..]);
            assert!(differences.iter().all(|one| *one < BOUND), "{name}: {differences:?}");
        }
    }
}

/// Has an adapter for Pebble written into a folder.
fn adapter_for_pebble(python: &Path, folder: &Path) -> FolderSource {
    let model = pebble_dir();
    write(
        python,
        "adapters.py",
        folder,
        seed(),
        &[],
        &["--model", model.to_str().unwrap()],
    );
    with_adapter(&model, &folder.join("mlx"))
}

fn ask(model: &FolderSource) -> Request {
    Request {
        model: ModelSource::Folder(model.clone()),
        sampling: Sampling::greedy(),
        max_tokens: Some(30),
        ..question("Tell me a story.", Thinking::Off)
    }
}

#[tokio::test]
async fn answers_with_and_without_an_adapter_at_once_are_those_of_each_alone() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let adapted = adapter_for_pebble(&python, folder.path());
    let engine = MlxEngine::start();
    let alone = [
        hear(engine.generate(ask(&pebble()))).await,
        hear(engine.generate(ask(&adapted))).await,
    ];
    assert_ne!(alone[0].text, alone[1].text);
    let both = tokio::join!(
        hear(engine.generate(ask(&adapted))),
        hear(engine.generate(ask(&pebble())))
    );
    assert_eq!((&both.1.text, &both.0.text), (&alone[0].text, &alone[1].text));
    // The prompt was read by each model for itself, and each goes on from its own.
    for answer in [&both.0, &both.1] {
        assert!(answer.done().usage.expect("a count").cached_tokens > 0);
    }
}

#[tokio::test]
async fn an_adapter_of_another_model_is_refused_and_the_model_goes_on() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = Written::new(&python, seed(), &["phi3"], true);
    let model = written.model("phi3");
    write(
        &python,
        "adapters.py",
        folder.path(),
        seed(),
        &[],
        &["--model", model.to_str().unwrap()],
    );
    let engine = MlxEngine::start();
    let before = hear(engine.generate(ask(&pebble()))).await;
    let wrong = with_adapter(&pebble_dir(), &folder.path().join("mlx"));
    let refused = hear(engine.generate(ask(&wrong))).await;
    let error = refused.error();
    assert_eq!(error.code, ErrorCode::ModelUnsupported);
    assert!(error.message.contains("trained for ponder/random"), "{error}");
    assert_eq!(hear(engine.generate(ask(&pebble()))).await.text, before.text);
    let gone = hear(engine.generate(ask(&with_adapter(&pebble_dir(), &folder.path().join("gone"))))).await;
    assert!(gone.error().message.contains("adapter_config.json"), "{}", gone.error());
}
