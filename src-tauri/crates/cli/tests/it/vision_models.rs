//! Tiny random models of every family that sees, and their answers.

use std::path::{Path, PathBuf};
use std::process::Command;

use engine::MlxEngine;
use protocol::{
    Content, Engine, EngineEvent, FolderSource, ImageBytes, Message, ModelSource, Request, Role, Sampling, Thinking,
    TokenLogprobs,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::serving::scripts;

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
pub const TOKENS: u32 = 8;

pub const QUESTION: &str = "what is there to be seen?";

/// Folders of models, and the number of images that each may be shown at once.
pub struct Models {
    pub folder: PathBuf,
    _own: Option<TempDir>,
    pub rows: Vec<(String, usize)>,
}

/// The models that `./dev test` had written, or else some written now; `None` without a Python to write them with.
pub fn models() -> Option<Models> {
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

/// An image of stripes as a JPEG file.
pub fn image(width: u32, height: u32, shade: u8) -> ImageBytes {
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let stripes = |(x, y): (u32, u32)| {
        [
            shade.wrapping_mul((1 + (x / 9) % 5 + (y / 7) % 3) as u8),
            shade,
            (x % 256) as u8,
        ]
    };
    let image = media::DecodedImage {
        width,
        height,
        rgb: pixels.flat_map(stripes).collect(),
        original: (width, height),
        animated: false,
    };
    media::thumbnail(&image, width.max(height)).unwrap().into()
}

/// The text of an answer, its tokens if they are known, and the log probability of each.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub text: String,
    pub tokens: Vec<u64>,
    pub logprobs: Vec<f64>,
}

/// The answer of the engine alone.
pub async fn engine_alone(engine: &MlxEngine, model: &Path, images: &[&ImageBytes]) -> Answer {
    let shown = images.iter().map(|bytes| Content::Image {
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
        adapter: None,
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
        images: images.iter().map(|bytes| (bytes.id(), (*bytes).clone())).collect(),
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
