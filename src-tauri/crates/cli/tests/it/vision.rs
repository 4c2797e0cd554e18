//! Every family that sees, on tiny random models: the command line, one request to the server and three at once give
//! the answer of the engine alone.

use std::path::{Path, PathBuf};
use std::thread;

use engine::MlxEngine;
use protocol::ImageBytes;
use serde_json::{json, Value};

use crate::support::serving::Serving;
use crate::support::{joined, last, run, run_json, text};
use crate::vision_models::{engine_alone, image, models, Answer, QUESTION, TOKENS};

/// The largest difference between two log probabilities of one token.
const ALIKE: f64 = 2e-3;

impl Answer {
    fn assert_alike(&self, other: &Self, what: &str) {
        assert_eq!(self.text, other.text, "{what}");
        assert_eq!(self.logprobs.len(), other.logprobs.len(), "{what}");
        assert!(self.apart(other) < ALIKE, "{what}: {self:?} {other:?}");
    }

    /// True if another image was seen: a log probability differs by more than rounding, or where a model is so sure that
    /// all are near 0, by a part of itself.
    fn differs(&self, other: &Self) -> bool {
        let mut pairs = self.logprobs.iter().zip(&other.logprobs);
        self.apart(other) > 1e-4 || pairs.any(|(one, other)| (one - other).abs() > 0.05 * one.abs())
    }

    /// The largest difference of log probabilities.
    fn apart(&self, other: &Self) -> f64 {
        let both = self.logprobs.iter().zip(&other.logprobs);
        both.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    }
}

/// The body of a question to the server.
fn body(model: &str, images: &[&ImageBytes]) -> Value {
    let shown = images
        .iter()
        .map(|bytes| json!({"type": "image_url", "image_url": {"url": bytes.to_data_url("image/jpeg")}}));
    let content: Vec<Value> = shown.chain([json!({"type": "text", "text": QUESTION})]).collect();
    json!({"model": model, "temperature": 0, "max_tokens": TOKENS, "logprobs": true, "top_logprobs": 1,
        "chat_template_kwargs": {"enable_thinking": false}, "messages": [{"role": "user", "content": content}]})
}

/// The answer of the server.
fn request(serving: &Serving, model: &str, images: &[&ImageBytes]) -> Answer {
    let (status, told) = serving.ask("/v1/chat/completions", &body(model, images));
    assert_eq!(status, 200, "{model}: {told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    let choice = &told["choices"][0];
    let logprobs = choice["logprobs"]["content"].as_array().unwrap();
    Answer {
        text: choice["message"]["content"].as_str().unwrap_or_default().to_owned(),
        tokens: Vec::new(),
        logprobs: logprobs
            .iter()
            .map(|token| token["logprob"].as_f64().unwrap())
            .collect(),
    }
}

/// The answer of the command line, with an engine of its own.
fn command_line(model: &Path, files: &[PathBuf]) -> Answer {
    let home = tempfile::tempdir().unwrap();
    let most = TOKENS.to_string();
    let mut args = vec![
        "ask",
        "--json",
        "--temperature",
        "0",
        "--thinking",
        "off",
        "--max-tokens",
        &most,
        "--model",
    ];
    args.push(model.to_str().unwrap());
    for file in files {
        args.extend(["--image", file.to_str().unwrap()]);
    }
    args.push(QUESTION);
    let events = run_json(home.path(), &args);
    let tokens = last(&events)["tokens"].as_array().unwrap();
    Answer {
        text: joined(&events, "text"),
        tokens: tokens.iter().map(|token| token.as_u64().unwrap()).collect(),
        logprobs: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_family_answers_by_every_way_what_the_engine_alone_answers() {
    let Some(models) = models() else { return };
    let images = [image(96, 96, 40), image(150, 60, 90), image(64, 128, 120)];
    // Of the same size, and so different that models that are sure of their tokens differ, too.
    let other = image(96, 96, 140);
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..images.len())
        .map(|index| folder.path().join(format!("{index}.jpg")))
        .collect();
    for (file, bytes) in files.iter().zip(&images) {
        std::fs::write(file, &**bytes).unwrap();
    }
    let home = tempfile::tempdir().unwrap();
    for (name, _) in &models.rows {
        text(&run(
            home.path(),
            &["import", models.folder.join(name).to_str().unwrap()],
        ));
    }
    let serving = Serving::at(home, &[]);
    for (name, most) in &models.rows {
        let model = models.folder.join(name);
        // Three requests with different numbers of images, as far as the family takes several.
        let shown: Vec<Vec<&ImageBytes>> = (1..=3)
            .map(|count| match *most {
                1 => vec![&images[count - 1]],
                most => images.iter().take(count.min(most)).collect(),
            })
            .collect();
        let engine = MlxEngine::start();
        let mut alone = Vec::new();
        for images in &shown {
            alone.push(engine_alone(&engine, &model, images).await);
        }
        let told = command_line(&model, &files[..shown[usize::from(*most > 1)].len()]);
        let expected = &alone[usize::from(*most > 1)];
        assert_eq!(
            (&told.text, &told.tokens),
            (&expected.text, &expected.tokens),
            "{name} on the command line"
        );

        let of_other = engine_alone(&engine, &model, &[&other]).await;
        assert!(of_other.differs(&alone[0]), "{name}: the image is not seen");
        request(&serving, name, &[&other]).assert_alike(&of_other, &format!("{name}, one request"));
        thread::scope(|scope| {
            let asked: Vec<_> = shown
                .iter()
                .map(|images| scope.spawn(|| request(&serving, name, images)))
                .collect();
            for (count, (asked, alone)) in asked.into_iter().zip(&alone).enumerate() {
                asked
                    .join()
                    .unwrap()
                    .assert_alike(alone, &format!("{name}, request {count} of three at once"));
            }
        });
        // By now the server knows the image.
        request(&serving, name, &shown[0]).assert_alike(&alone[0], &format!("{name}, one request about a known image"));
    }
    println!(
        "report: {} models answer on the command line, to one request and to three at once what the engine alone answers",
        models.rows.len()
    );
}
