//! `ponder bench --vision`: how long a question about a picture waits for its first token, how long the next question about it does, and
//! what memory that takes, beside mlx-vlm.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Context, Result};
use engine::MlxEngine;
use prompt::{ChatProcessor, RenderRequest};
use protocol::{
    Engine, EngineEvent, FolderSource, ImageBytes, ImageDetail, LocalEngine, Message, Request, Role, Sampling, Thinking,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::pictures::Pictures;
use crate::{output, peer};

/// Pictures of each round that are measured; one before them is not, because kernels are compiled and memory is claimed then.
const PICTURES: u64 = 3;

/// Tokens that end an answer are no answer.
const NEVER: [(u32, f32); 1] = [(1, -100.0)];

/// What is measured.
pub struct VisionRun<'a> {
    /// Width and height of the pictures.
    pub picture: (u32, u32),
    /// Words of a question.
    pub words: usize,
    /// How often everything is measured; medians are printed.
    pub repeat: usize,
    /// A script that measures mlx-vlm.
    pub peer: Option<&'a Path>,
    /// Whether JSON is printed.
    pub json: bool,
}

/// What one engine did.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Figures {
    /// From a picture's file to the first token of the answer to the first question about it, of each picture.
    first_token_ms: Vec<f64>,
    /// The same for the next question.
    second_question_ms: Vec<f64>,
    peak_bytes: f64,
    #[serde(default)]
    versions: String,
}

/// Two questions about a picture, and the tokens of both prompts.
#[derive(Serialize)]
struct Chat {
    picture: PathBuf,
    #[serde(skip)]
    bytes: ImageBytes,
    first: Vec<u32>,
    second: Vec<u32>,
}

/// Measures ours and the peer by turns, and prints both.
///
/// # Errors
/// When the model does not see or cannot be loaded, or the peer does not run.
pub async fn run(engine: &MlxEngine, model: &FolderSource, run: &VisionRun<'_>) -> Result<()> {
    let folder = Folder::new()?;
    let chats = (0..=PICTURES)
        .map(|number| chat(model, &folder.0, run, number))
        .collect::<Result<Vec<_>>>()?;
    let listed = folder.0.join("chats.json");
    std::fs::write(&listed, serde_json::to_vec(&chats)?).context("the prompts cannot be written for the peer")?;
    let versions = format!(
        "ponder {}, mlx {}, {}",
        env!("CARGO_PKG_VERSION"),
        engine.mlx_version()?,
        engine.blas()?
    );
    let preload = std::env::var_os("PONDER_ORACLE_PRELOAD");
    let (mut ours, mut peers) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..run.repeat {
        ours.push(measure(engine, model, run, &chats, &versions).await?);
        let Some(script) = run.peer else { continue };
        // The peer has the device for itself.
        engine.unload_all().await?;
        let arguments = ["--chats".to_owned(), listed.display().to_string()];
        peers[0].push(peer::measure(script, model, None, &arguments)?);
        if let Some(library) = &preload {
            peers[1].push(peer::measure(script, model, Some(library), &arguments)?);
        }
    }
    let ours = median(&ours).context("nothing was measured")?;
    let peers: Vec<Figures> = peers.iter().filter_map(|runs| median(runs)).collect();
    report(model, run, &chats[0], &ours, &peers)
}

/// A folder for the pictures, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("ponder-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).context("there is no place for the pictures")?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is removed with other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A picture that no other number gives, as a JPEG file: gradients and blocks, about as hard to pack as a photo.
fn picture((width, height): (u32, u32), number: u64) -> Result<ImageBytes> {
    let mut noise = 0x9e37_79b9_7f4a_7c15 ^ number;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for y in 0..height {
        for x in 0..width {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let grain = (noise >> 61) as u32;
            let block = ((x / 97 + y / 61) as u64 * (number + 3) % 5 * 40) as u32;
            rgb.extend(
                [
                    x * 160 / width + grain,
                    y * 160 / height + block / 2 + grain,
                    block + grain,
                ]
                .map(|value| value as u8),
            );
        }
    }
    let picture = media::Picture {
        width,
        height,
        rgb,
        original: (width, height),
        animated: false,
    };
    Ok(media::thumbnail(&picture, width.max(height))?.into())
}

/// So many words that the tokenizers of shapes know.
fn words(count: usize, from: usize) -> String {
    let words: Vec<String> = (from..from + count)
        .map(|word| format!("word{}", 20 + word % 1000))
        .collect();
    words.join(" ")
}

/// The conversation before the first or the second answer.
fn conversation(
    run: &VisionRun<'_>,
    pictures: &mut Pictures,
    bytes: &ImageBytes,
    second: bool,
) -> Result<Vec<Message>> {
    let mut question = Message::text(Role::User, words(run.words, 0));
    question.content.insert(0, pictures.add(bytes.clone(), "")?);
    let mut messages = vec![question];
    if second {
        messages.push(Message::text(Role::Assistant, format!(" {} ", words(8, 500))));
        messages.push(Message::text(Role::User, words(run.words, 300)));
    }
    Ok(messages)
}

fn chat(model: &FolderSource, folder: &Path, run: &VisionRun<'_>, number: u64) -> Result<Chat> {
    let bytes = picture(run.picture, number)?;
    let path = folder.join(format!("{number}.jpg"));
    std::fs::write(&path, &*bytes).context("a picture cannot be written")?;
    let processor = ChatProcessor::open(&model.path).map_err(protocol::Error::from)?;
    let tokens = |second: bool| -> Result<Vec<u32>> {
        let messages = conversation(run, &mut Pictures::default(), &bytes, second)?;
        let images = Pictures::plans(&messages, &model.path, ImageDetail::Normal)?;
        let request = RenderRequest {
            messages: &messages,
            tools: &[],
            thinking: Some(Thinking::Off),
            add_generation_prompt: true,
            images: &images,
        };
        Ok(processor.prompt(&request).map_err(protocol::Error::from)?.ids)
    };
    Ok(Chat {
        picture: path,
        first: tokens(false)?,
        second: tokens(true)?,
        bytes,
    })
}

