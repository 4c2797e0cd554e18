//! Heads that draft from the model's own states: they draft what mlx-vlm's do, and answers are those without them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::oracle::{computed, python, seed, write};
use crate::common::{hear, read_safetensors, source, Heard, Plenty};
use engine::{Drafting, EngineOptions, MlxEngine};
use protocol::{
    AnswerPrefix, Engine, KvBits, LocalEngine, Message, NoticeCode, Priority, Request, Role, Sampling,
    SpeculationUsage, Thinking,
};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

/// Logits nearer to each other than this are anybody's choice.
const NEAR: f32 = 1e-3;

/// Models with heads that guess what they say.
const GUESSED: [&str; 2] = ["qwen3.5", "gemma4"];

#[derive(Deserialize)]
struct Table {
    names: Vec<String>,
    places: Vec<usize>,
}

/// The folder of models and heads.
struct Written {
    folder: PathBuf,
    /// Removes the folder, if it is of this test alone.
    _own: Option<TempDir>,
}

impl Written {
    /// Written by `drafts.py`; `None` without a Python that has mlx-vlm.
    fn new() -> Option<Self> {
        let python = python()?;
        if let Some(folder) = computed("drafts").filter(|folder| folder.is_dir()) {
            return Some(Self { folder, _own: None });
        }
        let folder = tempfile::tempdir().unwrap();
        write(&python, "drafts.py", folder.path(), seed(), &[], &[]);
        Some(Self {
            folder: folder.path().to_owned(),
            _own: Some(folder),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

#[test]
fn heads_draft_what_those_of_mlx_vlm_do() {
    let Some(written) = Written::new() else { return };
    let table: Table = serde_json::from_slice(&std::fs::read(written.path("table.json")).unwrap()).unwrap();
    let engine = MlxEngine::start();
    // Else keys are kept in 16 bits.
    engine.compute_exactly().unwrap();
    for name in &table.names {
        let stored = read_safetensors(&written.path(&format!("{name}.safetensors")));
        let (text, margins) = (stored["text"].ids(), stored["margins"].floats());
        let count = stored["drafts"].shape[1];
        let (model, head) = (
            source(&written.path(name)),
            source(&written.path(&format!("{name}.head"))),
        );
        let drafts = engine
            .drafts_of_head(model, head, text, table.places.clone(), count)
            .unwrap();
        let expected = stored["drafts"].ids();
        let rows = expected.chunks(count).zip(margins.chunks(count));
        let (mut compared, mut distinct) = (0, std::collections::BTreeSet::<u32>::new());
        for ((drafted, (expected, margins)), place) in drafts.iter().zip(rows).zip(&table.places) {
            let apart = drafted
                .iter()
                .zip(expected)
                .position(|(drafted, expected)| drafted != expected);
            if let Some(apart) = apart {
                assert!(
                    margins[apart] < NEAR,
                    "{name}, after {place} tokens: {drafted:?} and {expected:?} with margins {margins:?}"
                );
            }
            compared += apart.unwrap_or(count);
            distinct.extend(drafted);
        }
        println!(
            "report: drafts of a head: {name}: {compared} of {} tokens are mlx-vlm's",
            expected.len()
        );
        assert!(
            compared * 10 > expected.len() * 9 && distinct.len() > 10,
            "{name}: {compared}, {distinct:?}"
        );
    }
}

/// An engine whose answers are drafted by their draft model alone, in every mode but `Off`.
fn engine(draft_model: Drafting) -> MlxEngine {
    let engine = MlxEngine::with_options(EngineOptions {
        prompt_lookup: Drafting::Off,
        draft_model,
        memory_guard: Some(Arc::new(Plenty)),
        ..EngineOptions::default()
    });
    engine.compute_exactly().unwrap();
    engine
}

fn question(model: &Path, text: &str) -> Request {
    Request {
        max_tokens: Some(120),
        sampling: Sampling::greedy(),
        thinking: Some(Thinking::Off),
        ..Request::new(source(model), vec![Message::text(Role::User, text)])
    }
}

async fn ask(engine: &MlxEngine, request: &Request) -> Heard {
    hear(engine.generate(request.clone())).await
}

fn drafted(request: &Request, by: &Path) -> Request {
    Request {
        draft_model: Some(source(by)),
        ..request.clone()
    }
}

fn speculation(heard: &Heard) -> SpeculationUsage {
    heard.done().usage.unwrap().speculation.unwrap_or_default()
}

/// All that an answer says.
fn said(heard: &Heard) -> (&str, &str, &[u32], Option<u32>) {
    let usage = heard.done().usage.unwrap();
    (&heard.text, &heard.thinking, &heard.tokens, usage.thinking_tokens)
}

fn seeded(seed: u64) -> Sampling {
    Sampling {
        temperature: Some(0.8),
        top_p: Some(0.95),
        repetition_penalty: Some(1.1),
        seed: Some(seed),
        ..Sampling::default()
    }
}

#[tokio::test]
async fn answers_are_the_same_with_and_without_a_head() {
    let Some(written) = Written::new() else { return };
    for name in GUESSED {
        same_with_and_without(&written, name).await;
    }
}

async fn same_with_and_without(written: &Written, name: &str) {
    let (model, head) = (written.path(name), written.path(&format!("{name}.guesses")));
    let (plain, drafting) = (engine(Drafting::Off), engine(Drafting::Always));
    let asked = |text: &str| question(&model, text);
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}, "words": {"type": "array",
        "items": {"type": "string", "maxLength": 12}, "maxItems": 4}}, "required": ["sum", "words"]});
    let limited = |request: Request| Request {
        schema: Some(schema.clone()),
        ..request
    };
    let thinking = |budget: u32, request: Request| Request {
        thinking: Some(Thinking::On),
        thinking_budget: Some(budget),
        ..request
    };
    let drawn = |seed: u64, request: Request| Request {
        sampling: seeded(seed),
        ..request
    };
    let packed = |request: Request| Request {
        kv_bits: Some(KvBits::Eight),
        ..request
    };
    let kinds = [
        ("8 bits", packed(asked("Who are you?"))),
        ("greedy", asked("What is 347 + 589?")),
        ("long prompt", asked(&"Tell me about the sea. ".repeat(12))),
        ("drawn", drawn(4, asked("Tell me a story."))),
        ("schema", limited(asked("What is 347 + 589?"))),
        ("schema, drawn", limited(drawn(5, asked("What is 1 + 1?")))),
        ("budget", thinking(17, asked("Why?"))),
        ("budget, drawn", thinking(30, drawn(6, asked("Why not?")))),
        ("budget, schema", limited(thinking(12, asked("What is 2 + 2?")))),
    ];
    let (mut drafted_tokens, mut accepted) = (0, 0);
    for (kind, request) in kinds {
        let expected = ask(&plain, &request).await;
        let heard = ask(&drafting, &drafted(&request, &head)).await;
        assert_eq!(said(&heard), said(&expected), "{name}, {kind}");
        let unused = |notice: &&protocol::Notice| notice.code == NoticeCode::DraftModelUnused;
        assert_eq!(heard.notices.iter().find(unused), None, "{name}, {kind}");
        let usage = speculation(&heard);
        println!(
            "report: head: {name}: {kind}: {} of {} draft tokens accepted in {} steps, {} tokens",
            usage.accepted_draft_tokens,
            usage.draft_tokens,
            usage.decode_steps,
            heard.done().usage.unwrap().completion_tokens
        );
        assert!(usage.draft_tokens > 0, "{name}, {kind}: {usage:?}");
        drafted_tokens += usage.draft_tokens;
        accepted += usage.accepted_draft_tokens;
    }
    assert!(
        accepted > 30 && drafted_tokens > 3 * accepted / 2,
        "{name}: {accepted} of {drafted_tokens}"
    );
    drafting.unload_all().await.unwrap();
    assert_eq!(drafting.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn turns_and_continued_answers_go_on_from_what_the_head_has_read() {
    let Some(written) = Written::new() else { return };
    for name in GUESSED {
        goes_on(&written, name).await;
    }
}

async fn goes_on(written: &Written, name: &str) {
    let (model, head) = (written.path(name), written.path(&format!("{name}.guesses")));
    let (plain, drafting) = (engine(Drafting::Off), engine(Drafting::Always));
    let mut messages = Vec::new();
    for turn in 0..3 {
        messages.push(Message::text(Role::User, "Go on."));
        let request = Request {
            messages: messages.clone(),
            max_tokens: Some(50),
            ..question(&model, "")
        };
        let expected = ask(&plain, &request).await;
        let heard = ask(&drafting, &drafted(&request, &head)).await;
        assert_eq!(said(&heard), said(&expected), "{name}, turn {turn}");
        assert!(speculation(&heard).draft_tokens > 10, "{name}, turn {turn}");
        let begun = Request {
            answer_prefix: Some(AnswerPrefix::Tokens {
                tokens: heard.tokens[..20].to_vec(),
                model_revision: None,
                thinking_ended: false,
            }),
            ..request
        };
        let (expected, heard) = (ask(&plain, &begun).await, ask(&drafting, &drafted(&begun, &head)).await);
        assert_eq!(said(&heard), said(&expected), "{name}, turn {turn}, continued");
        messages.push(Message::text(Role::Assistant, heard.text));
    }
    // Answers side by side are drafted by none, and one goes on with drafts when the other has ended.
    let request = |seed: u64, most: u32| Request {
        priority: Priority::Api,
        max_tokens: Some(most),
        sampling: seeded(seed),
        ..question(&model, "Two at once.")
    };
    let alone = [ask(&plain, &request(1, 30)).await, ask(&plain, &request(2, 120)).await];
    let jobs = [request(1, 30), request(2, 120)].map(|request| drafting.generate(drafted(&request, &head)));
    for (job, alone) in jobs.into_iter().zip(alone) {
        assert_eq!(said(&hear(job).await), said(&alone), "{name}");
    }
}

#[tokio::test]
async fn a_head_of_another_model_is_told_and_the_answer_is_given() {
    let Some(written) = Written::new() else { return };
    let drafting = engine(Drafting::Always);
    let request = question(&written.path("qwen3.5"), "Hello.");
    let expected = ask(&drafting, &request).await;
    let other = ask(&drafting, &drafted(&request, &written.path("qwen3.5-two-4bit.head"))).await;
    assert_eq!(said(&other), said(&expected));
    let folder = tempfile::tempdir().unwrap();
    let head = written.path("qwen3.5.head");
    std::fs::copy(head.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let config = std::fs::read_to_string(head.join("config.json")).unwrap();
    let config = config.replace("\"hidden_size\": 64", "\"hidden_size\": 128");
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let wrong = ask(&drafting, &drafted(&request, folder.path())).await;
    assert_eq!(said(&wrong), said(&expected));
    let [notice] = &wrong.notices[..] else {
        panic!("{:?}", wrong.notices)
    };
    assert_eq!(notice.code, NoticeCode::DraftModelUnused);
    assert!(
        notice.message.contains("width 128") && notice.message.contains("width 64"),
        "{}",
        notice.message
    );
    let alone = Request::new(source(&head), request.messages.clone());
    let error = ask(&drafting, &alone).await;
    assert!(
        error.error().message.contains("drafts the responses of another model"),
        "{:?}",
        error.ends
    );
}
