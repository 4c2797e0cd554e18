//! Every family that sees, on tiny random models: the command line, one request to the server and three at once give what the engine alone
//! gives.
#![allow(clippy::unwrap_used)]

mod ponder;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use engine::MlxEngine;
use ponder::serving::{scripts, Serving};
use protocol::{
    Content, Engine, EngineEvent, FolderSource, ImageBytes, Message, ModelSource, Request, Role, Sampling, Thinking,
    TokenLogprobs,
};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Families that have to be among the models.
const FAMILIES: [&str; 12] = [
    "falcon_ocr",
    "gemma3n",
    "glm4v",
    "glm_ocr",
    "hunyuan_vl",
    "mllama",
    "paddleocr_vl",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_5",
    "qwen3_vl",
    "qwen3_vl_moe",
];

/// Tokens of each answer.
const TOKENS: u32 = 8;

/// How far apart two log probabilities of one token may be.
const ALIKE: f64 = 2e-3;

const QUESTION: &str = "what is there to be seen?";

/// Folders of models, and how many pictures each may be shown at once.
struct Models {
    folder: PathBuf,
    _own: Option<TempDir>,
    rows: Vec<(String, usize)>,
}

/// Those that `./dev test` had written, or else some written now; `None` if there is nothing to write them with.
fn models() -> Option<Models> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with MLX; `./dev test` provides one");
        return None;
    };
    let (folder, own) = match std::env::var_os("PONDER_ORACLE_FIGURES") {
        Some(folder) => (Path::new(&folder).join("vision"), None),
        None => {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = Command::new(python);
            writer
                .env_remove("LD_LIBRARY_PATH")
                .arg(scripts().join("../oracle/vision.py"));
            let written = writer
                .arg("--out")
                .arg(folder.path())
                .args(["--only", &FAMILIES.join(",")]);
            let written = written.output().unwrap();
            assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
            (folder.path().to_owned(), Some(folder))
        }
    };
    let table: Value = serde_json::from_slice(&std::fs::read(folder.join("table.json")).unwrap()).unwrap();
    let full = std::env::var_os("PONDER_FULL").is_some();
    let rows = table["rows"].as_array().unwrap().iter().filter_map(|row| {
        let (name, cases) = (row["name"].as_str().unwrap(), row["cases"].as_array().unwrap());
        let most = ["one", "two", "three"].into_iter();
        let most = most
            .filter(|case| cases.iter().any(|written| written["case"] == *case))
            .count();
        // Packed weights, other layouts and other sizes of a family have a mark in their names.
        let wanted = full || !name.contains('-');
        wanted.then(|| (name.to_owned(), most))
    });
    let rows: Vec<(String, usize)> = rows.collect();
    for family in FAMILIES {
        assert!(rows.iter().any(|(name, _)| name == family), "{family} is missing");
    }
    Some(Models {
        folder,
        _own: own,
        rows,
    })
}

/// A picture of stripes as a JPEG file.
fn picture(width: u32, height: u32, shade: u8) -> ImageBytes {
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let stripes = |(x, y): (u32, u32)| {
        [
            shade.wrapping_mul((1 + (x / 9) % 5 + (y / 7) % 3) as u8),
            shade,
            (x % 256) as u8,
        ]
    };
    let picture = media::Picture {
        width,
        height,
        rgb: pixels.flat_map(stripes).collect(),
        original: (width, height),
        animated: false,
    };
    media::thumbnail(&picture, width.max(height)).unwrap().into()
}

/// What an answer is made of: its text, its tokens if they are told, and the log probability of each.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    text: String,
    tokens: Vec<u64>,
    logprobs: Vec<f64>,
}

impl Answer {
    fn assert_alike(&self, other: &Self, what: &str) {
        assert_eq!(self.text, other.text, "{what}");
        assert_eq!(self.logprobs.len(), other.logprobs.len(), "{what}");
        assert!(self.apart(other) < ALIKE, "{what}: {self:?} {other:?}");
    }

    fn apart(&self, other: &Self) -> f64 {
        let both = self.logprobs.iter().zip(&other.logprobs);
        both.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    }
}

/// What the engine alone answers.
async fn engine_alone(engine: &MlxEngine, model: &Path, pictures: &[&ImageBytes]) -> Answer {
    let shown = pictures.iter().map(|bytes| Content::Image {
        attachment: bytes.id(),
        media_type: "image/jpeg".into(),
        width: 1,
        height: 1,
        alt: String::new(),
    });
    let mut message = Message::text(Role::User, QUESTION);
    message.content.splice(0..0, shown);
    let source = FolderSource {
        reference: model.display().to_string(),
        path: model.to_owned(),
        revision: None,
    };
    assert!(
        engine.capabilities(&ModelSource::Folder(source.clone())).images,
        "{model:?}"
    );
    let mut job = engine.generate(Request {
        sampling: Sampling::greedy(),
        thinking: Some(Thinking::Off),
        max_tokens: Some(TOKENS),
        top_logprobs: Some(1),
        images: pictures.iter().map(|bytes| (bytes.id(), (*bytes).clone())).collect(),
        ..Request::new(source, vec![message])
    });
    let mut answer = Answer::default();
    let mut take = |tokens: &[u32]| answer.tokens.extend(tokens.iter().copied().map(u64::from));
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Delta { content, tokens, .. } => {
                take(&tokens);
                if let Content::Text { text } = content {
                    answer.text.push_str(&text);
                }
            }
            EngineEvent::Logprobs(all) => answer
                .logprobs
                .extend(all.iter().map(|token: &TokenLogprobs| f64::from(token.logprob))),
            EngineEvent::Done(done) => take(&done.tokens),
            EngineEvent::Failed(error) => panic!("{model:?}: {error:?}"),
            _ => {}
        }
    }
    answer
}