/// Both questions about each picture.
async fn measure(
    engine: &MlxEngine,
    model: &FolderSource,
    run: &VisionRun<'_>,
    chats: &[Chat],
    versions: &str,
) -> Result<Figures> {
    let mut figures = Figures {
        first_token_ms: Vec::new(),
        second_question_ms: Vec::new(),
        peak_bytes: 0.0,
        versions: versions.to_owned(),
    };
    // Nothing of a round is known to the next.
    engine.unload_all().await?;
    for (number, chat) in chats.iter().enumerate() {
        let first = first_token(engine, model, run, chat, false).await?;
        let second = first_token(engine, model, run, chat, true).await?;
        if number == 0 {
            engine.take_peak()?;
        } else {
            figures.first_token_ms.push(first);
            figures.second_question_ms.push(second);
        }
    }
    figures.peak_bytes = engine.take_peak()? as f64;
    Ok(figures)
}

/// Milliseconds from a picture's file to the first token.
async fn first_token(
    engine: &MlxEngine,
    model: &FolderSource,
    run: &VisionRun<'_>,
    chat: &Chat,
    second: bool,
) -> Result<f64> {
    let start = Instant::now();
    let mut pictures = Pictures::default();
    let messages = conversation(run, &mut pictures, &chat.bytes, second)?;
    let mut job = engine.generate(Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling {
            logit_bias: NEVER.into(),
            ..Sampling::greedy()
        },
        // These come with every token, also with those that say nothing yet.
        top_logprobs: Some(0),
        max_tokens: Some(2),
        images: pictures.0,
        ..Request::new(model.clone(), messages)
    });
    let mut first = None;
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Logprobs(_) => first = first.or(Some(start.elapsed())),
            EngineEvent::Failed(error) => return Err(error.into()),
            EngineEvent::Done(done) => {
                let (told, known) = (
                    done.usage.map_or(0, |usage| usage.prompt_tokens as usize),
                    if second { &chat.second } else { &chat.first },
                );
                if told != known.len() {
                    bail!("a prompt of {told} tokens was expected to have {}", known.len());
                }
            }
            _ => {}
        }
    }
    Ok(first.context("the model answers nothing")?.as_secs_f64() * 1e3)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

fn median(runs: &[Figures]) -> Option<Figures> {
    let all = |of: fn(&Figures) -> &Vec<f64>| vec![middle(runs.iter().flat_map(of).copied().collect())];
    Some(Figures {
        first_token_ms: all(|run| &run.first_token_ms),
        second_question_ms: all(|run| &run.second_question_ms),
        peak_bytes: middle(runs.iter().map(|run| run.peak_bytes).collect()),
        versions: runs.first()?.versions.clone(),
    })
}

/// What the peer is called as it is installed, and with `PONDER_ORACLE_PRELOAD`.
const PEERS: [&str; 2] = ["mlx-vlm", "preloaded"];

fn report(model: &FolderSource, run: &VisionRun<'_>, chat: &Chat, ours: &Figures, peers: &[Figures]) -> Result<()> {
    type Figure = fn(&Figures) -> f64;
    let rows: [(&str, &str, Figure); 3] = [
        ("first_token_ms", "first token, ms", |run| run.first_token_ms[0]),
        ("second_question_ms", "second question, ms", |run| {
            run.second_question_ms[0]
        }),
        ("peak_megabytes", "peak memory, MB", |run| run.peak_bytes / 1e6),
    ];
    let (width, height) = run.picture;
    if run.json {
        let told = |figures: &Figures| -> Value {
            let mut told: serde_json::Map<String, Value> = rows
                .iter()
                .map(|(name, _, of)| ((*name).to_owned(), of(figures).into()))
                .collect();
            told.insert("versions".into(), figures.versions.clone().into());
            told.into()
        };
        let peers: serde_json::Map<String, Value> = PEERS
            .iter()
            .zip(peers)
            .map(|(name, peer)| ((*name).to_owned(), told(peer)))
            .collect();
        return Ok(output::line(&json!({
            "model": model.reference, "picture": [width, height], "repeat": run.repeat, "prompt_tokens": [chat.first.len(), chat.second.len()],
            "ours": told(ours), "peers": peers,
        }))?);
    }
    let mut table = format!(
        "{}: a picture of {width}×{height}, prompts of {} and {} tokens, median of {} × {PICTURES}\n  ponder    {}\n",
        model.reference,
        chat.first.len(),
        chat.second.len(),
        run.repeat,
        ours.versions
    );
    for (name, peer) in PEERS.iter().zip(peers) {
        table.push_str(&format!("  {name:<10}{}\n", peer.versions));
    }
    table.push_str(&format!("{:<22}{:>12}", "", "ponder"));
    for (name, _) in PEERS.iter().zip(peers) {
        table.push_str(&format!("  {name:>12}  {:>8}", "peer/our"));
    }
    table.push('\n');
    for (_, name, of) in rows {
        table.push_str(&format!("{name:<22}{:>12.1}", of(ours)));
        for peer in peers {
            table.push_str(&format!("  {:>12.1}  {:>8.2}", of(peer), of(peer) / of(ours)));
        }
        table.push('\n');
    }
    Ok(output::text(&table)?)
}
