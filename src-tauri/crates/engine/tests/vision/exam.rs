//! Pebble's image exam: questions about images that are drawn on the spot, answered greedily through the whole
//! engine. It only gets them right when the tower, the processor and the placeholders are right.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;

use crate::common::oracle::{python, seed};
use crate::common::{hear, pebble, pebble_dir};
use engine::MlxEngine;
use protocol::{Content, Engine, ImageBytes, Message, Request, Role, Sampling, Thinking};
use serde::Deserialize;

const PASS: f64 = 0.95;
/// Questions that are asked at once.
const TOGETHER: usize = 4;

/// A row of what `pebble/training/pictures.py` writes.
#[derive(Deserialize)]
struct Question {
    skill: String,
    #[serde(rename = "pictures")]
    images: Vec<String>,
    question: String,
    answer: String,
}

/// Draws the images of `count` questions, all skills in turn.
fn exam(python: &Path, folder: &Path, seed: u64, count: usize) -> Vec<Question> {
    let script = pebble_dir().join("../training/pictures.py");
    let output = Command::new(python)
        .arg("-B")
        .arg(script)
        .arg(folder)
        .args([seed.to_string(), count.to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&std::fs::read_to_string(folder.join("exam.json")).unwrap()).unwrap()
}

fn request(folder: &Path, asked: &Question) -> Request {
    let mut message = Message::text(Role::User, &asked.question);
    let mut images = BTreeMap::new();
    for name in asked.images.iter().rev() {
        let bytes: ImageBytes = std::fs::read(folder.join(name)).unwrap().into();
        let image = Content::Image {
            attachment: bytes.id(),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
            alt: name.clone(),
        };
        message.content.insert(0, image);
        images.insert(bytes.id(), bytes);
    }
    Request {
        images,
        thinking: Some(Thinking::Off),
        sampling: Sampling::greedy(),
        max_tokens: Some(60),
        ..Request::new(pebble(), vec![message])
    }
}

#[tokio::test]
async fn pebble_passes_its_image_exam() {
    let Some(python) = python() else { return };
    let full = std::env::var_os("PONDER_FULL").is_some();
    let (folder, count) = (tempfile::tempdir().unwrap(), if full { 660 } else { 200 });
    // Without `--full` always the same questions.
    let seed = if full { seed() } else { 1 };
    let exam = exam(&python, folder.path(), seed, count);
    assert_eq!(exam.len(), count);

    let engine = MlxEngine::start();
    let (mut skills, mut failures) = (BTreeMap::<&str, (usize, usize)>::new(), Vec::new());
    let (mut running, mut left) = (VecDeque::new(), exam.iter());
    loop {
        while let Some(asked) = (running.len() < TOGETHER).then(|| left.next()).flatten() {
            running.push_back((asked, engine.generate(request(folder.path(), asked))));
        }
        let Some((asked, job)) = running.pop_front() else { break };
        let heard = hear(job).await;
        heard.done();
        let right = heard.text.trim() == asked.answer;
        let score = skills.entry(&asked.skill).or_default();
        score.0 += usize::from(right);
        score.1 += 1;
        if !right {
            failures.push(format!(
                "[{}] {}: wanted {:?}, got {:?}",
                asked.skill, asked.question, asked.answer, heard.text
            ));
        }
    }
    for (skill, (right, all)) in &skills {
        println!("{skill:8} {right}/{all}");
    }
    failures.iter().for_each(|failure| println!("{failure}"));
    let share = 1.0 - failures.len() as f64 / exam.len() as f64;
    println!(
        "report: image exam {} of {count} right ({:.1} %), seed {seed}",
        count - failures.len(),
        share * 100.0
    );
    assert!(share >= PASS, "{:.1} % is below {:.0} %", share * 100.0, PASS * 100.0);
    for (skill, (right, all)) in skills {
        assert!(right * 10 >= all * 9, "{skill}: {right} of {all}");
    }
}
