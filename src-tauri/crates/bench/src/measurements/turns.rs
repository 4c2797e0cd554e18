use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use cli::input::ModelArg;
use cli::output;
use engine::MlxEngine;
use protocol::{
    Content, Done, Engine, EngineEvent, FolderSource, LocalEngine, Message, Request, Role, Sampling, Stage, Thinking,
};
use serde::Deserialize;
use serde_json::{json, Value};

use super::peer;
use crate::subject::{self, load};

/// The questions, one turn after another.
const QUESTIONS: [&str; 12] = [
    "My name is Yara.",
    "What is 347 + 589?",
    "What is the capital of France?",
    "Sort these words: pear, apple, fig.",
    "What is 12 * 11?",
    "How many letters r are in strawberry?",
    "Spell the word river.",
    "What is 81 + 19?",
    "Tell me a story.",
    "What is 5 + 7?",
    "What is the capital of Japan?",
    "What is my name?",
];

/// The longest time in which a person reads an answer.
const READING: Duration = Duration::from_secs(60);

/// `ponder-bench turns`.
#[derive(Args)]
pub struct TurnsArgs {
    #[command(flatten)]
    model: ModelArg,
    /// A script that has the same chat with mlx-lm's server; run with the Python of PONDER_ORACLE_PYTHON
    #[arg(long, value_name = "SCRIPT")]
    peer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// One turn of one engine.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
struct Turn {
    prompt_tokens: u32,
    prefilled_tokens: u32,
    first_token_ms: f64,
    text: String,
}

/// The output of the peer's script.
#[derive(Debug, Deserialize, serde::Serialize)]
struct Peer {
    versions: String,
    turns: Vec<Turn>,
}

/// Talks twice, with prefetching between the turns and without, then lets the peer have the same chat.
///
/// # Errors
/// When the model cannot be loaded, an answer fails or the peer does not run.
pub async fn run(args: TurnsArgs) -> Result<()> {
    let (engine, model) = subject::open(&args.model).await?;
    let (chat, ahead) = talk(&engine, &model, true).await?;
    engine.unload_all().await?;
    let (_, alone) = talk(&engine, &model, false).await?;
    engine.unload_all().await?;
    let peer = args.peer.as_deref();
    let peer = peer.map(|script| ask_peer(script, &model, &chat)).transpose()?;
    if args.json {
        return Ok(output::line(
            &json!({"model": model.reference, "ours": ahead, "ours_without_reading_ahead": alone, "peer": peer}),
        )?);
    }
    print(&model, &ahead, &alone, peer.as_ref())
}

async fn talk(engine: &MlxEngine, model: &FolderSource, ahead: bool) -> Result<(Vec<Message>, Vec<Turn>)> {
    load(engine, model).await?;
    let request = |messages: &[Message]| Request {
        thinking: Some(Thinking::On),
        sampling: Sampling::greedy(),
        max_tokens: Some(1200),
        ..Request::new(model.clone(), messages.to_vec())
    };
    let (mut messages, mut turns) = (Vec::new(), Vec::new());
    for question in QUESTIONS {
        messages.push(Message::text(Role::User, question));
        let (turn, answer) = ask(engine, request(&messages)).await?;
        messages.push(answer);
        turns.push(turn);
        if ahead {
            engine.prefetch(request(&messages));
            // The next question gives up the rest.
            let _ = tokio::time::timeout(READING, engine.prefetched()).await;
        }
    }
    Ok((messages, turns))
}

async fn ask(engine: &MlxEngine, request: Request) -> Result<(Turn, Message)> {
    let (start, mut first) = (Instant::now(), None);
    let (mut text, mut thought) = (String::new(), String::new());
    let mut job = engine.generate(request);
    let mut ended: Option<Done> = None;
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Progress {
                stage: Stage::Prefill,
                done,
                total,
            } if done == total => first = Some(start.elapsed()),
            EngineEvent::Delta { content, .. } => match content {
                Content::Text { text: piece } => text.push_str(&piece),
                Content::Thinking { text: piece } => thought.push_str(&piece),
                Content::ToolCall { .. }
                | Content::Data { .. }
                | Content::Image { .. }
                | Content::File { .. }
                | Content::Passages { .. } => {}
            },
            EngineEvent::Failed(error) => return Err(error.into()),
            EngineEvent::Done(done) => ended = Some(done),
            _ => {}
        }
    }
    let (Some(usage), Some(first)) = (ended.and_then(|done| done.usage), first) else {
        bail!("an answer ended before its first token");
    };
    let turn = Turn {
        prompt_tokens: usage.prompt_tokens,
        prefilled_tokens: usage.prefilled_tokens,
        first_token_ms: first.as_secs_f64() * 1000.0,
        text: text.clone(),
    };
    let answer = Message {
        reasoning: (!thought.is_empty()).then_some(thought),
        ..Message::text(Role::Assistant, text)
    };
    Ok((turn, answer))
}

