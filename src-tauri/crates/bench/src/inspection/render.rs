use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use cli::input::{read_json, read_messages, read_tools, ImageArgs, Images, ModelArg, ThinkingArg};
use cli::output;
use prompt::{ChatProcessor, RenderRequest, Template};
use protocol::{Message, Role};
use serde_json::{Map, Value};

use super::processor::{folder, open_chat_processor};
use crate::image_plans::image_plans;

/// `ponder-bench render`.
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
    images: ImageArgs,
}

/// Prints the rendered conversation. In place of an image stands the number of its tokens.
///
/// # Errors
/// When the template refuses it.
pub async fn run(args: RenderArgs) -> Result<()> {
    if args.template.is_none() && args.context.is_none() && render_images(&args).await? {
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

/// Prints a conversation with images, from its ids; false without images.
async fn render_images(args: &RenderArgs) -> Result<bool> {
    let mut images = Images::default();
    let mut messages = match &args.messages {
        Some(path) => read_messages(path, Some(&mut images))?,
        None if args.images.is_empty() => return Ok(false),
        None => Vec::new(),
    };
    args.images.put_into(&mut messages, &mut images)?;
    if images.0.is_empty() {
        return Ok(false);
    }
    let folder = folder(&args.model).await?;
    let processor = ChatProcessor::open(&folder).map_err(protocol::Error::from)?;
    let plans = image_plans(&messages, &folder, args.images.detail().await)?;
    let tools = read_tools(args.tools.as_deref())?;
    let prompt = processor.prompt(&RenderRequest {
        messages: &messages,
        tools: &tools,
        thinking: args.thinking.map(Into::into),
        add_generation_prompt: !args.no_generation_prompt,
        images: &plans,
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

/// The template's variables: those of the file, and the options over them.
fn variables(args: &RenderArgs, template: &Template) -> Result<Map<String, Value>> {
    let context = args.context.as_deref();
    let context: Option<Map<String, Value>> = context
        .map(|path| read_json(path, "context file", "a JSON object of variables"))
        .transpose()?;
    let messages = match (&args.messages, &context) {
        (Some(path), _) => read_messages(path, None)?,
        (None, Some(context)) if context.contains_key("messages") => Vec::new(),
        _ => vec![Message::text(Role::User, "Hello!")],
    };
    let tools = read_tools(args.tools.as_deref())?;
    let request = RenderRequest {
        messages: &messages,
        tools: &tools,
        thinking: args.thinking.map(Into::into),
        add_generation_prompt: !args.no_generation_prompt,
        images: &[],
    };
    let mut variables = template.variables(&request);
    for (name, value) in context.unwrap_or_default() {
        let given = match name.as_str() {
            "messages" => args.messages.is_some(),
            "tools" => args.tools.is_some(),
            "add_generation_prompt" => args.no_generation_prompt,
            "documents" => false,
            other => variables.contains_key(other),
        };
        if !given {
            variables.insert(name, value);
        }
    }
    Ok(variables)
}
