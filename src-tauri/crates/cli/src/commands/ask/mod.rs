mod documents;
mod run_tools;
mod writer;

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Parser};
use protocol::{EndedBy, Engine, Error, ErrorCode, FinishReason, Message, ModelSource, Request, Role};
use tokio::sync::watch;

use self::documents::footer;
use self::run_tools::{Called, RunTools};
use self::writer::{Writer, Written};
use crate::app::{engine_and_model, models};
use crate::input::{
    check_vision, piped_text, read_answer_prefix, read_json, read_messages, read_tools, ConversationArgs, DocumentArgs,
    ImageArgs, Images, LimitArgs, ModelArg, SamplingArgs,
};
use crate::output::{exit_code, Stream};

pub(super) use self::documents::DocumentSearch;

/// Examples below the help of `ponder ask`.
pub const EXAMPLES: &str = r#"Examples:
  git diff | ponder ask "Write a commit message"
  ponder ask --image receipt.jpg --schema receipt.json "Extract the items"
  ponder ask --use-tools ponder --allow ponder/calculate "What is 17% of 2340?""#;

/// Responses of one run at most. A model that calls tools that are not there would go on for ever.
const MOST_RESPONSES: usize = 32;

/// `ponder ask`.
#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Continue a conversation from a JSON list of OpenAI messages
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Continue a response from a file, for example the output of --json
    #[arg(long = "continue", value_name = "FILE")]
    answer_prefix: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Give the model passages of a folder or file (repeatable)
    #[arg(long, value_name = "DIR")]
    docs: Vec<PathBuf>,
    /// Tools the model can call, as a JSON list in OpenAI format
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Let the model call tools of this server, or one SERVER/TOOL (repeatable)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tools", "answer_prefix"])]
    use_tools: Vec<String>,
    /// Run all calls of this tool without asking (repeatable)
    #[arg(long, value_name = "SERVER/TOOL", requires = "use_tools")]
    allow: Vec<String>,
    /// Make the response JSON that follows this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Let a smaller model with the same vocabulary draft the response
    #[arg(long, value_name = "MODEL")]
    draft_model: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Print thinking to standard output instead of standard error
    #[arg(long, conflicts_with = "json")]
    show_thinking: bool,
    /// Write the response to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Message to send, after the text on standard input
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
}

/// The arguments by themselves, for their defaults.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Alone {
    #[command(flatten)]
    args: AskArgs,
}

impl AskArgs {
    /// The arguments of a message without anything else.
    pub(super) fn plain(model: ModelArg, message: String, json: bool) -> Self {
        let alone = Alone::parse_from(std::iter::empty::<&str>());
        Self {
            model,
            message: Some(message),
            json,
            ..alone.args
        }
    }
}

/// Sends a message and prints the response, which the history does not keep.
///
/// # Errors
/// When the model cannot respond, a file cannot be read, or a tool is not there.
pub async fn run(args: AskArgs) -> Result<ExitCode> {
    args.model.device.apply();
    let search = match args.docs.is_empty() {
        true => None,
        false => Some(DocumentSearch::of_paths(&args.docs).await?),
    };
    run_with(args, search).await
}

/// As [`run`], with passages of these documents before the message.
///
/// # Errors
/// As [`run`], and when the documents cannot be searched.
pub(super) async fn run_with(args: AskArgs, search: Option<DocumentSearch>) -> Result<ExitCode> {
    let out = match &args.output {
        Some(path) => {
            // It may be read before, and stays as it is if there is no response.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
            Stream::File(Arc::new(file))
        }
        None => Stream::Out,
    };
    // A file that is no response is reported before a message that is missing: with one, it would still be of no use.
    let answer_prefix = args.answer_prefix.as_deref().map(read_answer_prefix).transpose()?;
    let mut images = Images::default();
    let mut messages = conversation(&args, &mut images)?;
    let declared = read_tools(args.tools.as_deref())?;
    let schema = args
        .schema
        .as_deref()
        .map(|path| read_json(path, "schema file", "a JSON Schema"));
    let schema = schema.transpose()?;
    let (engine, model) = engine_and_model(args.model.model.as_deref()).await?;
    let tools = match args.use_tools.is_empty() {
        true => None,
        false => Some(RunTools::start(&args.use_tools, &args.allow).await?),
    };
    let given = match search {
        Some(search) => search.put_into(&mut messages, context_of_model(&model).await).await?,
        None => None,
    };
    if let Some(folder) = model.folder() {
        hub::ModelFolder::open().used(&folder.reference);
    }
    let mut request = Request::new(model, messages);
    request.tools = tools.as_ref().map_or(declared, RunTools::declarations);
    request.schema = schema;
    request.thinking = args.conversation.thinking.map(Into::into);
    request.sampling = args.sampling.sampling();
    request.max_tokens = args.limits.max_tokens;
    request.thinking_budget = args.conversation.thinking_budget;
    request.context = args.limits.context_length;
    request.answer_prefix = answer_prefix;
    request.stop.clone_from(&args.limits.stop);
    request.kv_bits = args.limits.kv_bits.kv_bits;
    if let Some(named) = args.draft_model.as_deref() {
        request.draft_model = Some(crate::app::model(Some(named)).await?);
    }
    if !images.0.is_empty() {
        request.image_detail = args.images.detail().await;
    }
    request.images = images.0;
    check_vision(engine.as_ref(), &request).await?;

    let stop = stop_at_ctrl_c();
    let thoughts = if args.show_thinking { out.clone() } else { Stream::Err };
    let mut writer = Writer::new(out.clone(), thoughts, args.json, tools.is_some());
    let written = match &tools {
        None => writer.write(engine.generate(request), &stop).await,
        Some(tools) => with_tools(engine.as_ref(), request, tools, &mut writer, &stop).await,
    };
    if let Some(tools) = tools {
        tools.end();
    }
    let written = written.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => args.documents.explain(error).into(),
        Err(other) => other,
    })?;
    // A response without text is one, too.
    out.write("")?;
    if let Some((passages, coverage)) = given {
        let (lines, value) = footer(&written.text(), &passages, &coverage);
        match args.json {
            true => out.write(&format!("{value}\n"))?,
            false => lines
                .iter()
                .for_each(|line| eprintln!("{}", Stream::Err.soft(&format!("({line})")))),
        }
    }
    Ok(ExitCode::from(match written.finish_reason() {
        Some(FinishReason::Cancelled) => exit_code::STOPPED,
        Some(FinishReason::Length) => {
            eprintln!("({})", cut_remark(written.ended_by()));
            exit_code::CUT
        }
        _ => 0,
    }))
}