fn ask_peer(script: &Path, model: &FolderSource, chat: &[Message]) -> Result<Peer> {
    let messages: Vec<Value> = chat
        .iter()
        .map(|message| match message.role {
            Role::User => json!({"role": "user", "content": message.text_with_placeholders()}),
            _ => json!({"role": "assistant", "content": message.text_with_placeholders(), "reasoning_content": message.reasoning}),
        })
        .collect();
    let folder = tempfile::tempdir().context("there is no place for the chat")?;
    let path = folder.path().join("chat.json");
    std::fs::write(&path, Value::from(messages).to_string()).context("the chat cannot be written for the peer")?;
    peer::measure(script, model, None, &["--chat".into(), path.display().to_string()])
}

fn print(model: &FolderSource, ahead: &[Turn], alone: &[Turn], peer: Option<&Peer>) -> Result<()> {
    let name = peer.map_or("", |peer| peer.versions.as_str());
    let mut table = format!(
        "{}: {} turns with thinking; ahead: the next prompt's beginning is read while the answer is read   {name}\n\
         {:<6}{:>7}   {:<28}{:<38}{:>6}\n\
         {:<6}{:>7}   {:>8}{:>9}{:>8}   {:>9}{:>10}{:>10}{:>12}\n",
        model.reference,
        ahead.len(),
        "",
        "",
        "tokens prefilled",
        "first token, ms",
        "",
        "turn",
        "prompt",
        "ahead",
        "without",
        "mlx-lm",
        "ahead",
        "without",
        "mlx-lm",
        "ratio"
    );
    let theirs = |index: usize| peer.and_then(|peer| peer.turns.get(index));
    let mut sums = [0.0; 7];
    for (index, (ours, plain)) in ahead.iter().zip(alone).enumerate() {
        let figures = [
            f64::from(ours.prompt_tokens),
            f64::from(ours.prefilled_tokens),
            f64::from(plain.prefilled_tokens),
            theirs(index).map_or(f64::NAN, |turn| f64::from(turn.prefilled_tokens)),
            ours.first_token_ms,
            plain.first_token_ms,
            theirs(index).map_or(f64::NAN, |turn| turn.first_token_ms),
        ];
        table.push_str(&row(&(index + 1).to_string(), &figures));
        sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    table.push_str(&row("all", &sums));
    let turns = ahead.len();
    if let Some(peer) = peer {
        let same = peer.turns.iter().zip(ahead);
        let same = same
            .filter(|(theirs, ours)| theirs.text.trim() == ours.text.trim())
            .count();
        table.push_str(&format!("answers that are the same as mlx-lm's: {same} of {turns}\n"));
    }
    let alike = ahead.iter().zip(alone).filter(|(a, b)| a.text == b.text).count();
    table.push_str(&format!(
        "answers that are the same without reading ahead: {alike} of {turns}\n"
    ));
    output::text(&table)?;
    Ok(())
}

/// A line of the table; an unknown figure is left blank.
fn row(name: &str, figures: &[f64; 7]) -> String {
    let [prompt, ahead, without, theirs, ahead_ms, without_ms, theirs_ms] = figures;
    let shown = |value: f64, digits: usize| {
        if value.is_nan() {
            String::new()
        } else {
            format!("{value:.digits$}")
        }
    };
    format!(
        "{name:<6}{prompt:>7.0}   {ahead:>8.0}{without:>9.0}{:>8}   {ahead_ms:>9.1}{without_ms:>10.1}{:>10}{:>12}\n",
        shown(*theirs, 0),
        shown(*theirs_ms, 1),
        shown(theirs_ms / ahead_ms, 2)
    )
}
