//! Pebble's exam: questions from the generator it learnt from, answered greedily through the whole engine. It only gets
//! them right when every part of the engine is right.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::MlxEngine;
use protocol::{
    Content, Engine, EngineEvent, FolderSource, JobHandle, Message, Request, Role, Sampling, Thinking, ToolCall,
};
use serde::Deserialize;
use serde_json::Value;

const PASS: f64 = 0.97;
/// Questions that are asked at once.
const TOGETHER: usize = 4;

#[derive(Deserialize)]
struct Question {
    skill: String,
    thinking: bool,
    messages: Vec<Turn>,
    tools: Vec<Value>,
    answer: Expected,
}

impl Question {
    fn request(&self, model: FolderSource) -> Request {
        let messages = self
            .messages
            .iter()
            .map(|turn| Message::text(turn.role, turn.content.clone()));
        Request {
            tools: self.tools.clone(),
            thinking: Some(if self.thinking { Thinking::On } else { Thinking::Off }),
            sampling: Sampling::greedy(),
            max_tokens: Some(1200),
            ..Request::new(model, messages.collect())
        }
    }
}

/// The text of an answer, and what it calls.
async fn answer(mut job: JobHandle) -> (String, Vec<ToolCall>) {
    let (mut text, mut calls) = (String::new(), Vec::new());
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Delta {
                content: Content::Text { text: piece },
                ..
            } => text.push_str(&piece),
            EngineEvent::Delta {
                content: Content::ToolCall { call },
                ..
            } => calls.push(call),
            EngineEvent::Failed(error) => panic!("the engine failed: {error}"),
            _ => {}
        }
    }
    (text, calls)
}

#[derive(Deserialize)]
struct Turn {
    role: Role,
    content: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Text(String),
    OneOf(Vec<String>),
    Story(bool),
    Call { name: String, arguments: Value },
}

impl Expected {
    fn is_met_by(&self, text: &str, calls: &[ToolCall]) -> bool {
        match self {
            Expected::Text(wanted) => text.trim() == wanted,
            Expected::OneOf(wanted) => wanted.iter().any(|wanted| text.trim() == wanted),
            Expected::Story(wanted) => *wanted && text.trim().starts_with("Once upon") && text.trim().len() > 100,
            Expected::Call { name, arguments } => {
                calls.len() == 1 && calls[0].name == *name && calls[0].arguments == *arguments
            }
        }
    }
}

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble")
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

fn questions(count: u64, seed: u64) -> Vec<Question> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/exam/questions.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg("--training")
        .arg(pebble().join("training"))
        .args(["--count", &count.to_string(), "--seed", &seed.to_string()])
        .output()
        .expect("python3 writes the questions");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a list of questions")
}

#[tokio::test]
async fn pebble_passes_its_exam() {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let seed = number("PONDER_SEED", 20_261_121);
    let exam = questions(if full { 600 } else { 120 }, seed);
    let engine = MlxEngine::start();
    let model = FolderSource {
        reference: "pebble".into(),
        path: pebble().join("model"),
        revision: None,
        adapter: None,
    };

    let mut skills: BTreeMap<(String, bool), (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    let (mut running, mut left) = (VecDeque::new(), exam.iter());
    loop {
        while let Some(question) = (running.len() < TOGETHER).then(|| left.next()).flatten() {
            running.push_back((question, engine.generate(question.request(model.clone()))));
        }
        let Some((question, job)) = running.pop_front() else {
            break;
        };
        let (text, calls) = answer(job).await;
        let right = question.answer.is_met_by(&text, &calls);
        let score = skills.entry((question.skill.clone(), question.thinking)).or_default();
        score.0 += u32::from(right);
        score.1 += 1;
        if !right {
            let asked = question
                .messages
                .last()
                .map(|turn| turn.content.as_str())
                .unwrap_or_default();
            failures.push(format!(
                "[{} thinking={}] {asked:?}\n  wanted {:?}\n  got    {text:?} {calls:?}",
                question.skill, question.thinking, question.answer
            ));
        }
    }
    for ((skill, thinking), (right, all)) in &skills {
        println!("{skill:12} thinking={thinking:5} {right}/{all}");
    }
    let share = 1.0 - failures.len() as f64 / exam.len() as f64;
    println!(
        "report: exam {} of {} right ({:.1} %), seed {seed}",
        exam.len() - failures.len(),
        exam.len(),
        share * 100.0
    );
    for failure in &failures {
        println!("{failure}");
    }
    assert!(share >= PASS, "{:.1} % is below {:.0} %", share * 100.0, PASS * 100.0);
}
