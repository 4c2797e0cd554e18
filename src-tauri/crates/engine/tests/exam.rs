//! Pebble's exam: questions from the generator it learnt from, answered greedily through the whole engine. It only gets
//! them right when every part of the engine is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::MlxEngine;
use protocol::{Content, Engine, EngineEvent, FolderSource, Message, Request, Role, Sampling, Thinking, ToolCall};
use serde::Deserialize;
use serde_json::Value;

const PASS: f64 = 0.97;

#[derive(Deserialize)]
struct Question {
    skill: String,
    thinking: bool,
    messages: Vec<Turn>,
    tools: Vec<Value>,
    answer: Expected,
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
            Expected::Call { name, arguments } => calls.len() == 1 && calls[0].name == *name && calls[0].arguments == *arguments,
        }
    }
}

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble")
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
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
    };

    let mut skills: BTreeMap<(String, bool), (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    for question in &exam {
        let messages = question.messages.iter().map(|turn| Message::text(turn.role, turn.content.clone()));
        let mut request = Request::new(model.clone(), messages.collect());
        request.tools = question.tools.clone();
        request.thinking = Some(if question.thinking { Thinking::On } else { Thinking::Off });
        request.sampling = Sampling::greedy();
        request.max_tokens = Some(1200);

        let (mut text, mut calls) = (String::new(), Vec::new());
        let mut job = engine.generate(request);
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
                EngineEvent::Delta { .. }
                | EngineEvent::Progress { .. }
                | EngineEvent::Waiting { .. }
                | EngineEvent::Started { .. }
                | EngineEvent::Continued { .. }
                | EngineEvent::Logprobs(_)
                | EngineEvent::ThinkingEnded
                | EngineEvent::Notice(_)
                | EngineEvent::Done(_) => {}
            }
        }
        let right = question.answer.is_met_by(&text, &calls);
        let score = skills.entry((question.skill.clone(), question.thinking)).or_default();
        score.0 += u32::from(right);
        score.1 += 1;
        if !right {
            let asked = question.messages.last().map(|turn| turn.content.as_str()).unwrap_or_default();
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
