use std::io::Read;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use clap::{Args, ValueEnum};
use cli::input::{read_tools, ModelArg};
use cli::output;
use prompt::{Event, Piece, Splitter};
use serde_json::{json, Value};

use super::processor::open_chat_processor;

/// `ponder-bench split`.
#[derive(Args)]
pub struct SplitArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Output format to use instead of a model
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    format: Option<String>,
    /// The prompt already opened thinking
    #[arg(long)]
    opened: bool,
    /// Keep thinking (on), or drop it with a notice (off)
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true)]
    thinking: Switch,
    /// Process the text in pieces of N characters, or N tokens
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Tools, as a JSON list in OpenAI format
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Reads standard input and prints its parts.
///
/// # Errors
/// When the format or the model is not known, or standard input is not text.
pub async fn run(args: SplitArgs) -> Result<()> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .context("standard input cannot be read")?;
    let text = String::from_utf8(bytes).context("standard input is not UTF-8 text")?;
    let tools = args.tools.as_deref().map(|path| read_tools(Some(path))).transpose()?;
    let (thinking_on, chunk) = (args.thinking == Switch::On, args.chunk.unwrap_or(usize::MAX));
    if chunk == 0 {
        bail!("--chunk is 1 or more");
    }
    let events = if let Some(name) = &args.format {
        let Some(mut splitter) = Splitter::named(name, args.opened, thinking_on) else {
            let names: Vec<&str> = Splitter::names().collect();
            bail!("there is no format {name}; there are {}", names.join(", "));
        };
        if let Some(tools) = &tools {
            splitter = splitter.with_tools(tools);
        }
        let mut events = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at);
            events.extend(splitter.push(&rest[..end]));
            rest = &rest[end..];
        }
        events.extend(splitter.finish());
        events
    } else {
        let processor = open_chat_processor(&args.model).await?;
        let reader = processor.reader(&text, args.opened, thinking_on);
        let (mut parser, ids) = reader.map_err(protocol::Error::from)?;
        if let Some(tools) = &tools {
            parser = parser.with_tools(tools);
        }
        let mut events: Vec<Event> = Vec::new();
        for ids in ids.chunks(chunk.min(ids.len().max(1))) {
            ids.iter().for_each(|id| events.extend(parser.push_event(*id)));
        }
        events.extend(parser.finish_events());
        events
    };
    output::line(&summary(events))?;
    Ok(())
}

/// All of the reasoning, all of the answer, the calls and the notices.
fn summary(events: Vec<Event>) -> Value {
    let (mut thinking, mut text) = (String::new(), String::new());
    let (mut calls, mut notices) = (Vec::new(), Vec::new());
    for event in events {
        match event.piece {
            Piece::Thinking(more) => thinking.push_str(&more),
            Piece::Text(more) => text.push_str(&more),
            Piece::ToolCall { name, arguments } => calls.push(json!({"name": name, "arguments": arguments})),
            Piece::Notice(notice) => notices.push(json!(notice)),
        }
    }
    json!({"thinking": thinking, "text": text, "tool_calls": calls, "notices": notices})
}
