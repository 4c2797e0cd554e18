//! `ponder render`, `stops`, `logits`: what a model is given and what it makes of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use prompt::{ChatProcessor, RenderRequest, Template};
use protocol::{KvBits, Message, Request, Role};
use serde_json::{json, Map, Value};

use crate::pictures::{check_sees, PictureArgs, Pictures};
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
    #[command(flatten)]
    pictures: PictureArgs,
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
    #[arg(long, value_delimiter = ',', required_unless_present_any = ["messages", "images"], conflicts_with_all = ["messages", "images"])]
    tokens: Vec<u32>,
    /// A conversation instead, as a JSON list in the OpenAI chat form, as the model would be given it
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureArgs,
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

/// Prints the rendered conversation. Each picture is shown as how many tokens it takes.
///
/// # Errors
/// When the template refuses it.
pub async fn render(args: RenderArgs) -> Result<()> {
    if args.template.is_none() && args.context.is_none() && render_pictures(&args).await? {
        return Ok(());
    }
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

/// Prints a conversation that holds pictures, from its ids; whether there are any.
async fn render_pictures(args: &RenderArgs) -> Result<bool> {
    let mut pictures = Pictures::default();
    let mut messages = match &args.messages {
        Some(path) => messages::read_with_pictures(path, &mut pictures)?,
        None if args.pictures.is_empty() => return Ok(false),
        None => Vec::new(),
    };
    args.pictures.put_into(&mut messages, &mut pictures)?;
    if pictures.0.is_empty() {
        return Ok(false);
    }
    let folder = folder(&args.model).await?;
    let processor = ChatProcessor::open(&folder).map_err(protocol::Error::from)?;
    let images = Pictures::plans(&messages, &folder, args.pictures.detail().await)?;
    let tools = args
        .tools
        .as_deref()
        .map(messages::read_tools)
        .transpose()?
        .unwrap_or_default();
    let prompt = processor.prompt(&RenderRequest {
        messages: &messages,
        tools: &tools,
        thinking: args.thinking.map(Into::into),
        add_generation_prompt: !args.no_generation_prompt,
        images: &images,
    });
    let prompt = prompt.map_err(protocol::Error::from)?;
    let decode = |ids: &[u32]| processor.decode(ids).map_err(protocol::Error::from);
    let (mut text, mut at) = (String::new(), 0);
    for span in &prompt.images {
        let features: usize = span.features.iter().map(std::iter::ExactSizeIterator::len).sum();
        text.push_str(&decode(&prompt.ids[at..span.range.start])?);
        text.push_str(&format!("⟨image {features}⟩"));
        at = span.range.end;
    }
    text.push_str(&decode(&prompt.ids[at..])?);
    output::text(&text)?;
    Ok(true)
}

/// The template's variables: those of the file, and over them what the options say.
fn variables(args: &RenderArgs, template: &Template) -> Result<Map<String, Value>> {
    let context = args.context.as_deref().map(messages::read_context).transpose()?;
    let messages = match (&args.messages, &context) {
        (Some(path), _) => messages::read(path)?,
        (None, Some(context)) if context.contains_key("messages") => Vec::new(),
        _ => vec![Message::text(Role::User, "Hello!")],
    };
    let tools = args
        .tools
        .as_deref()
        .map(messages::read_tools)
        .transpose()?
        .unwrap_or_default();
    let request = RenderRequest {
        messages: &messages,
        tools: &tools,
        thinking: args.thinking.map(Into::into),
        add_generation_prompt: !args.no_generation_prompt,
        images: &[],
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
    let mut pictures = Pictures::default();
    let conversation = match &args.messages {
        Some(path) => messages::read_with_pictures(path, &mut pictures)?,
        None => Vec::new(),
    };
    let (engine, model) = app::local_engine_and_model(args.model.model.as_deref()).await?;
    let mut rows = match args.tokens.is_empty() {
        false => engine.kv_logits(model, args.tokens, args.all, args.chunk, args.kv_bits)?,
        true => {
            let mut request = Request::new(model, conversation);
            args.pictures.put_into(&mut request.messages, &mut pictures)?;
            request.image_detail = args.pictures.detail().await;
            request.images = pictures.0;
            request.kv_bits = args.kv_bits;
            check_sees(&engine, &request).await?;
            engine.prompt_logits(request, args.all, args.chunk)?
        }
    };
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
    Ok(ChatProcessor::open(&folder(model).await?).map_err(protocol::Error::from)?)
}

/// The folder of a command's model. Weights are not needed in it.
async fn folder(model: &ModelArg) -> Result<PathBuf> {
    let source = match &model.model {
        Some(reference) => app::models()
            .await
            .find_words(reference)
            .map_err(protocol::Error::from)?,
        None => app::model(None).await?,
    };
    Ok(source.path)
}
