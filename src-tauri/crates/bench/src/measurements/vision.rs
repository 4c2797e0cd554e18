use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::Args;
use cli::input::Images;
use cli::output;
use engine::MlxEngine;
use prompt::{ChatProcessor, RenderRequest};
use protocol::{
    Engine, EngineEvent, FolderSource, ImageBytes, ImageDetail, LocalEngine, Message, Request, Role, Sampling, Thinking,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use super::median::median;
use super::numbers::at_least_one;
use super::peer;
use crate::image_plans::image_plans;
use crate::subject::{versions, SubjectArgs};

/// Images that are measured in each round, after one that is not, since kernels are compiled and memory is claimed
/// then.
const IMAGES: u64 = 3;

/// A bias against the tokens that end an answer.
const NEVER: [(u32, f32); 1] = [(1, -100.0)];

/// `ponder-bench vision`.
#[derive(Args)]
pub struct VisionArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The size of the image
    #[arg(long, value_name = "WxH", default_value = "1920x1080", value_parser = size)]
    image: (u32, u32),
    /// Words of a question; one is a token or some
    #[arg(long, value_name = "N", default_value = "12", value_parser = at_least_one())]
    prompt_tokens: usize,
    /// Repetitions; medians are printed
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one())]
    repeat: usize,
    /// A script that measures mlx-vlm; run with the Python of PONDER_ORACLE_PYTHON
    #[arg(long, value_name = "SCRIPT")]
    peer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses a size such as 640x480.
fn size(text: &str) -> std::result::Result<(u32, u32), String> {
    let size = text
        .split_once(['x', '×'])
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let size = size.filter(|(width, height)| [width, height].iter().all(|side| (1..=8192).contains(*side)));
    size.ok_or_else(|| "it is a width and a height of at most 8192 pixels, such as 640x480".to_owned())
}

/// The figures of one engine.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Figures {
    /// From each image's file to the first token of the answer to the first question about it.
    first_token_ms: Vec<f64>,
    /// The same for the next question.
    second_question_ms: Vec<f64>,
    peak_bytes: f64,
    #[serde(default)]
    versions: String,
}

/// Two questions about an image, and the tokens of both prompts; the peer's script reads it.
#[derive(Serialize)]
struct Chat {
    image: PathBuf,
    #[serde(skip)]
    bytes: ImageBytes,
    first: Vec<u32>,
    second: Vec<u32>,
}

/// Measures ours and the peer by turns, and prints both.
///
/// # Errors
/// When the model has no vision or cannot be loaded, or the peer does not run.
pub async fn run(args: VisionArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    let folder = tempfile::tempdir().context("there is no place for the images")?;
    let chats = (0..=IMAGES)
        .map(|number| chat(&model, folder.path(), &args, number))
        .collect::<Result<Vec<_>>>()?;
    let listed = folder.path().join("chats.json");
    std::fs::write(&listed, serde_json::to_vec(&chats)?).context("the prompts cannot be written for the peer")?;
    let versions = versions(&engine)?;
    let preload = peer::preload();
    let (mut ours, mut peers) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..args.repeat {
        ours.push(measure(&engine, &model, &args, &chats, &versions).await?);
        let Some(script) = &args.peer else { continue };
        // The peer has the device for itself.
        engine.unload_all().await?;
        let arguments = ["--chats".to_owned(), listed.display().to_string()];
        peers[0].push(peer::measure(script, &model, None, &arguments)?);
        if let Some(library) = &preload {
            peers[1].push(peer::measure(script, &model, Some(library), &arguments)?);
        }
    }
    let ours = medians(&ours).context("nothing was measured")?;
    let peers: Vec<Figures> = peers.iter().filter_map(|runs| medians(runs)).collect();
    report(&model, &args, &chats[0], &ours, &peers)
}

/// An image that no other number gives, as a JPEG file: gradients and blocks, about as hard to pack as a photo.
fn image((width, height): (u32, u32), number: u64) -> Result<ImageBytes> {
    let mut noise = 0x9e37_79b9_7f4a_7c15 ^ number;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for y in 0..height {
        for x in 0..width {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005);
            noise = noise.wrapping_add(1_442_695_040_888_963_407);
            let grain = (noise >> 61) as u32;
            let block = ((x / 97 + y / 61) as u64 * (number + 3) % 5 * 40) as u32;
            let (red, green) = (x * 160 / width, y * 160 / height + block / 2);
            rgb.extend([red, green, block].map(|value| (value + grain) as u8));
        }
    }
    let image = media::DecodedImage {
        width,
        height,
        rgb,
        original: (width, height),
        animated: false,
    };
    Ok(media::thumbnail(&image, width.max(height))?.into())
}

/// Words that the tokenizers of shapes know.
fn words(count: usize, from: usize) -> String {
    let words: Vec<String> = (from..from + count)
        .map(|word| format!("word{}", 20 + word % 1000))
        .collect();
    words.join(" ")
}

