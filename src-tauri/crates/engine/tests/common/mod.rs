//! Shared parts of the engine's tests: Pebble, events in a list, and safetensors files without MLX.
#![allow(dead_code, clippy::unwrap_used)]

pub mod files;
pub mod measured;
pub mod oracle;
pub mod vision;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use engine::MlxEngine;
use protocol::{
    Content, Done, EngineEvent, FolderSource, JobHandle, LocalEngine, MemoryGuard, Message, Notice, Request, Role,
    Sampling, Thinking, TokenLogprobs, ToolCall,
};

/// The folder of the model that comes with the app.
pub fn pebble_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")
}

/// A model in a folder.
pub fn source(path: &Path) -> FolderSource {
    FolderSource {
        reference: path.display().to_string(),
        path: path.to_owned(),
        revision: None,
        adapter: None,
    }
}

pub fn pebble() -> FolderSource {
    FolderSource {
        reference: "pebble".into(),
        ..source(&pebble_dir())
    }
}

/// As much memory as anybody wants.
#[derive(Debug)]
pub struct Plenty;

impl MemoryGuard for Plenty {
    fn before_load(&self, _: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

/// A greedy question to Pebble.
pub fn question(text: &str, thinking: Thinking) -> Request {
    Request {
        thinking: Some(thinking),
        sampling: Sampling::greedy(),
        ..Request::new(pebble(), vec![Message::text(Role::User, text)])
    }
}

/// An engine that has loaded Pebble and keeps no prefixes.
pub async fn engine_without_prefixes() -> MlxEngine {
    let engine = MlxEngine::start();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    engine.set_prefix_cache_budget(0).unwrap();
    engine
}

/// A story of `tokens` tokens by Pebble.
pub fn story(tokens: u32) -> Request {
    Request {
        max_tokens: Some(tokens),
        ..question("Tell me a story.", Thinking::Off)
    }
}

/// Everything that a job said.
#[derive(Debug, Default)]
pub struct Heard {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<ToolCall>,
    pub notices: Vec<Notice>,
    pub tokens: Vec<u32>,
    pub logprobs: Vec<TokenLogprobs>,
    pub prefill: Vec<u64>,
    pub started: Option<u32>,
    pub ends: Vec<Result<Done, protocol::Error>>,
}

impl Heard {
    pub fn done(&self) -> &Done {
        match &self.ends[..] {
            [Ok(done)] => done,
            other => panic!("exactly one good end was expected: {other:?}"),
        }
    }

    fn hear(&mut self, content: Content) {
        match content {
            Content::Text { text } => self.text.push_str(&text),
            Content::Thinking { text } => self.thinking.push_str(&text),
            Content::ToolCall { call } => self.calls.push(call),
            other => panic!("a model does not write this: {other:?}"),
        }
    }

    pub fn error(&self) -> &protocol::Error {
        match &self.ends[..] {
            [Err(error)] => error,
            other => panic!("exactly one error was expected: {other:?}"),
        }
    }
}

/// Listens to the end.
pub async fn hear(mut job: JobHandle) -> Heard {
    let mut heard = Heard::default();
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Progress {
                stage: protocol::Stage::Prefill,
                done,
                ..
            } => heard.prefill.push(done),
            EngineEvent::Progress { .. } | EngineEvent::Waiting { .. } => {}
            EngineEvent::Started { prompt_tokens, .. } => heard.started = prompt_tokens,
            EngineEvent::Continued { parts, notices, tokens } => {
                parts.into_iter().for_each(|content| heard.hear(content));
                heard.notices.extend(notices);
                heard.tokens.extend(tokens);
            }
            EngineEvent::Delta { content, tokens, .. } => {
                heard.hear(content);
                heard.tokens.extend(tokens);
            }
            EngineEvent::Logprobs(logprobs) => heard.logprobs.extend(logprobs),
            EngineEvent::ThinkingEnded => {}
            EngineEvent::Notice(notice) => heard.notices.push(notice),
            EngineEvent::Done(done) => {
                heard.tokens.extend(&done.tokens);
                heard.ends.push(Ok(done));
            }
            EngineEvent::Failed(error) => heard.ends.push(Err(error)),
        }
    }
    heard
}

/// A tensor of a safetensors file: its shape and its four-byte elements.
pub struct RawTensor {
    pub shape: Vec<usize>,
    pub words: Vec<[u8; 4]>,
}

impl RawTensor {
    pub fn floats(&self) -> Vec<f32> {
        self.words.iter().map(|word| f32::from_le_bytes(*word)).collect()
    }

    pub fn ids(&self) -> Vec<u32> {
        self.words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

/// Reads a safetensors file whose tensors all have four-byte elements.
pub fn read_safetensors(path: &Path) -> HashMap<String, RawTensor> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<usize> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect()
    };
    let entries = header
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "__metadata__");
    entries
        .map(|(name, entry)| {
            let place = numbers(&entry["data_offsets"]);
            let data = &bytes[8 + length + place[0]..8 + length + place[1]];
            let words = data.chunks_exact(4).map(|word| word.try_into().unwrap()).collect();
            (
                name.clone(),
                RawTensor {
                    shape: numbers(&entry["shape"]),
                    words,
                },
            )
        })
        .collect()
}

/// The calls without their ids, which are random.
pub fn calls(heard: &Heard) -> Vec<(&str, &serde_json::Value)> {
    heard
        .calls
        .iter()
        .map(|call| (call.name.as_str(), &call.arguments))
        .collect()
}

/// Copies Pebble into a folder.
pub fn copy_pebble(folder: &Path) {
    files::copy_words(&pebble_dir(), folder);
    for name in ["model.safetensors", "model.safetensors.index.json"] {
        std::fs::copy(pebble_dir().join(name), folder.join(name)).unwrap();
    }
}
