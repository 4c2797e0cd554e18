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
    /// Chat template or tokenizer_config.json to use instead of a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    template: Option<PathBuf>,
    /// Template variables, as a JSON object
    #[arg(long, alias = "context", value_name = "FILE")]
    vars: Option<PathBuf>,
    /// Conversation, as a JSON list of OpenAI messages (default: one greeting)
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Tools, as a JSON list in OpenAI format
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Turn thinking on or off, or set its effort (default: the model decides)
    #[arg(long, value_name = "on|off|low|medium|high", hide_possible_values = true)]
    thinking: Option<ThinkingArg>,
    /// Leave out the start of the model's turn
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
    if args.template.is_none() && args.vars.is_none() && render_images(&args).await? {
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
    let vars = args.vars.as_deref();
    let vars: Option<Map<String, Value>> = vars
        .map(|path| read_json(path, "variables file", "a JSON object of variables"))
        .transpose()?;
    let messages = match (&args.messages, &vars) {
        (Some(path), _) => read_messages(path, None)?,
        (None, Some(vars)) if vars.contains_key("messages") => Vec::new(),
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
    for (name, value) in vars.unwrap_or_default() {
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