/// Responds, runs the calls of the response, and responds to their results, until a response has none or a call is not
/// allowed.
async fn with_tools(
    engine: &dyn Engine,
    mut request: Request,
    tools: &RunTools,
    writer: &mut Writer,
    stop: &watch::Receiver<bool>,
) -> Result<Written> {
    let mut number = 0;
    loop {
        number += 1;
        let mut written = writer.write(engine.generate(request.clone()), stop).await?;
        let calls = written.calls();
        if calls.is_empty() || written.is_cut() {
            return Ok(written);
        }
        if number == MOST_RESPONSES {
            writer.calls_not_run(&calls, "the model calls tools again and again")?;
            return Ok(written);
        }
        request.messages.push(written.message());
        let most = protocol::most_of_result(context_of(engine, &request));
        for (index, call) in calls.iter().enumerate() {
            match tools.call(number, call, most, stop.clone()).await {
                Called::Ended { state, text } => {
                    writer.result(call, &tools.shown_name(call), state, &text)?;
                    request.messages.push(Message {
                        name: Some(call.name.clone()),
                        tool_call_id: Some(call.id.clone()),
                        ..Message::text(Role::Tool, text)
                    });
                }
                Called::NotAllowed(reason) => {
                    writer.calls_not_run(&calls[index..], &reason)?;
                    return Ok(written);
                }
                Called::Stopped => {
                    written.stopped();
                    return Ok(written);
                }
            }
        }
    }
}

/// The context of a model of this computer, if it is known.
async fn context_of_model(model: &ModelSource) -> Option<u32> {
    let folder = model.folder()?;
    let listed = models().await.list();
    let found = listed.into_iter().find(|listed| listed.reference == folder.reference);
    found?.context
}

/// The tokens that the model's context holds for this request, if that is known.
fn context_of(engine: &dyn Engine, request: &Request) -> Option<u32> {
    let loaded = engine.local().map(|local| local.loaded()).unwrap_or_default();
    let reference = request.model.reference();
    let model = loaded.iter().find(|model| model.reference == reference);
    model.map(|model| request.context_of(model.context)).or(request.context)
}

/// Becomes true at the first Ctrl+C. The second one ends the program, without waiting for the end of a step.
fn stop_at_ctrl_c() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(true);
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(exit_code::STOPPED.into());
        }
        // A sender that is gone would stop everything.
        std::future::pending::<()>().await;
    });
    stopped
}

/// The reason why a response is not complete, for people.
fn cut_remark(ended_by: Option<&EndedBy>) -> &'static str {
    match ended_by {
        Some(EndedBy::TokenLimit) => "response cut off at --max-tokens",
        Some(EndedBy::Context) => "response cut off, because the context is full",
        _ => "response cut off",
    }
}

fn conversation(args: &AskArgs, images: &mut Images) -> Result<Vec<Message>> {
    let system = args
        .conversation
        .system
        .iter()
        .map(|text| Message::text(Role::System, text));
    let mut conversation: Vec<Message> = system.collect();
    if let Some(path) = &args.messages {
        conversation.extend(read_messages(path, Some(images))?);
    }
    // Input that an option reads is not text beside the message.
    let is_taken = args.images.read_stdin() || args.documents.read_stdin();
    let input = match is_taken || (args.message.is_none() && args.messages.is_some()) {
        true => None,
        false => piped_text()?,
    };
    let words = [input.as_deref(), args.message.as_deref()];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    push_message(&mut conversation, &words.join("\n\n"));
    args.documents.put_into(&mut conversation)?;
    args.images.put_into(&mut conversation, images)?;
    if conversation.iter().all(|message| message.role == Role::System) {
        let message = "there is no message to send. Pass one, or a conversation with --messages";
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    Ok(conversation)
}

/// A message of blanks alone is none.
fn push_message(conversation: &mut Vec<Message>, text: &str) {
    if !text.trim().is_empty() {
        conversation.push(Message::text(Role::User, text));
    }
}