/// The body of a question to the server.
fn body(model: &str, pictures: &[&ImageBytes]) -> Value {
    let shown = pictures
        .iter()
        .map(|bytes| json!({"type": "image_url", "image_url": {"url": bytes.to_data_url("image/jpeg")}}));
    let content: Vec<Value> = shown.chain([json!({"type": "text", "text": QUESTION})]).collect();
    json!({"model": model, "temperature": 0, "max_tokens": TOKENS, "logprobs": true, "top_logprobs": 1,
        "chat_template_kwargs": {"enable_thinking": false}, "messages": [{"role": "user", "content": content}]})
}

/// What the server answers.
fn request(serving: &Serving, model: &str, pictures: &[&ImageBytes]) -> Answer {
    let (status, told) = serving.ask("/v1/chat/completions", &body(model, pictures));
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

/// What the command line answers, with an engine of its own.
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
    let events = ponder::run_json(home.path(), &args);
    let tokens = ponder::last(&events)["tokens"].as_array().unwrap();
    Answer {
        text: ponder::joined(&events, "text"),
        tokens: tokens.iter().map(|token| token.as_u64().unwrap()).collect(),
        logprobs: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_family_answers_by_every_way_what_the_engine_alone_answers() {
    let Some(models) = models() else { return };
    let pictures = [picture(96, 96, 40), picture(150, 60, 90), picture(64, 128, 120)];
    let other = picture(96, 96, 41);
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..pictures.len())
        .map(|index| folder.path().join(format!("{index}.jpg")))
        .collect();
    for (file, bytes) in files.iter().zip(&pictures) {
        std::fs::write(file, &**bytes).unwrap();
    }
    let home = tempfile::tempdir().unwrap();
    for (name, _) in &models.rows {
        ponder::text(&ponder::run(
            home.path(),
            &["import", models.folder.join(name).to_str().unwrap()],
        ));
    }
    let serving = Serving::at(home, &[]);
    for (name, most) in &models.rows {
        let model = models.folder.join(name);
        // Three requests with different numbers of pictures, as far as the family takes several.
        let shown: Vec<Vec<&ImageBytes>> = (1..=3)
            .map(|count| match *most {
                1 => vec![&pictures[count - 1]],
                most => pictures.iter().take(count.min(most)).collect(),
            })
            .collect();
        let engine = MlxEngine::start();
        let mut alone = Vec::new();
        for pictures in &shown {
            alone.push(engine_alone(&engine, &model, pictures).await);
        }
        let told = command_line(&model, &files[..shown[usize::from(*most > 1)].len()]);
        let expected = &alone[usize::from(*most > 1)];
        assert_eq!(
            (&told.text, &told.tokens),
            (&expected.text, &expected.tokens),
            "{name} on the command line"
        );

        let question = folder.path().join("question.json");
        std::fs::write(&question, json!([{"role": "user", "content": QUESTION}]).to_string()).unwrap();
        let (path, file) = (model.to_str().unwrap(), files[0].to_str().unwrap());
        let asked = [
            "logits",
            "--model",
            path,
            "--messages",
            question.to_str().unwrap(),
            "--image",
            file,
        ];
        let logits = ponder::run_json(folder.path(), &asked);
        let logits: Vec<f64> = serde_json::from_value(logits[0]["logits"].clone()).unwrap();
        let likeliest = (0..logits.len()).max_by(|one, other| logits[*one].total_cmp(&logits[*other]));
        assert_eq!(
            likeliest.map(|token| token as u64),
            alone[0].tokens.first().copied(),
            "{name}: logits"
        );

        let of_other = engine_alone(&engine, &model, &[&other]).await;
        assert!(of_other.apart(&alone[0]) > 1e-4, "{name}: the picture is not seen");
        request(&serving, name, &[&other]).assert_alike(&of_other, &format!("{name}, one request"));
        thread::scope(|scope| {
            let asked: Vec<_> = shown
                .iter()
                .map(|pictures| scope.spawn(|| request(&serving, name, pictures)))
                .collect();
            for (count, (asked, alone)) in asked.into_iter().zip(&alone).enumerate() {
                asked
                    .join()
                    .unwrap()
                    .assert_alike(alone, &format!("{name}, request {count} of three at once"));
            }
        });
        // By now the server knows the picture.
        request(&serving, name, &shown[0])
            .assert_alike(&alone[0], &format!("{name}, one request about a known picture"));
    }
    println!(
        "report: {} models answer on the command line, to one request and to three at once what the engine alone answers",
        models.rows.len()
    );
}
