//! The memory of a model while it is loaded, while it answers, and after it is gone.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::files::{copy_words, write_entries, Entry};
use common::{hear, pebble_dir, source};
use engine::MlxEngine;
use protocol::{Engine, LoadEvent, LocalEngine, MemoryFigures, Message, ModelInfo, Request, Role, Sampling};
use serde_json::json;

const WIDTH: usize = 512;
const INNER: usize = 1536;
const HEADS: usize = 8;
const KEY_HEADS: usize = 4;
const HEAD: usize = 64;
const VOCABULARY: usize = 4096;
const GROUP: usize = 64;
const TURNS: usize = 50;
const MEBIBYTE: u64 = 1 << 20;

/// Random bits that are the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A matrix in 4 bits whose numbers spread as a trained one's do.
    fn packed(&mut self, path: &str, rows: usize, columns: usize) -> [Entry; 3] {
        let bytes = rows * columns / 2;
        let data = (0..bytes / 8).flat_map(|_| self.next().to_le_bytes()).collect();
        let scale = 0.2 / (columns as f32).sqrt();
        let groups = [rows, columns / GROUP];
        let of = |name: &str, number: f32| {
            Entry::bf16(
                format!("{path}.{name}"),
                &groups,
                std::iter::repeat_n(number, groups[0] * groups[1]),
            )
        };
        let weight = Entry {
            name: format!("{path}.weight"),
            dtype: "U32".into(),
            shape: vec![rows, columns / 8],
            data,
        };
        [weight, of("scales", scale), of("biases", -7.5 * scale)]
    }
}

