//! Embeddings of tiny random models beside those that `tests/oracle/embeddings.py` computes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{oracle, source};
use engine::MlxEngine;
use protocol::{
    Content, EmbeddingInput, EmbeddingRequest, Embeddings, Engine, EngineEvent, Error, ErrorCode, LocalEngine, Message,
    Priority, Request, Role,
};
use serde::Deserialize;

/// The largest difference of a number in 32 bit floats, as in `families.rs`.
const BOUND: f32 = 2e-3;

#[derive(Deserialize)]
struct Model {
    name: String,
    inputs: Vec<Input>,
    ids: Vec<Vec<u32>>,
    vectors: Vec<Vec<f32>>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Input {
    Text(String),
    Pair([String; 2]),
    Ids(Vec<u32>),
}

struct Written {
    folder: tempfile::TempDir,
    models: Vec<Model>,
}

impl Written {
    /// All models, or the named ones.
    fn new(only: &[&str]) -> Option<Self> {
        let python = oracle::python()?;
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/embeddings.py");
        let mut command = Command::new(python);
        // The oracle brings an MLX of its own.
        command
            .env_remove("LD_LIBRARY_PATH")
            .arg(script)
            .arg("--out")
            .arg(folder.path());
        command.args(["--seed", &oracle::seed().to_string(), "--only", &only.join(",")]);
        let ran = command.output().unwrap();
        assert!(
            ran.status.success(),
            "the oracle failed: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let table = std::fs::read_to_string(folder.path().join("table.json")).unwrap();
        Some(Self {
            folder,
            models: serde_json::from_str(&table).unwrap(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn asked(folder: &Path, inputs: impl IntoIterator<Item = EmbeddingInput>) -> EmbeddingRequest {
    EmbeddingRequest {
        model: source(folder).into(),
        inputs: inputs.into_iter().collect(),
        dimensions: None,
        priority: Priority::Api,
        keep_alive: None,
    }
}

fn input(input: &Input) -> EmbeddingInput {
    match input {
        Input::Text(text) => EmbeddingInput::Text(text.clone()),
        Input::Pair([question, text]) => EmbeddingInput::Pair {
            question: question.clone(),
            text: text.clone(),
        },
        Input::Ids(ids) => EmbeddingInput::Tokens(ids.clone()),
    }
}

fn worst(made: &[Vec<f32>], wanted: &[Vec<f32>]) -> f32 {
    assert_eq!(made.len(), wanted.len());
    let pairs = made.iter().zip(wanted).flat_map(|(made, wanted)| {
        assert_eq!(made.len(), wanted.len());
        made.iter().zip(wanted)
    });
    pairs.map(|(made, wanted)| (made - wanted).abs()).fold(0.0, f32::max)
}

async fn embed(engine: &MlxEngine, request: EmbeddingRequest) -> Embeddings {
    engine.embed(request).await.unwrap()
}

#[tokio::test]
async fn every_kind_of_model_makes_the_vectors_of_the_oracle() {
    let Some(written) = Written::new(&[]) else { return };
    println!("{:24} {:>9} {:>9} {:>9}", "model", "together", "alone", "as a GPU");
    for model in &written.models {
        let (engine, folder) = (MlxEngine::start(), written.path(&model.name));
        engine.compute_exactly().unwrap();
        let together = embed(&engine, asked(&folder, model.inputs.iter().map(input))).await;
        let tokens: usize = model.ids.iter().map(Vec::len).sum();
        assert_eq!(
            together.prompt_tokens as usize, tokens,
            "{}: texts get the ids of the tokenizer",
            model.name
        );
        let mut alone = Vec::new();
        for one in &model.inputs {
            alone.extend(embed(&engine, asked(&folder, [input(one)])).await.vectors);
        }
        let inspection = engine.inspect().unwrap();
        assert_eq!(
            inspection.unevaluated, 0,
            "{}: everything is computed at load",
            model.name
        );
        // Masks take texts apart there, and quantised weights are left as they are, in 16 bits.
        engine.pretend_gpu().unwrap();
        let as_gpu = embed(&engine, asked(&folder, model.inputs.iter().map(input))).await;
        let as_gpu = worst(&as_gpu.vectors, &model.vectors);
        let figures = [
            worst(&together.vectors, &model.vectors),
            worst(&alone, &model.vectors),
            as_gpu,
        ];
        println!(
            "{:24} {:9.1e} {:9.1e} {:9.1e}",
            model.name, figures[0], figures[1], figures[2]
        );
        let quantized = model.name.ends_with("bit");
        let bounds = [BOUND, BOUND, if quantized { 5e-2 } else { BOUND }];
        for (figure, bound) in figures.into_iter().zip(bounds) {
            assert!(figure < bound, "{}: {figures:?}", model.name);
        }
        assert!(
            worst(&together.vectors, &alone) < 1e-4,
            "{}: neighbours change nothing",
            model.name
        );
    }
}

fn refused(result: protocol::Result<Embeddings>) -> Error {
    result.expect_err("it is refused")
}

#[tokio::test]
async fn what_cannot_be_embedded_is_refused_with_its_figures() {
    let Some(written) = Written::new(&["minilm", "qwen3", "embeddinggemma", "reranker"]) else {
        return;
    };
    let engine = MlxEngine::start();
    let bert = written.path("minilm");
    let text = |text: &str| EmbeddingInput::Text(text.into());
    let long = EmbeddingInput::Tokens(vec![9; 97]);
    let error = refused(engine.embed(asked(&bert, [text("w7"), long])).await);
    assert_eq!(error.code, ErrorCode::ContextFull);
    assert!(error.message.contains("97") && error.message.contains("96"), "{error}");
    assert_eq!(
        serde_json::to_value(&error.arguments).unwrap(),
        serde_json::json!({"input": 1, "prompt": 97, "context": 96})
    );
    for (inputs, index) in [
        (vec![text("w7"), text("")], 1),
        (vec![EmbeddingInput::Tokens(Vec::new())], 0),
        (vec![EmbeddingInput::Tokens(vec![7, 200])], 0),
    ] {
        let error = refused(engine.embed(asked(&bert, inputs)).await);
        assert_eq!(
            (error.code, error.arguments.get("input")),
            (ErrorCode::BadRequest, Some(&(index as u32).into())),
            "{error}"
        );
    }
    let error = refused(
        engine
            .embed(asked(&bert, vec![EmbeddingInput::Tokens(vec![9; 96]); 3200]))
            .await,
    );
    assert!(
        error.code == ErrorCode::BadRequest && error.message.contains("300000"),
        "{error}"
    );
    // Vectors of models that were trained so can be cut, and have the length 1 again.
    let cut = |folder: &Path| EmbeddingRequest {
        dimensions: Some(16),
        ..asked(folder, [text("w7 w8")])
    };
    let error = refused(engine.embed(cut(&bert)).await);
    assert!(
        error.code == ErrorCode::BadRequest && error.arguments.contains_key("dimensions"),
        "{error}"
    );
    let gemma = written.path("embeddinggemma");
    let whole = embed(&engine, asked(&gemma, [text("w7 w8")])).await.vectors.remove(0);
    let short = embed(&engine, cut(&gemma)).await.vectors.remove(0);
    let length = |vector: &[f32]| vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    assert!(short.len() == 16 && (length(&short) - 1.0).abs() < 1e-5);
    let scale = length(&whole[..16]);
    assert!(short
        .iter()
        .zip(&whole)
        .all(|(short, whole)| (short - whole / scale).abs() < 1e-5));

    let error = refused(engine.embed(asked(&crate::common::pebble_dir(), [text("w7")])).await);
    assert!(
        error.code == ErrorCode::BadRequest && error.message.contains("no embeddings"),
        "{error}"
    );
    let pair = || EmbeddingInput::Pair {
        question: "w7".into(),
        text: "w8".into(),
    };
    for (name, input, reason) in [
        ("minilm", pair(), "scores no texts"),
        ("reranker", text("w7"), "makes no embeddings"),
    ] {
        let error = refused(engine.embed(asked(&written.path(name), [input])).await);
        assert!(
            error.code == ErrorCode::BadRequest && error.message.contains(reason),
            "{name}: {error}"
        );
    }
    for name in ["minilm", "qwen3", "embeddinggemma", "reranker"] {
        let request = Request::new(source(&written.path(name)), vec![Message::text(Role::User, "hi")]);
        let heard = crate::common::hear(engine.generate(request)).await;
        assert!(
            heard.error().message.contains("makes embeddings"),
            "{name}: {}",
            heard.error()
        );
    }
}

#[tokio::test]
async fn a_chat_goes_on_beside_a_large_request_and_one_that_is_dropped_ends() {
    let Some(written) = Written::new(&["minilm"]) else {
        return;
    };
    let engine = MlxEngine::with_options(engine::EngineOptions {
        memory_guard: Some(std::sync::Arc::new(Roomy)),
        ..Default::default()
    });
    let folder = written.path("minilm");
    let many = |count: usize| asked(&folder, vec![EmbeddingInput::Tokens((5..95).collect()); count]);
    embed(&engine, many(1)).await;
    crate::common::hear(engine.generate(crate::common::story(2))).await;
    let loaded: Vec<String> = engine.loaded().iter().map(|info| info.family.clone()).collect();
    assert_eq!(loaded, ["bert", "gemma4"], "both stay");

    // Enough of them that they are not done before the chat is.
    let mut work = engine.embed(many(3300));
    let mut job = engine.generate(crate::common::story(150));
    let (mut last, mut worst, mut tokens) = (Instant::now(), Duration::ZERO, 0);
    while let Some(event) = job.events.recv().await {
        if let EngineEvent::Delta {
            content: Content::Text { .. },
            ..
        } = event
        {
            if tokens > 0 {
                worst = worst.max(last.elapsed());
            }
            (last, tokens) = (Instant::now(), tokens + 1);
        }
    }
    println!("report: the longest gap between two of {tokens} pieces: {worst:?}");
    assert!(tokens > 50, "{tokens} pieces");
    assert!(
        tokio::time::timeout(Duration::ZERO, &mut work).await.is_err(),
        "it is still under way"
    );
    // Nothing waits for it any more: the engine is free for others, although most of it was not read.
    drop(work);
    embed(&engine, many(1)).await;
    let embedded = engine.inspect().unwrap().embedded_texts;
    assert!(embedded < 3300, "{embedded} of 3300 texts were embedded");
    engine.unload_all().await.unwrap();
    assert!(engine.loaded().is_empty());
}

/// Memory without an end.
#[derive(Debug)]
struct Roomy;

impl protocol::MemoryGuard for Roomy {
    fn before_load(&self, _: &protocol::FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &protocol::FolderSource, _: u64) {}
}