/// The conversation before the first or the second answer.
fn conversation(args: &VisionArgs, images: &mut Images, bytes: &ImageBytes, second: bool) -> Result<Vec<Message>> {
    let mut question = Message::text(Role::User, words(args.prompt_tokens, 0));
    question.content.insert(0, images.add(bytes.clone(), "")?);
    let mut messages = vec![question];
    if second {
        messages.push(Message::text(Role::Assistant, format!(" {} ", words(8, 500))));
        messages.push(Message::text(Role::User, words(args.prompt_tokens, 300)));
    }
    Ok(messages)
}

fn chat(model: &FolderSource, folder: &Path, args: &VisionArgs, number: u64) -> Result<Chat> {
    let bytes = image(args.image, number)?;
    let path = folder.join(format!("{number}.jpg"));
    std::fs::write(&path, &*bytes).context("an image cannot be written")?;
    let processor = ChatProcessor::open(&model.path).map_err(protocol::Error::from)?;
    let tokens = |second: bool| -> Result<Vec<u32>> {
        let messages = conversation(args, &mut Images::default(), &bytes, second)?;
        let images = image_plans(&messages, &model.path, ImageDetail::Normal)?;
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
        image: path,
        first: tokens(false)?,
        second: tokens(true)?,
        bytes,
    })
}

/// Asks both questions about each image.
async fn measure(
    engine: &MlxEngine,
    model: &FolderSource,
    args: &VisionArgs,
    chats: &[Chat],
    versions: &str,
) -> Result<Figures> {
    let mut figures = Figures {
        first_token_ms: Vec::new(),
        second_question_ms: Vec::new(),
        peak_bytes: 0.0,
        versions: versions.to_owned(),
    };
    // Each round begins with empty caches.
    engine.unload_all().await?;
    for (number, chat) in chats.iter().enumerate() {
        let first = first_token(engine, model, args, chat, false).await?;
        let second = first_token(engine, model, args, chat, true).await?;
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

/// Milliseconds from an image's file to the first token.
async fn first_token(
    engine: &MlxEngine,
    model: &FolderSource,
    args: &VisionArgs,
    chat: &Chat,
    second: bool,
) -> Result<f64> {
    let start = Instant::now();
    let mut images = Images::default();
    let messages = conversation(args, &mut images, &chat.bytes, second)?;
    let mut job = engine.generate(Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling {
            logit_bias: NEVER.into(),
            ..Sampling::greedy()
        },
        // Log probabilities come with every token, even if its text is not complete.
        top_logprobs: Some(0),
        max_tokens: Some(2),
        images: images.0,
        ..Request::new(model.clone(), messages)
    });
    let mut first = None;
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Logprobs(_) => first = first.or(Some(start.elapsed())),
            EngineEvent::Failed(error) => return Err(error.into()),
            EngineEvent::Done(done) => {
                let told = done.usage.map_or(0, |usage| usage.prompt_tokens as usize);
                let known = if second { &chat.second } else { &chat.first };
                if told != known.len() {
                    bail!("a prompt of {told} tokens was expected to have {}", known.len());
                }
            }
            _ => {}
        }
    }
    Ok(first.context("the model answers nothing")?.as_secs_f64() * 1e3)
}

fn medians(runs: &[Figures]) -> Option<Figures> {
    let all =
        |of: fn(&Figures) -> &Vec<f64>| median(runs.iter().flat_map(of).copied().collect()).map(|middle| vec![middle]);
    Some(Figures {
        first_token_ms: all(|run| &run.first_token_ms)?,
        second_question_ms: all(|run| &run.second_question_ms)?,
        peak_bytes: median(runs.iter().map(|run| run.peak_bytes).collect())?,
        versions: runs.first()?.versions.clone(),
    })
}

/// The names of the peer as it is installed, and with `PONDER_ORACLE_PRELOAD`.
const PEERS: [&str; 2] = ["mlx-vlm", "preloaded"];

fn report(model: &FolderSource, args: &VisionArgs, chat: &Chat, ours: &Figures, peers: &[Figures]) -> Result<()> {
    type Figure = fn(&Figures) -> f64;
    let rows: [(&str, &str, Figure); 3] = [
        ("first_token_ms", "first token, ms", |run| run.first_token_ms[0]),
        ("second_question_ms", "second question, ms", |run| {
            run.second_question_ms[0]
        }),
        ("peak_megabytes", "peak memory, MB", |run| run.peak_bytes / 1e6),
    ];
    let (width, height) = args.image;
    if args.json {
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
            "model": model.reference, "image": [width, height], "repeat": args.repeat, "prompt_tokens": [chat.first.len(), chat.second.len()],
            "ours": told(ours), "peers": peers,
        }))?);
    }
    let mut table = format!(
        "{}: an image of {width}×{height}, prompts of {} and {} tokens, median of {} × {IMAGES}\n  ponder    {}\n",
        model.reference,
        chat.first.len(),
        chat.second.len(),
        args.repeat,
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