/// Writes a Llama of random numbers in 4 bits that speaks Pebble's language; the result are its parameters.
fn write_model(folder: &Path, layers: usize) -> u64 {
    copy_words(&pebble_dir(), folder);
    let config = json!({
        "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": layers,
        "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "vocab_size": VOCABULARY, "max_position_embeddings": 16384, "tie_word_embeddings": true, "dtype": "bfloat16",
        "quantization": {"group_size": GROUP, "bits": 4, "mode": "affine"},
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let (mut noise, mut entries, mut parameters) = (Noise(20_261_121), Vec::new(), 0);
    let mut matrix = |entries: &mut Vec<Entry>, path: String, rows, columns| {
        parameters += (rows * columns) as u64;
        entries.extend(noise.packed(&path, rows, columns));
    };
    let norm = |path: String| Entry::bf16(path, &[WIDTH], std::iter::repeat_n(1.0, WIDTH));
    matrix(&mut entries, "model.embed_tokens".into(), VOCABULARY, WIDTH);
    entries.push(norm("model.norm.weight".into()));
    for layer in 0..layers {
        let path = format!("model.layers.{layer}");
        for (part, rows, columns) in [
            ("self_attn.q_proj", HEADS * HEAD, WIDTH),
            ("self_attn.k_proj", KEY_HEADS * HEAD, WIDTH),
            ("self_attn.v_proj", KEY_HEADS * HEAD, WIDTH),
            ("self_attn.o_proj", WIDTH, HEADS * HEAD),
            ("mlp.gate_proj", INNER, WIDTH),
            ("mlp.up_proj", INNER, WIDTH),
            ("mlp.down_proj", WIDTH, INNER),
        ] {
            matrix(&mut entries, format!("{path}.{part}"), rows, columns);
        }
        entries.push(norm(format!("{path}.input_layernorm.weight")));
        entries.push(norm(format!("{path}.post_attention_layernorm.weight")));
    }
    write_entries(&folder.join("model.safetensors"), &entries);
    parameters
}

/// The bytes of this process in memory, if the system tells.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

/// One line of the table.
fn report(form: &str, when: &str, memory: MemoryFigures) {
    let size = |bytes: u64| bytes as f64 / MEBIBYTE as f64;
    let process = resident().map_or("unknown".into(), |bytes| format!("{:.0}", size(bytes)));
    println!(
        "report: memory {form:8} {when:16} active {:6.1}  cached {:6.1}  peak {:6.1}  process {process:>5} MiB",
        size(memory.active),
        size(memory.cache),
        size(memory.peak)
    );
}

async fn load(engine: &MlxEngine, folder: &Path) -> ModelInfo {
    let mut events = engine.load(source(folder));
    let (mut last, mut info) = (0, None);
    while let Some(event) = events.recv().await {
        match event {
            LoadEvent::Progress { done, total } => {
                assert!(
                    last <= done && done <= total,
                    "progress goes on: {last}, {done} of {total}"
                );
                last = done;
            }
            LoadEvent::Ready(ready) => info = Some(*ready),
            LoadEvent::Failed(error) => panic!("{error}"),
        }
    }
    info.unwrap()
}

/// A chat of `turns` turns, whose answers are whatever they are; returns the tokens of all of it.
async fn talk(engine: &MlxEngine, folder: &Path, messages: &mut Vec<Message>, turns: usize, tokens: u32) -> u64 {
    let mut length = 0;
    for turn in 0..turns {
        messages.push(Message::text(Role::User, format!("And {turn}?")));
        let heard = hear(engine.generate(Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(tokens),
            ..Request::new(source(folder), messages.clone())
        }))
        .await;
        let usage = heard.done().usage.unwrap();
        length = u64::from(usage.prompt_tokens) + u64::from(usage.completion_tokens);
        messages.push(Message::text(Role::Assistant, heard.text));
    }
    length
}

#[tokio::test]
async fn memory_stays_near_the_model_and_comes_back() {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let folder = tempfile::tempdir().unwrap();
    let layers = if full { 40 } else { 10 };
    let parameters = write_model(folder.path(), layers);
    for form in ["widened", "packed"] {
        let engine = MlxEngine::start();
        if form == "packed" {
            engine.pretend_gpu().unwrap();
        }
        let before = engine.memory().await.unwrap();
        let info = load(&engine, folder.path()).await;
        assert_eq!(info.parameters / 1_000_000, parameters / 1_000_000);
        let loaded = engine.memory().await.unwrap();
        report(form, "loaded", loaded);
        let allowed = info.resident_bytes + info.resident_bytes / 10 + 16 * MEBIBYTE;
        assert!(
            loaded.peak - before.active <= allowed,
            "loading took {} for {}",
            loaded.peak,
            info.resident_bytes
        );

        let mut messages = Vec::new();
        talk(&engine, folder.path(), &mut messages, 1, 2).await;
        report(form, "after one turn", engine.memory().await.unwrap());
        // Packed weights are slow on a CPU, and a chat is the same with them.
        if form == "widened" {
            let length = talk(&engine, folder.path(), &mut messages, TURNS - 1, 2).await;
            let after = engine.memory().await.unwrap();
            report(form, &format!("after {TURNS} turns"), after);
            // The tokens that were read stay for the next turn, once; buffers grow in steps.
            let read = length * (layers * 2 * KEY_HEADS * HEAD * 4) as u64;
            let kept = after.active - loaded.active;
            assert!(
                kept <= 2 * read + 8 * MEBIBYTE,
                "{TURNS} turns keep {kept} bytes for {length} tokens of {read}"
            );
            engine.free_caches().await.unwrap();
            let freed = engine.memory().await.unwrap();
            report(form, "caches freed", freed);
            assert!(
                freed.cache < MEBIBYTE && freed.active <= loaded.active + MEBIBYTE,
                "{freed:?} is held by a model that took {loaded:?}"
            );
        }

        engine.unload_all().await.unwrap();
        let gone = engine.memory().await.unwrap();
        report(form, "unloaded", gone);
        assert!(
            gone.active + gone.cache <= before.active + before.cache + 10 * MEBIBYTE,
            "{gone:?} is left of {before:?}"
        );
    }
}
