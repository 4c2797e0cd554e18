//! `ponder render`, `stops`, `logits`: what a model is given and what it makes of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use prompt::{ChatProcessor, RenderRequest, Template};
use protocol::{KvBits, Message, Role};
use serde_json::{json, Map, Value};

use crate::{app, messages, output, ModelArg, ThinkingArg};

#[derive(Args)]
pub struct RenderArgs {
    #[command(flatten)]
    model: ModelArg,
    /// A chat template by itself, or a tokenizer_config.json with one, instead of a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    template: Option<PathBuf>,
    /// The template's variables, as a JSON object; `messages` and `tools` in it may be given by the options instead
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// The conversation, as a JSON list in the OpenAI chat form; without one a single greeting
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Tools, as a JSON list in the OpenAI form
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// The Thinking switch; without it the model's own default
    #[arg(long, value_name = "on|off|low|medium|high", hide_possible_values = true)]
    thinking: Option<ThinkingArg>,
    /// Leave out what opens the model's turn
    #[arg(long)]
    no_generation_prompt: bool,
}

#[derive(Args)]
pub struct StopsArgs {
    #[command(flatten)]
    model: ModelArg,
}

#[derive(Args)]
pub struct LogitsArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Token ids, separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    tokens: Vec<u32>,
    /// One list per position instead of the last alone
    #[arg(long)]
    all: bool,
    /// Read the tokens in chunks of this many
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Keep keys and values of full attention in 4 or 8 bits
    #[arg(long, value_name = "4|8", value_parser = crate::kv_bits)]
    kv_bits: Option<KvBits>,
}

/// Prints the rendered conversation.
///
/// # Errors
/// When the template refuses it.
pub async fn render(args: RenderArgs) -> Result<()> {
    let opened;
    let read;
    let template = match &args.template {
        Some(path) => {
            read = Template::open_file(path).map_err(protocol::Error::from)?;
            &read
        }
        None => {
            opened = open_chat_processor(&args.model).await?;
            opened.template()
        }
    };
    let rendered = template.render(variables(&args, template)?);
    output::text(&rendered.map_err(protocol::Error::from)?)?;
    Ok(())
}

/// The template's variables: those of the file, and over them what the options say.
fn variables(args: &RenderArgs, template: &Template) -> Result<Map<String, Value>> {
    let context = args.context.as_deref().map(messages::read_context).transpose()?;
    let messages = match (&args.messages, &context) {
        (Some(path), _) => messages::read(path)?,
        (None, Some(context)) if context.contains_key("messages") => Vec::new(),
        _ => vec![Message::text(Role::User, "Hello!")],
    };
    let tools = args.tools.as_deref().map(messages::read_tools).transpose()?.unwrap_or_default();
    let request = RenderRequest {
        messages: &messages,
        tools: &tools,
        thinking: args.thinking.map(Into::into),
        add_generation_prompt: !args.no_generation_prompt,
    };
    let mut variables = template.variables(&request);
    for (name, value) in context.unwrap_or_default() {
        let said = match name.as_str() {
            "messages" => args.messages.is_some(),
            "tools" => args.tools.is_some(),
            "add_generation_prompt" => args.no_generation_prompt,
            "documents" => false,
            other => variables.contains_key(other),
        };
        if !said {
            variables.insert(name, value);
        }
    }
    Ok(variables)
}

/// Prints the stop set.
///
/// # Errors
/// When the model's files cannot be read.
pub async fn stops(args: StopsArgs) -> Result<()> {
    let processor = open_chat_processor(&args.model).await?;
    output::line(&serde_json::to_value(processor.stops())?)?;
    Ok(())
}

/// Prints logits.
///
/// # Errors
/// When a token id is outside the vocabulary, or the model cannot be loaded.
pub async fn logits(args: LogitsArgs) -> Result<()> {
    let (engine, model) = app::local_engine_and_model(args.model.model.as_deref()).await?;
    let mut rows = engine.kv_logits(model, args.tokens, args.all, args.chunk, args.kv_bits)?;
    let value = if args.all {
        json!({"logits": rows})
    } else {
        json!({"logits": rows.pop().unwrap_or_default()})
    };
    output::line(&value)?;
    Ok(())
}

/// The way of speaking of a command's model.
///
/// # Errors
/// When the model is not there or its files cannot be read.
pub async fn open_chat_processor(model: &ModelArg) -> Result<ChatProcessor> {
    let source = match &model.model {
        // Weights are not needed for it.
        Some(reference) => app::models().await.find_words(reference).map_err(protocol::Error::from)?,
        None => app::model(None).await?,
    };
    Ok(ChatProcessor::open(&source.path).map_err(protocol::Error::from)?)
}
